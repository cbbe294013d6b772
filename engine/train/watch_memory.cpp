#include "engine/train/watch_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon {

WatchMemory::WatchMemory(const std::vector<Watch>& watches) {
  for (const Watch& w : watches)
    if (!w.median_of.empty()) wants_[w.median_of] = std::max(wants_[w.median_of], w.median_over);
}

void WatchMemory::take(const std::string& metric, double value) {
  const auto wanted = wants_.find(metric);
  if (wanted == wants_.end()) return;
  std::deque<double>& last = last_[metric];
  last.push_back(value);
  if (static_cast<int64_t>(last.size()) > wanted->second) last.pop_front();
}

double WatchMemory::median(const Watch& w) const {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto at = last_.find(w.median_of);
  if (w.median_of.empty() || at == last_.end() || static_cast<int64_t>(at->second.size()) < w.median_over) return kNone;
  std::vector<double> values(at->second.end() - w.median_over, at->second.end());
  std::erase_if(values, [](double v) { return !std::isfinite(v); });
  if (values.empty()) return kNone;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.size() % 2 ? *middle : (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace tenon
