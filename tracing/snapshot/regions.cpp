#include "tracing/snapshot/regions.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace tenon::snapshot {
namespace {

struct Mark {
  size_t at = 0;
  bool start = true;
  std::string name;
};

/// PyTorch 2.4: the first frame of an event of its own is START or END, its file is the name.
void of_events(const Snapshot& s, const DeviceTrace& t, std::vector<Mark>& marks) {
  const Action* const first = s.events.action.data();
  for (size_t i = t.begin; i < t.end; ++i) {
    // Few among millions.
    const void* found = std::memchr(first + i, static_cast<int>(Action::user_defined), t.end - i);
    if (!found) break;
    i = static_cast<size_t>(static_cast<const Action*>(found) - first);
    const auto stack = s.stack(s.events.stack[i]);
    if (stack.empty() || stack[0] >= s.frames.size()) continue;
    const Snapshot::Frame& f = s.frames[stack[0]];
    const std::string_view what = s.text(f.function);
    if (what == "START" || what == "END") marks.push_back({i - t.begin, what == "START", std::string(s.text(f.file))});
  }
}

void of_annotations(const Snapshot& s, const DeviceTrace& t, std::vector<Mark>& marks) {
  const auto& time = s.events.time_us;
  if (t.begin == t.end || time[t.begin] < 0) return;
  for (const Annotation& a : s.annotations) {
    if ((a.device >= 0 && a.device != t.device) || a.time_us < 0) continue;
    size_t low = t.begin, high = t.end;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (time[middle] < a.time_us)
        low = middle + 1;
      else
        high = middle;
    }
    marks.push_back({low - t.begin, a.start, a.name});
  }
}

}  // namespace

std::vector<Region> regions(const Snapshot& s, size_t trace) {
  std::vector<Region> all;
  if (trace >= s.traces.size()) return all;
  const DeviceTrace& t = s.traces[trace];
  std::vector<Mark> marks;
  of_events(s, t, marks);
  of_annotations(s, t, marks);
  std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) { return a.at < b.at; });
  std::map<std::string, std::vector<size_t>> begun;
  for (const Mark& m : marks) {
    if (m.start) {
      begun[m.name].push_back(all.size());
      all.push_back({m.name, m.at, t.end - t.begin, 0, true});
    } else if (auto& of_name = begun[m.name]; !of_name.empty()) {
      all[of_name.back()].end = m.at;
      all[of_name.back()].open = false;
      of_name.pop_back();
    } else {
      all.push_back({m.name, 0, m.at, 0, false});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Region& a, const Region& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  // The lowest depth that is free from its begin on.
  std::vector<size_t> until;
  for (Region& r : all) {
    size_t depth = 0;
    while (depth < until.size() && until[depth] > r.begin) ++depth;
    if (depth == until.size()) until.push_back(0);
    until[depth] = std::max(r.end, r.begin + 1);
    r.depth = static_cast<uint32_t>(depth);
  }
  return all;
}

}  // namespace tenon::snapshot
