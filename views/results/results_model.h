#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "projects/results.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// Where a trained model errs: which classes it takes for which, how far its confidence can be trusted, how the losses
/// of the samples lie. A cell that is chosen leaves only its samples in the list beside it.
class ResultsModel : public StepModel {
 public:
  enum HitKind { none, cell = 1 };
  using Shared = std::shared_ptr<const projects::Results>;

  /// Null: none.
  void set_results(Shared results);
  const Shared& results() const { return results_; }
  /// The truth and the guess of the chosen cell.
  std::optional<std::pair<size_t, size_t>> cell_chosen() const { return chosen_; }
  void choose(std::optional<std::pair<size_t, size_t>> cell);

  /// Samples by their loss, the worst first, of the chosen cell or all; at most kListed of them.
  Table samples() const;
  static constexpr size_t kListed = 1000;
  /// A row a class: how many, precision, recall, F1. Of tasks without classes what the evaluation says.
  Table table() const;
  /// "first at step 300: 2,000 samples, accuracy 98.00 %"
  std::string headline() const;

  void set_selection(const Selection& s) override;
  bool pointer(const PointerEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

  std::function<void()> on_choose;  ///< another cell was chosen

 protected:
  void draw(Scene& scene) override;

 private:
  void draw_confusion(Scene& scene, Box box) const;
  void draw_calibration(Scene& scene, Box box) const;
  void draw_losses(Scene& scene, Box box) const;
  bool fits(const projects::Prediction& p) const;

  Shared results_;
  std::vector<size_t> order_;  ///< of the predictions, the worst first
  std::optional<std::pair<size_t, size_t>> chosen_;
  int64_t row_ = -1;  ///< the selected sample
};

}  // namespace tenon::views
