#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tracing/snapshot/snapshot.h"

namespace tenon::snapshot {

/// By what allocations are told apart.
enum class UsageBy : uint8_t { place, size, stream, category };
inline constexpr int kUsageBys = 4;
const char* name(UsageBy by);  ///< "place"

/// The memory of a device over time, divided among the few groups that hold most of it, and the rest.
class StackedUsage {
 public:
  struct Options {
    UsageBy by = UsageBy::place;
    size_t bands = 8;    ///< at most, beside the rest and what is pinned
    std::string pinned;  ///< a group that has a band however little it holds: the lowest
    /// Called on any thread, one call at a time; returning false throws Error "cancelled".
    std::function<bool(uint64_t done, uint64_t total)> progress = {};
  };
  struct Band {
    std::string name;
    int64_t at_peak = 0;  ///< bytes
    bool rest = false;    ///< all groups that have none of their own; always the last
  };
  /// Of one device: the timeline of that trace of the snapshot. Both must outlive it.
  StackedUsage(const Snapshot& snapshot, const Timeline& timeline, const Options& options);

  /// From the bottom: what is pinned, then by what they hold at the peak.
  const std::vector<Band>& bands() const { return bands_; }
  /// The band of an element of the timeline, as an index into bands().
  size_t band_of(uint32_t element) const { return of_element_[element]; }

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
  static constexpr size_t kEventsOfBlock = 256;
  /// By band, after event `at`.
  std::vector<int64_t> bytes(size_t at) const;

 private:
  struct Top {
    size_t event = 0;
    int64_t total = 0;
  };
  void choose(const Options& options, const std::vector<uint32_t>& of_element, const std::vector<std::string>& names);
  void add_up(const Options& options);
  void add_up_piece(size_t from, size_t to);
  /// Returns how much more is alive then.
  int64_t apply(size_t event, std::vector<int64_t>& now) const;

  const Timeline* timeline_;
  std::vector<Band> bands_;
  std::vector<uint8_t> of_element_;
  // Of every block of events: what each band holds before it, its highest moment, and what each holds then.
  std::vector<int64_t> before_, at_top_;
  std::vector<Top> tops_;
};

/// The groups of all elements of a timeline: for each its number, and the names of the groups.
struct UsageGroups {
  std::vector<uint32_t> of_element;
  std::vector<std::string> names;
};
UsageGroups usage_groups(const Snapshot& snapshot, const Timeline& timeline, UsageBy by);

}  // namespace tenon::snapshot
