#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "tracing/trace/trace_store.h"

namespace tenon::views {

/// How often and how long the events of one name ran.
struct NameSum {
  uint32_t name = 0;
  int64_t calls = 0;
  double ns = 0;
  traces::EventId longest = traces::kNone;
};

/// Which events of a trace are added up by name. A value of its own: it takes time with the number of events, on any
/// thread.
struct LaneNames {
  std::shared_ptr<const traces::Trace> trace;
  std::vector<std::pair<traces::EventId, traces::EventId>> lanes;  ///< of each the events that count
  bool by_match = false;                                           ///< and of those only the matches
  std::vector<traces::EventId> matches;                            ///< sorted
  int64_t origin = 0;                                              ///< what touches the marked stretch behind it
  bool marked = false;
  double from = 0, to = 0;

  /// Longest first. Names that hold a number of their own may be millions: those left out took the least.
  static constexpr size_t kMost = 5000;
  std::vector<NameSum> sums() const;
};

}  // namespace tenon::views
