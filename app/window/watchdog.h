#pragma once
#include <QObject>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tenon::app {

/// How long the UI thread is deaf. A thread of its own knocks every five milliseconds, whether the last knock was heard
/// or not: what keeps the UI thread for a second makes two hundred hands wait, and counts as often. What of it is work
/// of the UI thread itself is told beside it: that does not grow where others use the machine too.
class Watchdog {
 public:
  Watchdog();  ///< in the UI thread
  ~Watchdog();
  /// From now on knocks belong to this.
  void begin(const std::string& during);
  struct Heard {
    std::string during;
    double p50_ms = 0, p99_ms = 0, worst_ms = 0;
    double work_p99_ms = 0, work_worst_ms = 0;
  };
  /// In the order in which they began; what nobody knocked during is left out.
  std::vector<Heard> heard() const;

 private:
  class Ear;
  std::unique_ptr<Ear> ear_;
  std::atomic<size_t> during_{0};
  std::atomic<bool> quit_{false};
  std::thread thread_;
};

/// Of the process, in nanoseconds: of all its threads.
int64_t processor_time();

/// The value that so many hundredths of them do not exceed; they must not be empty.
double percentile(std::vector<double> of, int hundredths);

}  // namespace tenon::app
