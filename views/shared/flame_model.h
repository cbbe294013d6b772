#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tracing/analyses/flame_difference.h"
#include "views/shared/step_model.h"
#include "views/shared/table.h"

namespace tenon::views {

/// A tree of who holds how much as a picture: a row a depth, a box a name as wide as its share, what it calls below it.
/// A box can fill the width; the way back is drawn above it.
class FlameModel : public StepModel {
 public:
  enum HitKind { none, box = 1 };
  using Shared = std::shared_ptr<const tracing::Flame>;

  /// What is drawn, and what its selections belong to: a document, or a recorded step. Null: nothing.
  void set_flame(Shared flame, int document, std::shared_ptr<const tracing::StepRecord> step = {});
  /// Two of them in one, of the documents A and B: boxes are as wide as the larger of the two, coloured by how much
  /// more or less B has. Null: nothing.
  void set_difference(std::shared_ptr<const tracing::FlamePair> pair, int a, int b);
  /// What a node is in A and in B of a difference; of kind none where it is not there.
  Selection in_a(uint32_t node) const;
  Selection in_b(uint32_t node) const;
  const Shared& flame() const { return flame_; }
  /// The node that fills the width; 0: everything does.
  uint32_t root() const { return root_; }
  void set_root(uint32_t node);
  /// The node that is marked; 0: none.
  uint32_t chosen() const { return chosen_; }
  void choose(uint32_t node);
  /// How much of the shown root lies in boxes whose name the filter finds, each counted once; below 0: no name is
  /// looked for.
  double found() const;
  /// "12.3 ms": in the flame's unit.
  std::string amount(int64_t v) const;
  /// Every name: what its boxes hold with and without what they call, and how many.
  Table names() const;

  void set_filter(const Filter& f) override;
  bool pointer(const PointerEvent& e) override;
  bool wheel(const WheelEvent& e) override;
  bool key(const KeyEvent& e) override;
  std::string summary() const override;

 protected:
  void draw(Scene& scene) override;

 private:
  struct Laid {
    uint32_t node;
    float x, w;
  };
  bool finds(uint32_t node) const;
  void draw_row(Scene& scene, const std::vector<Laid>& row, float y);
  void draw_box(Scene& scene, const Laid& at, float y);
  std::string tip(uint32_t node) const;
  std::string difference_tip(uint32_t node) const;
  /// What stands for a node elsewhere: its longest event, or its line of code.
  Selection selection_of(uint32_t node) const;
  float content_height() const;
  void scroll_to(uint32_t node);
  bool step(int direction);
  Ink ink_of_node(uint32_t node) const;
  Selection in_side(uint32_t node, const tracing::FlamePair::Side& side, int document) const;
  /// How a box is filled: a difference by what it changed, with the signs of what stands on one side alone.
  struct Fill {
    Ink ink, text;
    float alpha = 0.95f;
    bool hatched = false;
  };
  Fill fill_of(uint32_t node) const;
  /// "+12.3 ms": how much more B has.
  std::string change_text(uint32_t node) const;
  /// The name with its change, where there is one and room for both.
  std::string difference_label(uint32_t node, float width) const;
  void draw_legend(Scene& scene);
  float top() const;

  Shared flame_;
  std::shared_ptr<const tracing::StepRecord> step_;
  std::shared_ptr<const tracing::FlamePair> pair_;  ///< of a difference; null: it is none
  int document_ = Document::kProject;               ///< of a difference: B
  int first_ = Document::kProject;                  ///< of a difference: A
  uint32_t root_ = 0, chosen_ = 0;
  std::string wanted_;  // in lower case
  float scroll_ = 0, height_ = 0;
};

}  // namespace tenon::views
