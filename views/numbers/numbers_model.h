#pragma once
#include <memory>
#include <string>
#include <vector>

#include "projects/audit.h"
#include "views/shared/canvas_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// How far the numbers of a step are from a reference, op by op: a picture of how the difference grows, and its rows.
class NumbersModel : public CanvasModel {
 public:
  enum HitKind { plot = 1 };
  using Shared = std::shared_ptr<const projects::Audit>;

  /// Null: none. The first op beyond the tolerance is chosen.
  void set_audit(Shared audit);
  const Shared& audit() const { return audit_; }
  /// Index into the differences; -1: none.
  int64_t chosen() const { return chosen_; }
  void choose(int64_t at);
  /// A row an op, in their order. A row's selection is its number among them and no op of the window's.
  Table table() const;
  static Selection row_of(int64_t at) { return Selection::op(at, "numbers"); }

  bool pointer(const PointerEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

  std::function<void()> on_choose;  ///< another op was chosen in the picture

 protected:
  void draw(Scene& scene) override;

 private:
  /// log10 of a relative difference, upright; 0 lies at the foot.
  struct Upright {
    int lo = -9, hi = 0;  ///< powers of ten
    Box box;
    float to_px(double relative) const;
  };
  const std::vector<tracing::OpDifference>& ops() const;
  float x_of(int64_t at, Box plot) const;
  Upright upright(Box plot) const;
  void draw_scale(Scene& scene, const Upright& y) const;
  void draw_phases(Scene& scene, Box plot) const;
  void draw_points(Scene& scene, const Upright& y);
  std::string tip(const tracing::OpDifference& op) const;
  void choose_here(int64_t at);

  Shared audit_;
  int64_t chosen_ = -1;
};

}  // namespace tenon::views
