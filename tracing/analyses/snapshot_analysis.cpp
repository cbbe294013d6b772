#include "tracing/analyses/snapshot_analysis.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace tenon::tracing {

using snapshot::Action;
using snapshot::Element;
using snapshot::kNone;
using snapshot::Snapshot;
using snapshot::Timeline;

namespace {
Registry<SnapshotAnalysis>& snapshot_analysis_registry() {
  static auto& all = *new Registry<SnapshotAnalysis>("analysis of snapshots");
  return all;
}

std::vector<Owner> sorted_owners(std::unordered_map<uint32_t, Owner>& by_stack, const Snapshot& s) {
  // Stacks that differ in what is behind the same place of the user's code are one owner.
  std::map<std::string, Owner> by_site;
  for (auto& [stack, o] : by_stack) {
    std::string site = s.site(stack);
    Owner& to = by_site[site];
    if (to.count == 0 || o.bytes > to.bytes) to.stack = stack;
    to.site = site;
    to.bytes += o.bytes;
    to.count += o.count;
  }
  std::vector<Owner> all;
  for (auto& [site, o] : by_site) all.push_back(o);
  std::stable_sort(all.begin(), all.end(), [](const Owner& a, const Owner& b) { return a.bytes > b.bytes; });
  return all;
}
}  // namespace

bool register_snapshot_analysis(SnapshotAnalysis a, Place place) {
  return snapshot_analysis_registry().add(std::move(a), place);
}
const Registry<SnapshotAnalysis>& snapshot_analyses() { return snapshot_analysis_registry(); }

int64_t asked_device(const Snapshot& s, int64_t device) {
  if (device >= 0) return device;
  std::map<int64_t, std::pair<size_t, int64_t>> devices;
  for (const auto& t : s.traces) devices[t.device].first += t.end - t.begin;
  for (const auto& g : s.segments) devices[g.device].second += g.total;
  int64_t best = 0;
  std::pair<size_t, int64_t> most{0, -1};
  for (const auto& [d, size] : devices)
    if (d != snapshot::kHost && size > most) most = size, best = d;
  return best;
}

size_t asked_trace(const Snapshot& s, int64_t device) {
  device = asked_device(s, device);
  for (size_t i = 0; i < s.traces.size(); ++i)
    if (s.traces[i].device == device && s.traces[i].end > s.traces[i].begin) return i;
  return std::string::npos;
}

std::vector<Owner> owners(const Snapshot& s, const Timeline& timeline, const std::vector<uint32_t>& elements) {
  std::unordered_map<uint32_t, Owner> by_stack;
  for (uint32_t id : elements) {
    const Element e = timeline.element(id);
    Owner& o = by_stack[e.stack];
    o.bytes += e.bytes;
    ++o.count;
  }
  return sorted_owners(by_stack, s);
}

std::vector<Owner> block_owners(const Snapshot& s, int64_t device) {
  std::unordered_map<uint32_t, Owner> by_stack;
  for (const auto& g : s.segments) {
    if (g.device != device) continue;
    for (size_t b = g.first_block; b < g.first_block + g.blocks; ++b) {
      if (s.blocks[b].state == snapshot::State::inactive) continue;
      Owner& o = by_stack[s.blocks[b].stack];
      o.bytes += s.blocks[b].size;
      ++o.count;
    }
  }
  return sorted_owners(by_stack, s);
}

// Note [What a leak is]
// Memory that is allocated again and again from one place and stays: in window after window of the recording something
// that was born there is still alive at the end. Look-alikes differ in that. What warms up, fills a cache or is made
// once has its survivors at the beginning; a cache that replaces its entries, accumulated gradients and activations
// have theirs at the end; averages of weights have none that grow. The first quarter of the windows is taken for
// warming up. A leak has survivors from nearly all the others (four of five), and among them both the early and the
// late half; what stays is counted beyond what the place frees again.
std::vector<Leak> find_leaks(const Snapshot& s, size_t which, size_t* looked_at) {
  const Timeline timeline(s, which);
  const auto& trace = s.traces.at(which);
  const size_t events = timeline.events();
  // Windows end where steps do, where the file marks them; else they are equal numbers of events.
  std::vector<size_t> ends;
  for (size_t i = 0; i < events; ++i) {
    const size_t k = trace.begin + i;
    if (s.events.action[k] == Action::user_defined) ends.push_back(i);
  }
  std::vector<int64_t> marks;
  for (const auto& a : s.annotations)
    if (a.start && (a.device == trace.device || a.device < 0)) marks.push_back(a.time_us);
  if (ends.size() < 8 && marks.size() >= 8) {
    std::sort(marks.begin(), marks.end());
    ends.clear();
    size_t m = 0;
    for (size_t i = 0; i < events && m < marks.size(); ++i)
      while (m < marks.size() && s.events.time_us[trace.begin + i] >= marks[m]) ends.push_back(i), ++m;
  }
  constexpr size_t kWindows = 16;
  std::vector<size_t> bounds;
  if (ends.size() >= 8) {
    for (size_t w = 1; w <= std::min(kWindows, ends.size()); ++w)
      bounds.push_back(ends[ends.size() * w / std::min(kWindows, ends.size()) - 1]);
  } else {
    for (size_t w = 1; w <= kWindows; ++w) bounds.push_back(events * w / kWindows);
  }
  bounds.back() = events;
  const size_t windows = bounds.size(), warm = windows / 4;
  if (looked_at) *looked_at = windows - warm;
  struct Place {
    std::vector<int64_t> kept, live_at_end;  ///< bytes born per window that stayed; alive at each window's end
    int64_t count = 0;
  };
  std::map<std::string, Place> places;
  std::map<std::string, uint32_t> stacks;
  std::unordered_map<uint32_t, std::string> sites;
  auto window_of = [&](size_t event) {
    return static_cast<size_t>(std::upper_bound(bounds.begin(), bounds.end(), event) - bounds.begin());
  };
  for (uint32_t id = 0; id < timeline.elements(); ++id) {
    const Element e = timeline.element(id);
    if (e.before) continue;
    auto [it, fresh] = sites.emplace(e.stack, std::string());
    if (fresh) it->second = s.site(e.stack);
    Place& p = places[it->second];
    if (p.kept.empty()) p.kept.resize(windows), p.live_at_end.resize(windows + 1);
    stacks.emplace(it->second, e.stack);
    size_t from = std::min(window_of(e.born), windows - 1), to = std::min(window_of(e.died), windows);
    p.live_at_end[from] += e.bytes;  // as differences; summed below
    p.live_at_end[to] -= e.bytes;
    if (e.died >= events) p.kept[from] += e.bytes, ++p.count;
  }
  std::vector<Leak> leaks;
  for (auto& [site, p] : places) {
    size_t with = 0, early = 0, late = 0;
    int64_t kept = 0;
    const size_t middle = warm + (windows - warm) / 2;
    for (size_t w = warm; w < windows; ++w) {
      if (p.kept[w] <= 0) continue;
      ++with;
      ++(w < middle ? early : late);
      kept += p.kept[w];
    }
    std::vector<int64_t> alive;
    int64_t now = 0;
    for (size_t w = 0; w < windows; ++w) alive.push_back(now += p.live_at_end[w]);
    size_t grows = 0;
    for (size_t w = warm + 1; w < windows; ++w) grows += alive[w] > alive[w - 1];
    const size_t looked = windows - warm;
    // Half of the early half must have survivors, or they are what the end has not freed yet.
    if (with * 5 < looked * 4 || early * 2 < (middle - warm) || grows * 3 < (looked - 1) * 2 ||
        alive.back() <= alive[warm])
      continue;
    leaks.push_back({site, stacks[site], kept, p.count,
                     static_cast<double>(alive.back() - alive[warm]) / static_cast<double>(looked - 1), with});
  }
  std::stable_sort(leaks.begin(), leaks.end(),
                   [](const Leak& a, const Leak& b) { return a.bytes_per_window > b.bytes_per_window; });
  return leaks;
}

}  // namespace tenon::tracing
