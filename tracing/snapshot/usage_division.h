#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tracing/snapshot/snapshot.h"

namespace tenon::snapshot {

/// By what allocations are told apart.
enum class UsageBy : uint8_t { place, size, stream, category };
inline constexpr int kUsageBys = 4;
const char* name(UsageBy by);  ///< "place"

/// The memory of a device divided among the few groups that hold most of it, and the rest, as columns: all that a
/// StackedUsage looks up.
struct UsageDivision {
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
    bool operator==(const Band&) const = default;
  };
  /// The highest moment of a block of events.
  struct Top {
    uint64_t event = 0;
    int64_t total = 0;
  };
  static constexpr size_t kEventsOfBlock = 256;

  UsageBy by = UsageBy::place;
  std::vector<Band> bands;      ///< from the bottom: what is pinned, then by what they hold at the peak
  Column<uint8_t> band_of_key;  ///< see usage_key()
  Column<int64_t> before;       ///< of every block of events what each band holds before it
  Column<int64_t> at_top;       ///< and at its highest moment
  Column<Top> tops;
  template <class Self, class F>
  static void each_part(Self& d, const F& f) {
    f(d.band_of_key);
    f(d.before);
    f(d.at_top);
    f(d.tops);
  }
};

/// How many keys tell elements apart: those that no element has are counted too.
size_t usage_keys(UsageBy by, const Snapshot& snapshot);
size_t size_class(int64_t bytes);
/// What an element is told apart by, below usage_keys(). Many stacks lead to one place: several keys may be one group.
inline size_t usage_key(UsageBy by, const Snapshot& s, const Timeline& t, uint32_t element) {
  switch (by) {
    case UsageBy::place:
      return std::min<size_t>(t.stack_of(element), s.stacks());  // the last: none was recorded
    case UsageBy::size:
      return size_class(t.bytes_of(element));
    case UsageBy::stream:
      return std::min<size_t>(t.element(element).stream, s.streams.size());
    case UsageBy::category:
      return std::min<size_t>(t.element(element).category, s.texts.size());
  }
  return 0;
}

/// Of one device: the timeline of that trace of the snapshot. Takes time with the number of events.
std::shared_ptr<const UsageDivision> divide_usage(const Snapshot& snapshot, const Timeline& timeline,
                                                  const UsageDivision::Options& options);
/// Whether columns that were mapped may be what divide_usage() made of that trace, by place: every number leads to
/// where something is, what the bands hold adds up to what is alive at the moments that they are told of, and at the
/// peak each holds what its own allocations do. How they share what is alive at the others is not gone through again.
/// The snapshot's own columns, and its lives, must be sound.
bool fits(const UsageDivision& division, const Snapshot& snapshot, size_t trace);

}  // namespace tenon::snapshot
