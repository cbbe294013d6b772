#pragma once
#include <memory>
#include <string>

#include "tracing/analyses/memory_what_if.h"
#include "views/shared/canvas_model.h"

namespace tenon::views {

/// What is reserved along a recording under each of the settings that were tried, over one another, with the limit.
class WhatIfCurves : public CanvasModel {
 public:
  enum HitKind { legend = 1 };  ///< id: of the try

  /// Null: none.
  void show(std::shared_ptr<const tracing::WhatIf> what_if);
  const std::shared_ptr<const tracing::WhatIf>& what_if() const { return what_if_; }
  /// The try that stands out; -1: none does.
  int chosen() const { return chosen_; }
  void choose(int which);

  bool pointer(const PointerEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  int tries() const { return what_if_ ? static_cast<int>(what_if_->tries.size()) : 0; }
  float draw_legend(Scene& scene, Box box) const;
  void draw_curve(Scene& scene, Box plot, int which, double top) const;

  std::shared_ptr<const tracing::WhatIf> what_if_;
  int chosen_ = -1;
};

}  // namespace tenon::views
