#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/nn/module.h"
#include "engine/train/memory_growth.h"
#include "engine/train/session.h"
#include "engine/train/watch.h"
#include "engine/train/watch_memory.h"

namespace tenon {

/// Watches at work on a session: see Note [Watches]. It goes before the session does. Of several tensors that fulfil a
/// condition a hit names the one that is furthest beyond the bound, of equal ones the first.
class WatchList : public TrainingObserver {
 public:
  /// Throws Error (usage) for a pattern that fits nothing, and for a metric that this run does not record.
  /// `recipe`: that of the session, or the one it will have from its next step on.
  WatchList(TrainingSession& session, const Recipe& recipe, std::vector<Watch> watches);
  ~WatchList() override;
  WatchList(const WatchList&) = delete;

  const std::vector<Watch>& watches() const { return watches_; }

  // What a run has recorded before its next step.
  /// The values that medians are taken of.
  WatchMemory& memory() { return memory_; }
  /// Whether a watch held when it was looked at last.
  void recall_held(size_t watch, bool held) { states_[watch].held = held; }

  /// An evaluation that is recorded.
  void on_evaluation(const Evaluation& e, int64_t step);
  /// What was hit since the last call, by step.
  std::vector<WatchHit> take() { return std::exchange(hits_, {}); }
  /// Spent on looking for one of them; a tensor that several look at is shared among them.
  double seconds(size_t watch) const;

  void on_step_begin(int64_t step) override;
  void on_batch(const data::Batch&) override { in_forward_ = true; }
  void on_backward() override;
  void on_step_end(const StepResult& r) override;

 private:
  /// A tensor that is looked at.
  struct Look {
    WatchSubject subject;
    std::string name;
    Tensor tensor;  ///< the parameter; undefined for an activation
    int users = 0;
    double seconds = 0;
    // Of the step.
    bool due = false;
    Moments of;
    Tensor before;  ///< of an update: the weights before it
  };
  struct State {
    std::vector<size_t> looks, weights;  ///< the second where it is measured by weights: those of the first
    bool held = false, due = false;
    double seconds = 0;
  };
  size_t look(WatchSubject subject, const std::string& name, const Tensor& tensor);
  void find_tensors(const Watch& w, State& s);
  void look_at_outputs();
  void judge(size_t watch, const std::vector<std::pair<std::string, double>>& metrics, int64_t step);
  void remember(const std::vector<std::pair<std::string, double>>& metrics);

  TrainingSession& session_;
  std::vector<Watch> watches_;
  std::vector<State> states_;
  WatchMemory memory_;
  std::unique_ptr<GrowthWatch> growth_;  ///< null where no watch is of it
  std::vector<Look> looks_;
  std::vector<std::pair<nn::Module*, int>> hooks_;
  std::vector<WatchHit> hits_;
  bool in_forward_ = false, scaled_ = false;
};

}  // namespace tenon
