#pragma once
#include <optional>
#include <vector>

#include "core/tensor.h"

// Reading and writing by index tensors, with PyTorch's rules. Indices are i64 or i32, or bool masks; negative ones
// count from the end. An index that is out of range is an Error naming it, the axis and its size. Everything is
// deterministic: where an index occurs twice, sums are taken in index order and of two written values the last wins.
// All dtypes.
namespace tenon {

/// x[indices[0], indices[1], ...]; an undefined entry takes its whole axis (":"). A bool mask stands for as many axes
/// as it has. The indices broadcast against each other; their common axes come where the first index was if the indexed
/// axes are adjacent, in front otherwise.
Tensor index(const Tensor& x, const std::vector<Tensor>& indices);
/// x with x[indices...] = values (or += where `accumulate`); values broadcast to what index() gives.
Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values, bool accumulate = false);
Tensor& index_put_(Tensor& x, const std::vector<Tensor>& indices, const Tensor& values, bool accumulate = false);

/// The slices of one axis that `index` names: x [.., n, ..], index of any size s -> [.., s.., ..] (PyTorch's takes one
/// axis; ONNX's Gather any).
Tensor index_select(const Tensor& x, int axis, const Tensor& index);
/// x with alpha * source's slices added at index [k]; source has size k along the axis.
Tensor index_add(const Tensor& x, int axis, const Tensor& index, const Tensor& source, double alpha = 1);
Tensor index_copy(const Tensor& x, int axis, const Tensor& index, const Tensor& source);
Tensor index_fill(const Tensor& x, int axis, const Tensor& index, double value);
Tensor& index_add_(Tensor& x, int axis, const Tensor& index, const Tensor& source, double alpha = 1);
Tensor& index_copy_(Tensor& x, int axis, const Tensor& index, const Tensor& source);
Tensor& index_fill_(Tensor& x, int axis, const Tensor& index, double value);

/// Elements of x seen as one axis, in the size of index.
Tensor take(const Tensor& x, const Tensor& index);
/// The positions of elements that are not 0: i64 [count, ndim], in row-major order.
Tensor nonzero(const Tensor& x);
/// x where mask is false, value elsewhere; the mask broadcasts to x.
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value);
Tensor& masked_fill_(Tensor& x, const Tensor& mask, double value);
/// The elements where mask is true, one axis, in row-major order; x and mask broadcast.
Tensor masked_select(const Tensor& x, const Tensor& mask);
/// x with its elements where mask is true taken from source, in order. source has at least as many as the mask has
/// trues.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);

}  // namespace tenon
