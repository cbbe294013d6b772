#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "tracing/snapshot/usage_division.h"

namespace tenon::snapshot {

/// The memory of a device over time, divided among the few groups that hold most of it, and the rest.
class StackedUsage {
 public:
  using Options = UsageDivision::Options;
  using Band = UsageDivision::Band;
  /// Of one device: the timeline of that trace of the snapshot. Both must outlive it.
  StackedUsage(const Snapshot& snapshot, const Timeline& timeline, const Options& options)
      : StackedUsage(divide_usage(snapshot, timeline, options), snapshot, timeline) {}
  /// As it was divided before.
  StackedUsage(std::shared_ptr<const UsageDivision> division, const Snapshot& snapshot, const Timeline& timeline)
      : snapshot_(&snapshot), timeline_(&timeline), division_(std::move(division)) {}

  /// From the bottom: what is pinned, then by what they hold at the peak.
  const std::vector<Band>& bands() const { return division_->bands; }
  /// The band of an element of the timeline, as an index into bands().
  size_t band_of(uint32_t element) const {
    return division_->band_of_key[usage_key(division_->by, *snapshot_, *timeline_, element)];
  }

  /// The highest moment of a stretch of events: a peak never gets lost between two columns.
  struct Column {
    size_t begin = 0, end = 0;   ///< events [begin, end), for which it stands
    size_t event = 0;            ///< after which most is alive
    int64_t total = 0;           ///< bytes then
    std::vector<int64_t> bands;  ///< that total, by band
  };
  /// Where the column before ended: the next one goes on from there and does not begin with its block anew.
  struct Walk {
    size_t next = 0;
    std::vector<int64_t> now;  ///< by band, before event `next`; empty: not known
  };
  /// Of events [from, to), which must not be empty. Costs some hundred events, however many they are; fewer where both
  /// are multiples of kEventsOfBlock, or where `walk` comes from the column before.
  Column highest(size_t from, size_t to, Walk* walk = nullptr) const;
  static constexpr size_t kEventsOfBlock = UsageDivision::kEventsOfBlock;
  /// By band, after event `at`.
  std::vector<int64_t> bytes(size_t at) const;

 private:
  void apply(size_t event, std::vector<int64_t>& now) const;

  const Snapshot* snapshot_;
  const Timeline* timeline_;
  std::shared_ptr<const UsageDivision> division_;
};

}  // namespace tenon::snapshot
