#include "tracing/analyses/memory_beside.h"

#include <algorithm>
#include <utility>

namespace tenon::tracing {
namespace {

/// The year 2001: what counts from a machine's start is never that late.
constexpr int64_t kTimeOfDay = 1'000'000'000'000'000'000;

}  // namespace

std::optional<traces::CounterCurve> memory_beside(const traces::Trace& trace, const snapshot::Snapshot& s,
                                                  const snapshot::Timeline& timeline, size_t device, std::string name) {
  constexpr size_t kMost = 200'000;
  if (device >= s.traces.size() || timeline.events() == 0) return {};
  const auto& time = s.events.time_us;
  const size_t begin = s.traces[device].begin, n = timeline.events();
  const __int128 base = trace.base(), from = base + trace.begin(), to = base + trace.finish();
  if (from < kTimeOfDay || static_cast<__int128>(time[begin]) * 1000 < kTimeOfDay) return {};
  const auto at = [&](size_t event) { return static_cast<__int128>(time[begin + event]) * 1000; };
  if (at(0) > to || at(n - 1) < from) return {};
  for (size_t i = 1; i < n; ++i)
    if (time[begin + i] < time[begin + i - 1]) return {};
  const auto first_at = [&](__int128 moment) {
    size_t low = 0, high = n;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (at(middle) < moment)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  // What held when the trace began is told by the event before it.
  const size_t low = first_at(from), first = low ? low - 1 : 0, last = std::max(first_at(to + 1), first + 1);
  std::vector<int64_t> times;
  std::vector<double> bytes;
  const size_t buckets = std::min(kMost, last - first);
  const auto usage = timeline.usage(first, last, buckets);
  for (size_t b = 0; b < usage.size(); ++b) {
    const size_t event = first + (last - first) * b / buckets;
    times.push_back(static_cast<int64_t>(at(event) - base));
    bytes.push_back(static_cast<double>(usage[b].high));
  }
  return traces::CounterCurve(std::move(name), true, std::move(times), std::move(bytes));
}

}  // namespace tenon::tracing
