#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/recipe.h"
#include "projects/run_driver.h"

namespace tenon::views {

/// A branch as a form has it: of which run, after which step, and what is changed.
class BranchDraft {
 public:
  BranchDraft(projects::RunInfo run, int64_t step);

  const projects::RunInfo& run() const { return run_; }
  int64_t step() const { return step_; }
  void set_step(int64_t step);
  /// As it is now: it did more steps.
  void set_run(projects::RunInfo run) { run_ = std::move(run); }
  /// The recipe that held there.
  const Recipe& recipe() const { return recipe_; }

  using Change = std::pair<std::string, AttrValue>;  ///< a key of the recipe, and its new value
  const std::vector<Change>& changes() const { return changes_; }
  /// The keys that row `at` may have: those that say something to the recipe as the other rows make it, without theirs.
  std::vector<AttrDef> choices(size_t at) const;
  /// Of the key of a row, as the recipe has it.
  AttrDef definition(size_t at) const;
  /// Another row, of the first of the usual keys that has none yet, with the value that holds.
  void add_change();
  /// Of another key, with the value that holds.
  void set_key(size_t at, const std::string& key);
  void set_value(size_t at, AttrValue value);
  void remove(size_t at);
  /// Samples as named_samples() reads them.
  void set_left_out(const std::string& text) { left_out_ = text; }
  void set_name(const std::string& name) { name_ = name; }
  /// The model that the project has now, where that is another than the run's; null: it is not.
  void offer_model(std::shared_ptr<const ModelSpec> model) { offered_ = std::move(model); }
  const std::shared_ptr<const ModelSpec>& offered_model() const { return offered_; }
  /// The branch has that one (Note [Surgery]).
  void set_with_model(bool on) { with_model_ = on && offered_; }
  bool with_model() const { return with_model_; }
  /// What of the recipe is set other than it was there, as `--set` takes it.
  std::vector<std::pair<std::string, std::string>> settings() const;

  /// What cannot be; empty: it can.
  std::string fault() const;
  /// "optimizer.lr 0.01 → 0.003, without samples 7"; empty where nothing is changed.
  std::string said() const;
  projects::TrainOptions options() const;

 private:
  Recipe changed() const;

  projects::RunInfo run_;
  int64_t step_ = 0;
  Recipe recipe_;
  std::vector<Change> changes_;
  std::string left_out_, name_;
  std::shared_ptr<const ModelSpec> offered_;
  bool with_model_ = false;
};

}  // namespace tenon::views
