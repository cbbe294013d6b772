#pragma once
#include <memory>
#include <set>
#include <vector>

#include "core/memory_image.h"
#include "projects/leaks/leak.h"

namespace tenon::projects {

/// The run, brought to the step before a window, and the memory that its steps take from there on.
class LeakReplay {
 public:
  /// `progress` is told of every step; returning false throws Error "cancelled".
  LeakReplay(Project& project, const RunInfo& run, const LeakPlan& plan, std::function<void()> stepped);
  ~LeakReplay();

  void step();
  const std::vector<double>& losses() const { return losses_; }
  const tracing::Survivors& survivors() const { return *survivors_; }
  TrainingSession& session() const { return replayer_->session(); }
  /// Of survivors that are at least a step old and of these places, those are emptied whose owner is among `owners`.
  void empty_tensors(const std::vector<tracing::MemoryPlace>& places, const std::set<tracing::TensorOwner>& owners);
  int64_t emptied() const { return emptier_.count(); }
  /// Who held what was left over when tensors were emptied last.
  const std::vector<tracing::Holding>& left() const { return left_; }

 private:
  std::function<void()> stepped_;
  CleanMemory clean_;
  tracing::TensorEmptier emptier_;
  std::unique_ptr<Replayer> replayer_;
  std::unique_ptr<tracing::Survivors> survivors_;
  std::vector<double> losses_;
  std::vector<tracing::Holding> left_;
};

}  // namespace tenon::projects
