#pragma once
#include <mutex>
#include <vector>

#include "core/pool.h"
#include "tracing/record/step_record.h"

namespace tenon::tracing {

/// Records every block the CPU pool gives out and takes back while it lives.
class MemoryHistory : public MemoryObserver {
 public:
  /// Of the threads that work for one group (TrainingSession::group()); 0: of all.
  explicit MemoryHistory(uint32_t group = 0);
  ~MemoryHistory() override;

  /// Blocks that were taken before the recording began, put in front at time 0.
  void alive_before(const Tensor& t, Category category, uint16_t module);
  /// The events so far, in order; times count from `start_ns`.
  std::vector<AllocEvent> events(int64_t start_ns);

  void taken(const Storage& s) override;
  void given_back(const Storage& s) override;

 private:
  const uint32_t group_;
  std::mutex mutex_;
  std::vector<AllocEvent> before_, events_;
};

/// Live bytes by category after each event: what a memory picture stacks.
struct MemoryCurve {
  std::vector<int64_t> time_ns;
  std::vector<std::vector<int64_t>> bytes;  ///< [kCategories][events]
  std::vector<int64_t> total;
  int64_t peak = 0;
  size_t peak_event = 0;
};
MemoryCurve memory_curve(const std::vector<AllocEvent>& events);

/// Indices of the allocations that are alive after event `at`.
std::vector<size_t> live_at(const std::vector<AllocEvent>& events, size_t at);

}  // namespace tenon::tracing
