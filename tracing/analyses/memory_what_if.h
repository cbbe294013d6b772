#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/snapshot/allocator_model.h"

namespace tenon::tracing {

/// The recorded allocations of a device under settings of the allocator, beside those they were recorded under.
struct WhatIf {
  struct Try {
    std::string name;
    snapshot::AllocatorSettings settings;
    snapshot::Replay replay;
  };
  std::vector<Try> tries;    ///< the first: as recorded
  int64_t limit = 0;         ///< bytes that the device can give, as far as known; 0: it is not
  bool other_limit = false;  ///< it was asked for, and is none that the recording tells
  size_t events = 0;
  size_t calls = 0,
         repeated = 0;   ///< that the recording made to the driver, and how many the model repeats from the first
  bool repeats = false;  ///< all of them, and no more
  int64_t before = 0;    ///< bytes from before the recording, allocated anew under other settings

  int64_t recorded_peak() const { return tries.front().replay.peak_reserved; }
  /// The settings that reserve least; the first that meet no limit. Of those tried, without what no allocator can do;
  /// null: none.
  const Try* best() const;
  const Try* first_without_failure() const;
  /// "no limit known", "no", "yes, 512 MiB at event 120"
  std::string verdict(const Try& t) const;
};
/// Nothing where no events were recorded. Throws Error (usage) where a setting is none.
std::optional<WhatIf> what_if(const SnapshotRequest& request);
/// What is tried where nothing is asked for.
const std::vector<std::string>& usual_settings();
Finding finding_of(const WhatIf& w);

}  // namespace tenon::tracing
