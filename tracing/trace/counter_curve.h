#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tracing/trace/trace_store.h"

namespace tenon::traces {

/// A value that is told at certain times and holds until the next of them: a counter of a trace, or its live memory.
/// The largest value of any stretch of time costs about as much as a few hundred comparisons, however many there are.
class CounterCurve {
 public:
  /// `time` ascends and is as long as `value`.
  CounterCurve(std::string name, bool bytes, std::vector<int64_t> time, std::vector<double> value);
  const std::string& name() const { return name_; }
  bool bytes() const { return bytes_; }  ///< else it has the unit of who wrote it
  size_t size() const { return time_.size(); }
  double peak() const { return peak_; }  ///< 0 where no value is above
  /// The largest of the values that held at some time in [from, to); NaN before the first.
  double most(int64_t from, int64_t to) const;
  double at(int64_t time) const { return most(time, time + 1); }
  /// The same with another name, so many nanoseconds later.
  CounterCurve moved(std::string name, int64_t by) const;

 private:
  std::string name_;
  bool bytes_;
  std::vector<int64_t> time_;
  std::vector<double> value_, block_most_;
  double peak_ = 0;
};

/// The memory of each device as the profiler saw it taken and freed, then the counters of the file.
std::vector<CounterCurve> counter_curves(const Trace& trace);

}  // namespace tenon::traces
