#pragma once
#include <vector>

#include "core/tensor.h"

// Putting tensors together, taking them apart, and repeating them, with PyTorch's names. All dtypes.
namespace tenon {

/// Along an existing axis; the sizes of all others agree. Dtypes are promoted. Tensors of size [0] are passed over.
Tensor cat(const std::vector<Tensor>& parts, int axis = 0);
/// Along a new axis; all sizes agree.
Tensor stack(const std::vector<Tensor>& parts, int axis = 0);

/// Views of `size` elements of one axis each, the last one shorter.
std::vector<Tensor> split(const Tensor& x, int64_t size, int axis = 0);
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int axis = 0);
/// At most `count` views of equal size, the last one shorter.
std::vector<Tensor> chunk(const Tensor& x, int64_t count, int axis = 0);
/// The views select(x, axis, i).
std::vector<Tensor> unbind(const Tensor& x, int axis = 0);

/// x laid out counts[i] times along axis i; more counts than axes add axes in front.
Tensor repeat(const Tensor& x, const Dims& counts);
/// The same, with counts of 1 in front where there are fewer than axes.
Tensor tile(const Tensor& x, const Dims& counts);
/// Every slice of an axis, `count` times (or counts[i] times, i64 of the axis' size) in place.
Tensor repeat_interleave(const Tensor& x, int64_t count, int axis);
Tensor repeat_interleave(const Tensor& x, const Tensor& counts, int axis);
/// Elements moved on by `shift` along an axis; those pushed out come in on the other side.
Tensor roll(const Tensor& x, int64_t shift, int axis);

/// Zero above (below) the diagonal `shift` above the main one, for every matrix of the last two axes.
Tensor tril(const Tensor& x, int64_t shift = 0);
Tensor triu(const Tensor& x, int64_t shift = 0);

}  // namespace tenon
