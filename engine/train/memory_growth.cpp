#include "engine/train/memory_growth.h"

#include <algorithm>

namespace tenon {

MemoryGrowth growth_of(const std::vector<int64_t>& live) {
  MemoryGrowth g;
  const size_t n = live.size();
  if (n == 0) return g;
  std::vector<int64_t> kept(n + 1, 0);  // before the first step, and after each
  for (size_t i = 0; i < n; ++i) kept[i + 1] = live[i];
  for (size_t i = n; i-- > 0;) kept[i] = std::min(kept[i], kept[i + 1]);
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

GrowthWatch::GrowthWatch(int64_t steps_per_epoch)
    : length_(static_cast<size_t>(std::clamp<int64_t>(2 * steps_per_epoch, 64, 4096))) {}

double GrowthWatch::take(int64_t live_bytes) {
  if (last_.size() == 2 * length_) last_.erase(last_.begin(), last_.end() - static_cast<int64_t>(length_) + 1);
  last_.push_back(live_bytes);
  if (last_.size() < length_ || ++since_ < length_ / 8) return growth_;
  since_ = 0;
  std::vector<int64_t> window(last_.end() - static_cast<int64_t>(length_), last_.end());
  const int64_t before = *std::min_element(window.begin(), window.end());
  for (int64_t& v : window) v -= before;
  const MemoryGrowth g = growth_of(window);
  growth_ = g.goes_on ? g.bytes_a_step : 0;
  return growth_;
}

}  // namespace tenon
