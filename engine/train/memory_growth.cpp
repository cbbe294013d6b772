#include "engine/train/memory_growth.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/pool.h"

namespace tenon {
namespace {
std::atomic<int64_t> awaiting{0};
}  // namespace

AwaitingWrite::AwaitingWrite(int64_t bytes) : bytes_(bytes) { awaiting += bytes_; }
AwaitingWrite::~AwaitingWrite() { awaiting -= bytes_; }
AwaitingWrite& AwaitingWrite::operator=(AwaitingWrite&& o) noexcept {
  awaiting -= std::exchange(bytes_, std::exchange(o.bytes_, 0));
  return *this;
}

/// In this order: a state that goes in between stands above what is kept for a step, and does not lower it.
int64_t live_bytes_of_training() {
  const int64_t live = pool_stats().live_bytes;
  return live - awaiting;
}

namespace {
/// Before the first step, and after each.
std::vector<int64_t> kept_of(const std::vector<int64_t>& live) {
  std::vector<int64_t> kept(live.size() + 1, 0);
  std::copy(live.begin(), live.end(), kept.begin() + 1);
  for (size_t i = live.size(); i-- > 0;) kept[i] = std::min(kept[i], kept[i + 1]);
  return kept;
}
}  // namespace

MemoryGrowth growth_of(const std::vector<int64_t>& live) {
  MemoryGrowth g;
  const size_t n = live.size();
  if (n == 0) return g;
  const std::vector<int64_t> kept = kept_of(live);
  g.kept = kept[n];
  for (size_t i = 0; i < n; ++i)
    if (kept[i + 1] > kept[i]) g.last_growth = static_cast<int64_t>(i);
  const size_t half = n / 2;
  g.bytes_a_step = static_cast<double>(kept[n] - kept[half]) / static_cast<double>(n - half);
  if (n < static_cast<size_t>(kLeastGrowthSteps)) return g;
  int64_t least = INT64_MAX, most = 0;
  for (size_t q = 1; q < 4; ++q) {
    const int64_t added = kept[n * (q + 1) / 4] - kept[n * q / 4];
    least = std::min(least, added);
    most = std::max(most, added);
  }
  constexpr int64_t kAlike = 8;  // a quarter adds at least this part of what another one does
  g.goes_on = least > 0 && least * kAlike >= most;
  return g;
}

namespace {
constexpr size_t kLeastSteps = 64, kMostSteps = 4096, kLonger = 4;
constexpr int kLooks = 4;           // one after the other that see growth
constexpr int64_t kAboveNoise = 2;  // times what usually stands above what is kept
constexpr double kOffLine = 1.0 / 5;

/// Of `kept`: how far from a straight line it is at most, as a part of what it grows by over its last three quarters.
double off_line(const std::vector<int64_t>& kept) {
  const size_t n = kept.size() - 1, from = n / 4;
  const double grown = static_cast<double>(kept[n] - kept[from]), steps = static_cast<double>(n - from);
  double most = 0;
  for (size_t i = from; i <= n; ++i)
    most = std::max(
        most, std::abs(static_cast<double>(kept[i] - kept[from]) - grown * static_cast<double>(i - from) / steps));
  return most / grown;
}
}  // namespace

GrowthWatch::GrowthWatch(int64_t steps_per_epoch)
    : length_(std::clamp<size_t>(2 * static_cast<size_t>(std::max<int64_t>(steps_per_epoch, 0)), kLeastSteps,
                                 kMostSteps)) {}

double GrowthWatch::growth_over(size_t steps) const {
  std::vector<int64_t> live(last_.end() - static_cast<int64_t>(steps), last_.end());
  const int64_t before = *std::min_element(live.begin(), live.end());
  for (int64_t& v : live) v -= before;
  const MemoryGrowth g = growth_of(live);
  if (!g.goes_on) return 0;
  const std::vector<int64_t> kept = kept_of(live);
  if (off_line(kept) > kOffLine) return 0;
  for (size_t i = 0; i < steps; ++i) live[i] -= kept[i + 1];  // what stands above it
  const auto usual = live.begin() + static_cast<int64_t>(steps * 3 / 4);
  std::nth_element(live.begin(), usual, live.end());
  return g.kept >= kAboveNoise * *usual ? g.bytes_a_step : 0;
}

double GrowthWatch::take(int64_t live_bytes) {
  if (last_.size() == 2 * kMostSteps) last_.erase(last_.begin(), last_.end() - static_cast<int64_t>(kMostSteps));
  last_.push_back(live_bytes);
  if (last_.size() < length_ || ++since_ < length_ / 8) return growth_;
  since_ = 0;
  double seen = 0;
  for (size_t n = length_; seen == 0 && n <= std::min(last_.size(), kMostSteps); n *= kLonger) seen = growth_over(n);
  in_a_row_ = seen > 0 ? in_a_row_ + 1 : 0;
  growth_ = in_a_row_ >= kLooks ? seen : 0;
  return growth_;
}

}  // namespace tenon
