#pragma once
#include <string>

#include "tracing/record/step_record.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// Where a run first stopped being finite: the op, the element, what went into it, and how it spread.
class NanModel : public StepModel {
 public:
  enum HitKind { none, op = 1, operand };
  enum class State { unknown, searching, clean, found };

  void set_searching();
  void set_clean(const std::string& run);
  /// A record whose `nan` is set.
  void set_found(const Links& links);
  /// Follows to a step where something was found; forgets what was known where another run is shown.
  void set_step(const Links& links) override;
  void set_selection(const Selection& s) override;
  void reset();

  State state() const { return state_; }
  const tracing::NanOrigin* origin() const { return links_ ? links_.record()->nan.get() : nullptr; }
  const Links& links() const { return links_; }
  const std::string& run() const { return run_; }
  /// The origin and the ops it spread to, in order.
  Table table() const;

  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  /// Left and Right: the ops that are not finite, in their order; Up and Down: what went into the first; Enter: the
  /// first.
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  float draw_sentence(Scene& scene, float y, float width);
  float draw_flow(Scene& scene, float y, float width);
  void draw_operand(Scene& scene, Box b, int index);
  void draw_spread(Scene& scene, Box b);
  int tensor_named(const std::string& name) const;
  void select_operand(int index);

  State state_ = State::unknown;
  Links links_;
  std::string run_;
  uint32_t selected_ = 0;
  int operand_ = -1;  ///< that the keys are on
  float scroll_ = 0, content_ = 0, height_ = 0;
};

}  // namespace tenon::views
