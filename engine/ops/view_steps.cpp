#include "engine/ops/view_steps.h"

#include "core/quiet.h"
#include "engine/ops/view.h"

namespace tenon {

Tensor viewed(const Tensor& x, const std::vector<ViewStep>& steps) {
  const Quiet quiet;
  Tensor t = x;
  for (const ViewStep& s : steps) {
    if (s.copies.empty()) {
      t = view_of(t, s.layout);
      continue;
    }
    // What is copied in the order of the axes of a permuted view lies in the memory as the step has it.
    const bool channels = !s.layout.is_contiguous() && s.layout.is_channels_last();
    t = contiguous(channels ? view_of(t, t.layout().permute({0, 2, 3, 1})) : t);
    t = view_of(t, s.layout);
  }
  return t;
}

}  // namespace tenon
