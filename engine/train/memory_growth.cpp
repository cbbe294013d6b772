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

namespace {
constexpr size_t kLeastSteps = 64, kMostSteps = 4096, kLonger = 4;
constexpr int kLooks = 4;           // one after the other that see growth
constexpr int64_t kAboveNoise = 2;  // times what usually stands above what is kept
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
  int64_t kept = live.back();
  for (size_t i = steps; i-- > 0;) {
    kept = std::min(kept, live[i]);
    live[i] -= kept;  // what stands above it
  }
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
