#pragma once
#include "core/tensor.h"

namespace tenon {

struct WindowOptions {
  Dims kernel{1, 1}, dilation{1, 1}, padding{0, 0}, stride{1, 1};
};
/// [n, c, h, w] -> [n, c kh kw, windows]: the elements of every window as a column. torch.nn.functional.unfold.
Tensor im2col(const Tensor& x, const WindowOptions& o);
/// Its adjoint: columns summed back into images of height and width `output`. torch.nn.functional.fold.
Tensor col2im(const Tensor& x, const Dims& output, const WindowOptions& o);

}  // namespace tenon
