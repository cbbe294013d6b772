// memory regions: what the stretches that a program marked held and left behind.
#include <fmt/format.h>

#include <algorithm>

#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/snapshot/regions.h"

namespace tenon::tracing {
namespace {

Finding regions_of(const SnapshotRequest& r) {
  const snapshot::Snapshot& s = r.first();
  const size_t trace = asked_trace(s, r.device);
  if (trace == std::string::npos) return nothing("The snapshot holds no recorded events.");
  const auto all = snapshot::regions(s, trace);
  if (all.empty())
    return nothing(
        s.annotations.empty()
            ? "The recording marks no regions: _record_memory_history(global_record_annotations=True) keeps those "
              "of torch.profiler.record_function()."
            : "The recording marks regions, and none of them is of this device or its events have no times.");
  const snapshot::Timeline timeline(s, trace);
  struct Held {
    size_t region, peak_at;
    int64_t before, peak, after;
  };
  std::vector<Held> held;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& region = all[i];
    const int64_t before = region.begin == 0 ? timeline.bytes_before() : timeline.bytes(region.begin - 1);
    Held h{i, region.begin, before, before, before};
    if (const auto stretch = timeline.usage(region.begin, region.end, 1); !stretch.empty()) {
      h.peak = std::max(h.peak, stretch.front().high);
      h.after = stretch.front().last;
    }
    held.push_back(h);
  }
  const auto most =
      std::max_element(held.begin(), held.end(), [](const Held& a, const Held& b) { return a.peak < b.peak; });
  const auto grown = std::max_element(
      held.begin(), held.end(), [](const Held& a, const Held& b) { return a.after - a.before < b.after - b.before; });
  Finding f;
  f.sentence = fmt::format("{} marked region{}; the most is alive in \"{}\", {}", all.size(),
                           all.size() == 1 ? "" : "s", all[most->region].name, bytes_text(most->peak));
  if (grown->after > grown->before)
    f.sentence += fmt::format("; \"{}\" leaves {} more behind than was there before it", all[grown->region].name,
                              bytes_text(grown->after - grown->before));
  f.sentence += ".";
  f.facts = {{"region_count", "regions", Unit::count, static_cast<int64_t>(all.size())},
             {"peak_bytes", "most alive", Unit::bytes, most->peak}};
  Table table{"regions",
              {{"name", "REGION", Unit::text},
               {"events", "EVENTS", Unit::count},
               {"before_bytes", "BEFORE", Unit::bytes},
               {"peak_bytes", "PEAK", Unit::bytes},
               {"after_bytes", "AFTER", Unit::bytes},
               {"grown_bytes", "GROWN BY", Unit::bytes}},
              {}};
  const size_t first = s.traces[trace].begin, events = timeline.events();
  for (const Held& h : held) {
    if (table.rows.size() >= r.top) break;
    const auto& region = all[h.region];
    const size_t at = std::min(region.begin, events ? events - 1 : 0);
    table.add({region.name + (region.open ? " (does not end)" : ""), static_cast<int64_t>(region.end - region.begin),
               h.before, h.peak, h.after, h.after - h.before},
              Sight::of(static_cast<int64_t>(first + at)));
  }
  f.tables.push_back(std::move(table));
  return f;
}

const bool registered_memory_regions = register_snapshot_analysis(
    {"regions", "the stretches that the program marked: what they held, and left behind", 1, 1, regions_of});

}  // namespace
}  // namespace tenon::tracing
