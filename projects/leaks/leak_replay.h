#pragma once
#include <exception>
#include <memory>
#include <set>
#include <vector>

#include "core/memory_image.h"
#include "projects/leaks/leak.h"

namespace tenon::projects {

/// The run, brought to the step before a window, and the memory that its steps take from there on.
class LeakReplay {
 public:
  /// `stepped` is called after every step, those before the window included.
  LeakReplay(Project& project, const RunInfo& run, const LeakPlan& plan, std::function<void()> stepped);
  ~LeakReplay();

  void step();
  const std::vector<double>& losses() const { return losses_; }
  const tracing::Survivors& survivors() const { return *survivors_; }
  /// What is live of these places after each step; after the last step only of what is at least a step old, and without
  /// what was emptied since.
  std::vector<int64_t> bytes_of(const std::vector<tracing::MemoryPlace>& places) const;
  TrainingSession& session() const { return replayer_->session(); }
  /// Of survivors that are at least a step old and of these places, those are emptied whose owner is among `owners`.
  void empty_tensors(const std::vector<tracing::MemoryPlace>& places, const std::set<tracing::TensorOwner>& owners);
  int64_t emptied() const { return emptier_.count(); }
  /// Who holds these survivors. Throws Error where memory cannot be looked at (MemoryImage).
  std::vector<tracing::Holding> holders_of(const std::vector<Storage*>& survivors) const;
  /// Who held what was left over when tensors were emptied last.
  const std::vector<tracing::Holding>& left() const { return left_; }

 private:
  /// The survivors of these places that are at least a step old.
  std::vector<tracing::Survivors::Block> survivors_of(const std::vector<tracing::MemoryPlace>& places) const;

  std::function<void()> stepped_;
  CleanMemory clean_;
  std::unique_ptr<MemoryImage> before_;  ///< of the first step of the window; null where memory cannot be looked at
  std::exception_ptr why_not_;           ///< that it cannot: what leaks nothing is known without
  tracing::TensorEmptier emptier_;
  std::unique_ptr<Replayer> replayer_;
  std::unique_ptr<tracing::Survivors> survivors_;
  std::vector<double> losses_;
  std::vector<tracing::Holding> left_;
};

}  // namespace tenon::projects
