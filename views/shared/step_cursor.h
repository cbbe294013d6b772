#pragma once
#include "views/shared/selection.h"

namespace tenon::views {

/// The op of the loaded step that tensors are shown as of: the one that was selected last, or that what was selected is
/// a side of (a module, a node of the autograd graph, a block). A tensor that is chosen leaves it where it is, so that
/// one can be looked at as of any op.
class StepCursor {
 public:
  /// True where it moved.
  bool take(const Links& links, const Selection& s) {
    if (s.kind == Selection::Kind::tensor || s.kind == Selection::Kind::step || !links.hold(s)) return false;
    const uint32_t to = links.op_of(s);
    if (to == 0 || to == seq_) return false;
    seq_ = to;
    return true;
  }
  void forget() { seq_ = 0; }
  /// 0: none was selected yet.
  uint32_t seq() const { return seq_; }

 private:
  uint32_t seq_ = 0;
};

}  // namespace tenon::views
