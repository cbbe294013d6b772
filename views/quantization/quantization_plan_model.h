#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "projects/quantize_plan.h"
#include "views/shared/canvas_model.h"

namespace tenon::views {

/// The exports of a model in fewer bits as points: along the file's size, upwards how good they are, the larger the
/// longer a sample takes. A line joins those of the front. A click, or the arrows, chooses one; a double click, or
/// Enter, asks for its file.
class QuantizationPlanModel : public CanvasModel {
 public:
  /// Null: there is none. What is chosen stays chosen while more points come.
  void set_plan(std::shared_ptr<const projects::QuantizePlan> plan);
  const projects::PlanPoint* chosen() const;
  void choose(std::optional<size_t> point);
  bool pointer(const PointerEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;
  /// What is said of the chosen point, with its figures.
  std::string chosen_text() const;

  std::function<void()> on_choose;
  std::function<void()> on_export;

 protected:
  void draw(Scene& scene) override;

 private:
  /// Points by size, the smallest first.
  std::vector<size_t> by_size() const;
  void step(int by);

  std::shared_ptr<const projects::QuantizePlan> plan_;
  std::optional<size_t> chosen_;
};

}  // namespace tenon::views
