#include "tracing/trace/counter_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace tenon::traces {

namespace {
constexpr size_t kBlock = 64;

/// Many files are in order already; of equal times the last one holds.
void put_in_order(std::vector<int64_t>& time, std::vector<double>& value) {
  if (std::is_sorted(time.begin(), time.end())) return;
  std::vector<size_t> order(time.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return time[a] < time[b]; });
  std::vector<int64_t> t(time.size());
  std::vector<double> v(value.size());
  for (size_t i = 0; i < order.size(); ++i) t[i] = time[order[i]], v[i] = value[order[i]];
  time.swap(t);
  value.swap(v);
}
}  // namespace

CounterCurve::CounterCurve(std::string name, bool bytes, std::vector<int64_t> time, std::vector<double> value)
    : name_(std::move(name)), bytes_(bytes), time_(std::move(time)), value_(std::move(value)) {
  for (size_t b = 0; b < value_.size(); b += kBlock) {
    double most = -std::numeric_limits<double>::infinity();
    for (size_t i = b; i < std::min(b + kBlock, value_.size()); ++i)
      if (value_[i] > most) most = value_[i];
    block_most_.push_back(most);
    if (std::isfinite(most)) peak_ = std::max(peak_, most);
  }
}

double CounterCurve::most(int64_t from, int64_t to) const {
  // What held when the stretch began was told before it.
  auto first = static_cast<size_t>(std::upper_bound(time_.begin(), time_.end(), from) - time_.begin());
  const auto last = static_cast<size_t>(std::lower_bound(time_.begin(), time_.end(), to) - time_.begin());
  if (first > 0) --first;
  double most = -std::numeric_limits<double>::infinity();
  for (size_t i = first; i < last;) {
    if (i % kBlock == 0 && i + kBlock <= last) {
      most = std::max(most, block_most_[i / kBlock]);
      i += kBlock;
    } else {
      if (value_[i] > most) most = value_[i];
      ++i;
    }
  }
  return std::isfinite(most) ? most : std::numeric_limits<double>::quiet_NaN();
}

CounterCurve CounterCurve::moved(std::string name, int64_t by) const {
  CounterCurve c = *this;
  c.name_ = std::move(name);
  for (int64_t& t : c.time_) t += by;
  return c;
}

std::vector<CounterCurve> counter_curves(const Trace& trace) {
  struct Device {
    std::vector<int64_t> time;
    std::vector<double> allocated, reserved;
    double live = 0;
    bool reserves = false;
  };
  std::map<std::pair<int32_t, int32_t>, Device> devices;
  for (const MemoryEvent& m : trace.memory()) {
    Device& d = devices[{m.device_type, m.device}];
    d.live = m.allocated >= 0 ? static_cast<double>(m.allocated) : d.live + static_cast<double>(m.bytes);
    d.time.push_back(m.time);
    d.allocated.push_back(d.live);
    d.reserved.push_back(static_cast<double>(std::max<int64_t>(m.reserved, 0)));
    d.reserves |= m.reserved > 0;
  }
  std::vector<CounterCurve> curves;
  for (auto& [id, d] : devices) {
    const std::string device = id.first == 0 ? std::string("CPU") : "GPU " + std::to_string(id.second);
    std::vector<int64_t> time = d.time;
    put_in_order(time, d.allocated);
    curves.emplace_back(device + " memory", true, std::move(time), std::move(d.allocated));
    if (!d.reserves) continue;
    put_in_order(d.time, d.reserved);
    curves.emplace_back(device + " reserved", true, std::move(d.time), std::move(d.reserved));
  }
  for (const Counter& c : trace.counters()) {
    std::vector<int64_t> time = c.time;
    std::vector<double> value = c.value;
    value.resize(time.size());
    put_in_order(time, value);
    curves.emplace_back(c.name, false, std::move(time), std::move(value));
  }
  return curves;
}

}  // namespace tenon::traces
