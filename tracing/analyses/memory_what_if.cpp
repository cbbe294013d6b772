// memory what-if: what other settings of the allocator would have made of the recorded allocations.
#include "tracing/analyses/memory_what_if.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::tracing {

using snapshot::AllocatorModel;
using snapshot::AllocatorSettings;
using snapshot::AllocatorState;
using snapshot::KnownLimits;
using snapshot::Snapshot;

const std::vector<std::string>& usual_settings() {
  static const std::vector<std::string> all = {"",
                                               "expandable_segments:True",
                                               "max_split_size_mb:128",
                                               "max_split_size_mb:512",
                                               "roundup_power2_divisions:8",
                                               "ideal"};  // a threshold does nothing by itself
  return all;
}

const WhatIf::Try* WhatIf::best() const {
  const Try* best = nullptr;
  for (size_t i = 1; i < tries.size(); ++i)
    if (!tries[i].settings.ideal && !tries[i].replay.failed &&
        (!best || tries[i].replay.peak_reserved < best->replay.peak_reserved))
      best = &tries[i];
  return best;
}

const WhatIf::Try* WhatIf::first_without_failure() const {
  for (size_t i = 1; i < tries.size(); ++i)
    if (!tries[i].settings.ideal && !tries[i].replay.failed) return &tries[i];
  return nullptr;
}

std::string WhatIf::verdict(const Try& t) const {
  if (limit == 0) return "no limit known";
  if (!t.replay.failed) return "no";
  return fmt::format("yes, {} at event {}{}", bytes_text(t.replay.failed_size), t.replay.failed_at,
                     t.replay.failures.size() > 1 ? fmt::format(", and {} more", t.replay.failures.size() - 1) : "");
}

std::optional<WhatIf> what_if(const SnapshotRequest& r) {
  const Snapshot& s = r.first();
  const size_t trace = asked_trace(s, r.device);
  if (trace == std::string::npos) return {};
  const KnownLimits known = snapshot::limits_of(s, trace);
  AllocatorModel::Limits limits = known.limits;
  if (r.limit) limits = {r.limit, 0};
  WhatIf w;
  w.other_limit = r.limit != 0;
  w.limit = limits.allowed && (limits.allowed < limits.device || !limits.device) ? limits.allowed : limits.device;
  w.events = s.traces[trace].end - s.traces[trace].begin;
  const AllocatorSettings own = AllocatorSettings::of(s);
  w.tries.push_back({"as recorded: " + own.text(), own, {}});
  for (const std::string& text : r.settings.empty() ? usual_settings() : r.settings)
    if (AllocatorSettings a = AllocatorSettings::parse(text); a != own) w.tries.push_back({a.text(), a, {}});
  const AllocatorState beginning = snapshot::state_after(s, trace, 0);
  for (WhatIf::Try& t : w.tries) {
    snapshot::ReplayOptions options{limits, &t == &w.tries[0], &beginning};
    // Garbage is collected above a share of what set_per_process_memory_fraction() allows: of the limit, where nothing
    // else is known.
    if (t.settings.garbage_collection_threshold > 0 && !options.limits.allowed) options.limits.allowed = w.limit;
    if (options.as_recorded && !r.limit) options.limits = {};
    t.replay = snapshot::replay(s, trace, t.settings, options);
  }
  // Where the model repeats what was recorded, it is to be believed about the rest.
  const auto recorded = snapshot::recorded_segment_events(s, trace);
  const auto& again = w.tries[0].replay.segment_events;
  w.calls = recorded.size();
  while (w.repeated < again.size() && w.repeated < w.calls && again[w.repeated] == recorded[w.repeated]) ++w.repeated;
  w.repeats = w.repeated == w.calls && w.repeated == again.size();
  for (const auto& g : beginning.segments) w.before += g.active;
  return w;
}

namespace {

std::string sentence_of(const WhatIf& w) {
  const int64_t first = w.recorded_peak();
  const WhatIf::Try *best = w.best(), *saved_by = w.first_without_failure();
  const bool failed_own = w.tries[0].replay.failed;
  const bool ideal_failed = std::any_of(w.tries.begin(), w.tries.end(),
                                        [](const WhatIf::Try& t) { return t.settings.ideal && t.replay.failed; });
  if (failed_own && saved_by) return fmt::format("The failure would have been avoided with {}.", saved_by->name);
  if (failed_own && ideal_failed)
    return "No setting of the allocator would have avoided the failure: what is alive does not fit.";
  if (failed_own) return "None of the settings tried would have avoided the failure.";
  if (best && best->replay.peak_reserved < first)
    return fmt::format("{} would have reserved {} at its peak instead of {} ({} less).", best->name,
                       bytes_text(best->replay.peak_reserved), bytes_text(first),
                       share_text(1 - share(best->replay.peak_reserved, first)));
  return fmt::format("No other setting reserves less than the {} that were reserved at the peak.", bytes_text(first));
}

}  // namespace

Finding finding_of(const WhatIf& w) {
  Finding f;
  f.sentence = sentence_of(w);
  const int64_t first = w.recorded_peak();
  if (w.limit > 0) f.facts.push_back({"limit_bytes", "the device can give", Unit::bytes, w.limit});
  f.facts.push_back({"recorded_peak_bytes", "peak as recorded", Unit::bytes, first});
  f.facts.push_back({"events", "events replayed", Unit::count, static_cast<int64_t>(w.events)});
  f.facts.push_back({"repeats", "the model repeats the recorded calls", Unit::text,
                     std::string(w.calls == 0    ? "there are none to the driver in the recording"
                                 : w.repeats     ? "yes"
                                 : w.other_limit ? "not asked: another limit"
                                                 : fmt::format("the first {} of {}", w.repeated, w.calls))});
  if (w.before)
    f.facts.push_back(
        {"before_bytes", "from before the recording, allocated anew under other settings", Unit::bytes, w.before});
  Table table{"settings",
              {{"settings", "SETTINGS", Unit::text},
               {"peak_reserved_bytes", "PEAK RESERVED", Unit::bytes},
               {"against_recorded", "AGAINST RECORDED", Unit::share},
               {"wasted_bytes", "ABOVE WHAT IS ALIVE", Unit::bytes},
               {"segments", "CALLS TO THE DRIVER", Unit::count},
               {"verdict", "OUT OF MEMORY", Unit::text}},
              {}};
  for (const WhatIf::Try& t : w.tries)
    table.rows.push_back({t.name, t.replay.peak_reserved, share(t.replay.peak_reserved, std::max<int64_t>(1, first)),
                          t.replay.peak_reserved - t.replay.peak_allocated,
                          static_cast<int64_t>(t.replay.segment_events.size()), w.verdict(t)});
  f.tables.push_back(std::move(table));
  return f;
}

namespace {
const bool registered_what_if = register_snapshot_analysis(
    {"what-if", "the recorded allocations under other allocator settings", 1, 1, [](const SnapshotRequest& r) {
       const auto w = what_if(r);
       return w ? finding_of(*w)
                : nothing(
                      "The snapshot holds no recorded events to replay: call "
                      "torch.cuda.memory._record_memory_history() first.");
     }});
}  // namespace

}  // namespace tenon::tracing
