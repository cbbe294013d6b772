#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "projects/results.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// An area under a curve: "0.9912"; "–" where there is none.
std::string format_area(double area);

/// Where a trained model errs: which classes it takes for which, how far its confidence can be trusted, how the losses
/// of the samples lie, and how well its shares rank each class. A cell that is chosen leaves only its samples in the
/// list beside it.
class ResultsModel : public StepModel {
 public:
  enum HitKind { none, cell = 1, ranked, roc, precision_recall, embedded };
  /// What the picture shows: confusion, calibration and losses; the ROC and precision-recall curves; or every sample
  /// as the model sees it.
  enum class Page : uint8_t { errors, curves, embedding };
  using Shared = std::shared_ptr<const projects::Results>;

  /// Null: none.
  void set_results(Shared results);
  const Shared& results() const { return results_; }
  Page page() const { return page_; }
  void set_page(Page page);
  using Places = projects::Placement::Places;
  /// Where a placement (by its name) puts the samples of these results; of others it is let go.
  void set_places(const Shared& of, const std::string& placement, std::shared_ptr<const Places> places);
  bool has_places(const std::string& placement) const { return placed_.count(placement) > 0; }
  /// By that placement, once it is there; empty: along the two directions of the principal plane.
  void place_by(const std::string& placement);
  /// What the samples are placed by as they are shown; null: along the two directions.
  const projects::Placement* placement() const;
  /// Where the samples of the results stand, by row, as it is shown.
  const Places& places() const;
  /// The truth and the guess of the chosen cell.
  std::optional<std::pair<size_t, size_t>> cell_chosen() const { return chosen_; }
  void choose(std::optional<std::pair<size_t, size_t>> cell);

  /// Samples by their loss, the worst first, of the chosen cell or all; at most kListed of them.
  Table samples() const;
  static constexpr size_t kListed = 1000;
  /// A row a class: how many, precision, recall, F1. Of tasks without classes what the evaluation says.
  Table table() const;
  /// A row a ranked class with the areas under its curves, and their means last.
  Table ranking() const;
  /// The classes whose curves are drawn: of a binary task "yes" alone.
  std::vector<size_t> ranked_classes() const;
  /// The one whose curves stand out; of none that was chosen the one with the smallest area under the ROC curve.
  size_t ranked_class() const;
  void choose_ranked(size_t c);
  /// A row a sample with its truth, its guess and where it lies.
  Table embedding() const;
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
  void draw_errors(Scene& scene, Box rest) const;
  // results_curves.cpp
  void draw_curves(Scene& scene, Box rest) const;
  void draw_roc(Scene& scene, Box box) const;
  void draw_precision_recall(Scene& scene, Box box) const;
  void draw_areas(Scene& scene, Box box) const;
  /// The point of the class that stands out which lies nearest to the pointer, in words over the plot.
  void draw_read_out(Scene& scene, Box box, Box area, HitKind plot) const;
  bool key_of_curves(const KeyEvent& e);
  // results_embedding.cpp
  void draw_embedding(Scene& scene, Box rest) const;
  void draw_points(Scene& scene, Box area) const;
  void draw_classes(Scene& scene, Box box) const;
  bool pointer_on_embedding(const PointerEvent& e);
  bool key_of_embedding(const KeyEvent& e);
  /// Where a sample lies in the plot; nothing of one that is not drawn.
  std::optional<Point> place_of(int64_t row, Box area) const;
  std::string words_of(int64_t row) const;
  bool fits(const projects::Prediction& p) const;

  Shared results_;
  std::vector<size_t> order_;  ///< of the predictions, the worst first
  std::optional<std::pair<size_t, size_t>> chosen_;
  int64_t row_ = -1;  ///< the selected sample
  Page page_ = Page::errors;
  std::map<std::string, std::shared_ptr<const Places>> placed_;  ///< by placement
  std::string placed_by_;
  std::optional<size_t> ranked_;
  /// The plot that the pointer is over, and where: shares of its width and height, from the lower left.
  int hovered_ = none;
  Point hover_;
  int64_t under_ = -1;  ///< the sample under the pointer
};

}  // namespace tenon::views
