#pragma once
#include "core/tensor.h"

// Reading and writing one axis at positions given element by element, with PyTorch's rules: index has x's number of
// axes, none longer than x's except `axis` itself. Negative indices count from the end (as in ONNX). Sums are taken in
// index order, so results never depend on the number of threads. All dtypes.
namespace tenon {

/// y[i][j][k] = x[i][index[i][j][k]][k] (for axis 1); the size of index.
Tensor gather(const Tensor& x, int axis, const Tensor& index);
/// The same where x and index broadcast against each other in all other axes (NumPy's take_along_axis).
Tensor take_along_dim(const Tensor& x, const Tensor& index, int axis);

/// x with y[i][index[i][j][k]][k] = src[i][j][k]; of several writes the last wins. index may be smaller than src.
Tensor scatter(const Tensor& x, int axis, const Tensor& index, const Tensor& src);
Tensor scatter(const Tensor& x, int axis, const Tensor& index, double value);
Tensor& scatter_(Tensor& x, int axis, const Tensor& index, const Tensor& src);
Tensor& scatter_(Tensor& x, int axis, const Tensor& index, double value);
Tensor scatter_add(const Tensor& x, int axis, const Tensor& index, const Tensor& src);
Tensor& scatter_add_(Tensor& x, int axis, const Tensor& index, const Tensor& src);
/// How values that meet are joined.
enum class Reduce : uint8_t { sum, prod, mean, amax, amin };
/// include_self: x's own elements take part; otherwise those that something is written to are replaced.
Tensor scatter_reduce(const Tensor& x, int axis, const Tensor& index, const Tensor& src, Reduce how,
                      bool include_self = true);

}  // namespace tenon
