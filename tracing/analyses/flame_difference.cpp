// trace diff-stacks, memory diff-stacks: two flame graphs in one.
#include "tracing/analyses/flame_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/analyses/trace_analysis.h"

// Note [Paths that match]
// Paths are the same where all their names are. A thread has another number in every process, so the threads and
// streams of a trace that none of the other is called like are matched with what is left over there, the busiest with
// the busiest, CPU and GPU apart.

namespace tenon::tracing {
namespace {

/// What the outermost nodes of A and B are called in both.
class TopNames {
 public:
  TopNames(const Flame& a, const Flame& b) {
    std::vector<uint32_t> left_a = tops(a), left_b = tops(b);
    for (auto i = left_a.begin(); i != left_a.end();) {
      const auto k = std::find_if(left_b.begin(), left_b.end(), [&](uint32_t n) { return b.text(n) == a.text(*i); });
      if (k == left_b.end()) {
        ++i;
        continue;
      }
      left_b.erase(k);
      i = left_a.erase(i);
    }
    if (a.unit() != Unit::nanoseconds) return;
    for (const uint32_t n : left_a) {
      const auto k =
          std::find_if(left_b.begin(), left_b.end(), [&](uint32_t m) { return on_gpu(a, n) == on_gpu(b, m); });
      if (k == left_b.end()) continue;
      of_a_[n] = b.text(*k);
      left_b.erase(k);
    }
  }
  const std::string& of_a(const Flame& a, uint32_t node) const {
    const auto at = of_a_.find(node);
    return at == of_a_.end() ? a.text(node) : at->second;
  }

 private:
  static std::vector<uint32_t> tops(const Flame& f) {
    if (f.empty()) return {};
    return {f.children(0).begin(), f.children(0).end()};
  }
  static bool on_gpu(const Flame& f, uint32_t row) {
    for (const uint32_t c : f.children(row)) {
      const traces::EventKind k = f.nodes()[c].kind;
      return traces::on_gpu(k) || k == traces::EventKind::gpu_annotation;
    }
    return false;
  }
  std::map<uint32_t, std::string> of_a_;
};

class Merger {
 public:
  explicit Merger(Unit unit) : flame_(unit) {}

  void add(const Flame& from, int64_t steps, std::vector<FlamePair::Side>& side,
           const std::function<const std::string&(uint32_t)>& top) {
    std::vector<uint32_t> place(from.nodes().size());
    for (uint32_t i = 1; i < place.size(); ++i) {
      const Flame::Node& n = from.nodes()[i];
      const uint32_t at = flame_.child(place[n.parent], n.parent ? from.text(i) : top(i));
      place[i] = at;
      if (side.size() < flame_.nodes().size()) side.resize(flame_.nodes().size());
      FlamePair::Side& s = side[at];
      s.self += n.self;
      s.count += n.count;
      Flame::Node& merged = flame_.at(at);
      if (n.longest != traces::kNone && longer(n.total, at)) s.longest = n.longest, merged.longest = n.longest;
      if (n.kind != traces::EventKind::other) merged.kind = n.kind;
    }
    side.resize(flame_.nodes().size());
    for (FlamePair::Side& s : side) s.self /= steps;
    largest_.clear();
  }

  FlamePair done(std::vector<FlamePair::Side> a, std::vector<FlamePair::Side> b) {
    const size_t n = flame_.nodes().size();
    a.resize(n), b.resize(n);
    for (uint32_t i = 0; i < n; ++i) {
      flame_.at(i).self = std::max(a[i].self, b[i].self);
      flame_.at(i).count = std::max(a[i].count, b[i].count);
      a[i].total = a[i].self, b[i].total = b[i].self;
    }
    for (uint32_t i = static_cast<uint32_t>(n); i-- > 1;) {
      const uint32_t up = flame_.nodes()[i].parent;
      a[up].total += a[i].total, b[up].total += b[i].total;
    }
    flame_.finish();
    return {std::move(flame_), std::move(a), std::move(b)};
  }

 private:
  bool longer(int64_t total, uint32_t at) {
    if (largest_.size() <= at) largest_.resize(at + 1, -1);
    return total > largest_[at] ? (largest_[at] = total, true) : false;
  }
  Flame flame_;
  std::vector<int64_t> largest_;  ///< of the nodes of one flame that were put into one
};

int64_t steps_of(const traces::Trace& t) {
  const auto steps = trace_steps(t);
  return std::max<int64_t>(1, static_cast<int64_t>(steps.size()));
}

/// By what they changed in themselves, the largest first.
std::vector<uint32_t> changed_nodes(const FlamePair& p) {
  std::vector<uint32_t> nodes;
  for (uint32_t i = 1; i < p.a.size(); ++i)
    if (p.a[i].self != p.b[i].self) nodes.push_back(i);
  std::stable_sort(nodes.begin(), nodes.end(), [&](uint32_t x, uint32_t y) {
    return std::abs(p.b[x].self - p.a[x].self) > std::abs(p.b[y].self - p.a[y].self);
  });
  return nodes;
}

Finding difference_finding(const FlamePair& pair, size_t top, const char* what) {
  if (pair.flame.empty())
    return nothing("There is nothing to compare: neither of the two holds any " + std::string(what) + ".");
  Finding f;
  const Unit unit = pair.flame.unit();
  const int64_t a = pair.a[0].total, b = pair.b[0].total;
  const auto changed = changed_nodes(pair);
  if (changed.empty()) {
    f.sentence = fmt::format("A and B hold the same on every path: {}.", cell_text(a, unit));
  } else {
    const uint32_t most = changed[0];
    const int64_t by = pair.b[most].self - pair.a[most].self;
    const uint32_t above = pair.flame.nodes()[most].parent;
    const std::string in_all = a == b
                                   ? fmt::format("A and B hold the same in all, {}", cell_text(a, unit))
                                   : fmt::format("B has {} {} than A ({} against {})", cell_text(std::abs(b - a), unit),
                                                 b > a ? "more" : "less", cell_text(b, unit), cell_text(a, unit));
    f.sentence = fmt::format("{}; most changed {}{}: {} {} in itself.", in_all, pair.flame.text(most),
                             above ? " below " + pair.flame.text(above) : "", cell_text(std::abs(by), unit),
                             by > 0 ? "more" : "less");
  }
  f.facts = {{"a", "in A", unit, a},
             {"b", "in B", unit, b},
             {"change", "difference", unit, b - a},
             {"paths", "paths", Unit::count, static_cast<int64_t>(pair.flame.nodes().size() - 1)},
             {"changed", "paths that changed", Unit::count, static_cast<int64_t>(changed.size())}};
  f.tables.push_back(stack_changes(pair, top));
  return f;
}

Finding trace_stack_changes(const TraceRequest& r) {
  return difference_finding(flame_difference(*r.traces[0], *r.traces[1]), r.top, "event that takes time");
}
Finding memory_stack_changes(const SnapshotRequest& r) {
  return difference_finding(flame_difference(*r.snapshots[0], *r.snapshots[1], r.device), r.top, "allocation");
}

}  // namespace

FlamePair flame_difference(const Flame& a, const Flame& b, int64_t steps_a, int64_t steps_b) {
  const TopNames names(a, b);
  Merger merger(a.unit());
  std::vector<FlamePair::Side> of_a, of_b;
  merger.add(a, std::max<int64_t>(1, steps_a), of_a,
             [&](uint32_t node) -> const std::string& { return names.of_a(a, node); });
  merger.add(b, std::max<int64_t>(1, steps_b), of_b, [&](uint32_t node) -> const std::string& { return b.text(node); });
  return merger.done(std::move(of_a), std::move(of_b));
}

FlamePair flame_difference(const traces::Trace& a, const traces::Trace& b,
                           const std::function<bool(uint64_t, uint64_t)>& progress) {
  const uint64_t all = a.size() + b.size();
  FlamePart part_a, part_b;
  if (progress) {
    part_a.progress = [&](uint64_t done, uint64_t) { return progress(done, all); };
    part_b.progress = [&](uint64_t done, uint64_t) { return progress(a.size() + done, all); };
  }
  return flame_difference(flame_of(a, part_a), flame_of(b, part_b), steps_of(a), steps_of(b));
}

FlamePair flame_difference(const snapshot::Snapshot& a, const snapshot::Snapshot& b, int64_t device) {
  auto at_peak = [&](const snapshot::Snapshot& s) {
    const size_t trace = asked_trace(s, device < 0 ? asked_device(b, -1) : device);
    if (trace == std::string::npos) return Flame(Unit::bytes);
    const snapshot::Timeline timeline(s, trace);
    return timeline.events() ? flame_of(s, timeline, timeline.peak()) : Flame(Unit::bytes);
  };
  return flame_difference(at_peak(a), at_peak(b));
}

void FlamePair::move_events(traces::EventId by_a, traces::EventId by_b) {
  for (auto [side, by] : {std::pair{&a, by_a}, std::pair{&b, by_b}})
    for (Side& s : *side)
      if (s.longest != traces::kNone) s.longest += by;
}

Table stack_changes(const FlamePair& pair, size_t top) {
  const Unit unit = pair.flame.unit();
  Table t{"stacks",
          {{"name", "NAME", Unit::text},
           {"change", "DIFFERENCE IN ITSELF", unit},
           {"a", "IN A", unit},
           {"b", "IN B", unit},
           {"a_count", "COUNT A", Unit::count},
           {"b_count", "COUNT B", Unit::count},
           {"path", "BELOW", Unit::text, true}},
          {}};
  const auto changed = changed_nodes(pair);
  int64_t more_a = 0, more_b = 0;
  for (size_t i = 0; i < changed.size(); ++i) {
    const FlamePair::Side &a = pair.a[changed[i]], &b = pair.b[changed[i]];
    if (i >= top) {
      more_a += a.self, more_b += b.self;
      continue;
    }
    auto sight = [&](const FlamePair::Side& s) {
      if (unit == Unit::bytes) return s.count || s.total ? Sight::at(pair.flame.text(changed[i])) : Sight();
      return s.longest == traces::kNone ? Sight() : Sight::of(s.longest);
    };
    t.add({pair.flame.text(changed[i]), b.self - a.self, a.self, b.self, a.count, b.count,
           pair.flame.path(pair.flame.nodes()[changed[i]].parent)},
          sight(a), sight(b));
  }
  if (changed.size() > top)
    t.add({fmt::format("{} more", changed.size() - top), more_b - more_a, more_a, more_b, int64_t{0}, int64_t{0},
           std::string()},
          Sight(), Sight());
  return t;
}

std::string folded(const FlamePair& pair) {
  std::string out;
  for (uint32_t i = 1; i < pair.a.size(); ++i) {
    if (pair.a[i].self <= 0 && pair.b[i].self <= 0) continue;
    std::vector<uint32_t> chain;
    for (uint32_t n = i; n; n = pair.flame.nodes()[n].parent) chain.push_back(n);
    std::string path;
    for (size_t k = chain.size(); k-- > 0;) {
      std::string name = pair.flame.text(chain[k]);
      std::replace(name.begin(), name.end(), ';', ',');
      for (char& c : name)
        if (static_cast<unsigned char>(c) < 0x20) c = ' ';
      path += (path.empty() ? "" : ";") + name;
    }
    out += fmt::format("{} {} {}\n", path, std::max<int64_t>(0, pair.a[i].self), std::max<int64_t>(0, pair.b[i].self));
  }
  return out;
}

namespace {
const bool registered_flame_difference =
    register_trace_analysis({"diff-stacks", "which call paths take longer or shorter in a step of B than in one of A",
                             2, 2, trace_stack_changes}) &&
    register_snapshot_analysis({"diff-stacks", "which stacks hold more or less at the peak of B than at that of A", 2,
                                2, memory_stack_changes});
}  // namespace

}  // namespace tenon::tracing
