#pragma once
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "engine/train/watch.h"

namespace tenon {

/// The last values of the metrics whose medians watches compare with.
class WatchMemory {
 public:
  WatchMemory() = default;
  explicit WatchMemory(const std::vector<Watch>& watches);
  /// The metrics, each with how many of its last values are wanted.
  const std::map<std::string, int64_t>& wants() const { return wants_; }
  /// A value that was recorded; they come in order. Of a metric that nobody wants nothing is kept.
  void take(const std::string& metric, double value);
  /// What `w` compares with, of the values that were taken so far: NaN where there are not as many as it wants, or none
  /// of them is finite, and where it compares with no median.
  double median(const Watch& w) const;

 private:
  std::map<std::string, int64_t> wants_;
  std::map<std::string, std::deque<double>> last_;
};

}  // namespace tenon
