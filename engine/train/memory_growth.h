#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tenon {

// Note [Growth that goes on]
// Memory that is live for a while says nothing: what is kept of it later does. So of the bytes that are live at the end
// of each step the least of all later steps is taken (what was not given back since), and growth is growth of that. It
// goes on where the second, third and fourth quarter of the steps each add to it, about alike: what warms up adds in
// the first alone, a cache that fills stops, and one that is emptied now and then comes back to where it was. Growth
// every few steps is seen as long as each quarter has one of them.

/// How the live memory of something goes on, step by step.
struct MemoryGrowth {
  bool goes_on = false;
  int64_t kept = 0;          ///< bytes, of what was taken since the first step
  double bytes_a_step = 0;   ///< over the later half
  int64_t last_growth = -1;  ///< the index of the last step that added to what is kept; -1: none did
};
/// `live`: bytes at the end of each step, of what was taken since the steps began.
MemoryGrowth growth_of(const std::vector<int64_t>& live);
/// Steps that a verdict needs.
inline constexpr int64_t kLeastGrowthSteps = 8;

// Note [Growth of a whole run]
// The live memory of a process goes up and down with batches that are ready and with what a window looks at. So what is
// kept has to have grown by twice what usually stands above it, and in looks one after the other; where it grows by
// less, more steps are looked at together, 4,096 at most. What grows by a few large pieces is a queue that fills: what
// is kept has to stay within a fifth of its growth of a straight line. States that wait for the disk are left out: they
// are as many as the disk is slow.

/// Bytes of a state that waits to be written, for as long as this lives. To be let go of before the state is.
class AwaitingWrite {
 public:
  AwaitingWrite() = default;
  explicit AwaitingWrite(int64_t bytes);
  AwaitingWrite(AwaitingWrite&& o) noexcept : bytes_(std::exchange(o.bytes_, 0)) {}
  AwaitingWrite& operator=(AwaitingWrite&& o) noexcept;
  ~AwaitingWrite();

 private:
  int64_t bytes_ = 0;
};
/// The live bytes of the pool without those of states that wait to be written. Thread-safe.
int64_t live_bytes_of_training();

/// Whether the memory of a run goes on growing while it trains: looked at over its last two epochs, 64 steps at least,
/// so that what is filled once an epoch has been. A step costs it next to nothing.
class GrowthWatch {
 public:
  explicit GrowthWatch(int64_t steps_per_epoch);
  /// What is live at the end of a step (live_bytes_of_training). The result is the growth in bytes a step; 0 while
  /// there is none that goes on, or too few steps were seen.
  double take(int64_t live_bytes);
  double bytes_a_step() const { return growth_; }

 private:
  /// Of the last so many steps; 0: none that goes on.
  double growth_over(size_t steps) const;
  size_t length_, since_ = 0;
  int in_a_row_ = 0;
  double growth_ = 0;
  std::vector<int64_t> last_;  ///< of up to twice what is looked at
};

}  // namespace tenon
