#pragma once
#include <cstdint>
#include <string>

namespace tenon {

/// What is done at the step where a condition begins to hold.
enum class WatchAction { count, mark, checkpoint, pause, stop };
inline constexpr WatchAction kWatchActions[] = {WatchAction::count, WatchAction::mark, WatchAction::checkpoint,
                                                WatchAction::pause, WatchAction::stop};

/// A step at which the condition of a watch held: see Note [Watches].
struct WatchHit {
  std::string watch;  ///< Watch::condition
  int64_t step = 0;
  std::string at;               ///< the tensor, or the metric
  double value = 0, bound = 0;  ///< of it, and what it was compared with
  bool begins = false;          ///< it did not hold when it was looked at before: what is to be done is done here
  WatchAction action = WatchAction::mark;
  bool operator==(const WatchHit&) const = default;
  /// "loss > 3 at step 12: loss is 3.25 (bound 3)"
  std::string text() const;
};

}  // namespace tenon
