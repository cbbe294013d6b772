#pragma once
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/pool.h"
#include "core/state.h"

namespace tenon::tracing {

/// Who takes memory: a layer, an op, a part of the step, and what for.
struct MemoryPlace {
  uint16_t module = 0, op = 0;
  Phase phase = Phase::none;
  Category category = Category::other;
  bool operator==(const MemoryPlace&) const = default;
  /// "mul in the forward pass of layers.2 (activation)"
  std::string text() const;
  std::string module_name() const;  ///< empty: none
  std::string op_name() const;      ///< empty: none
};

/// The blocks that a session takes while it lives, by place and step, and which of them are still there.
class Survivors : public MemoryObserver {
 public:
  /// Of the threads that work for one group (TrainingSession::group()).
  explicit Survivors(uint32_t group);
  ~Survivors() override;

  /// A step has ended: what is live now belongs to it.
  void end_step();
  int64_t steps() const { return steps_; }

  struct OfPlace {
    MemoryPlace place;
    std::vector<int64_t> bytes, blocks;  ///< live at the end of each step
  };
  std::vector<OfPlace> places() const;

  struct Block {
    Storage* storage;
    int64_t bytes, step;  ///< the step that took it, from 0
    size_t place;         ///< among places()
  };
  /// Those that are live, oldest first.
  std::vector<Block> live() const;

  void taken(const Storage& s) override;
  void given_back(const Storage& s) override;

 private:
  struct Kept {
    uint64_t hidden;  ///< the complement of its address: who looks for holders in memory does not find this list
    int64_t bytes, step;
    size_t place;
  };
  const uint32_t group_;
  mutable std::mutex mutex_;
  int64_t steps_ = 0;
  std::vector<OfPlace> places_;
  std::vector<int64_t> now_bytes_, now_blocks_;
  std::unordered_map<uint32_t, Kept> live_;  ///< by the number of the storage
};

}  // namespace tenon::tracing
