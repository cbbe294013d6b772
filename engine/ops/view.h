#pragma once
#include <vector>

#include "core/tensor.h"

// Views share their tensor's storage: nothing is copied. The layout rules are core/layout.h's.
namespace tenon {

Tensor permute(const Tensor& x, const Dims& axes);
Tensor transpose(const Tensor& x, int a, int b);
Tensor expand(const Tensor& x, const Shape& to);
Tensor slice(const Tensor& x, int axis, int64_t start, int64_t end, int64_t step = 1);
Tensor narrow(const Tensor& x, int axis, int64_t start, int64_t length);
Tensor select(const Tensor& x, int axis, int64_t index);
Tensor squeeze(const Tensor& x, int axis);
Tensor unsqueeze(const Tensor& x, int axis);
Tensor flip(const Tensor& x, int axis);
Tensor flip(const Tensor& x, const Dims& axes);
/// Takes out every axis of size 1.
Tensor squeeze(const Tensor& x);
/// The elements i, i + offset of axes a and b, as the last axis.
Tensor diagonal(const Tensor& x, int64_t offset = 0, int a = 0, int b = 1);
/// Windows of `size` elements every `step` along an axis; the window is the last axis of the result.
Tensor unfold(const Tensor& x, int axis, int64_t size, int64_t step);
/// Axes `from` moved to the places `to`; the others keep their order.
Tensor movedim(const Tensor& x, const Dims& from, const Dims& to);
/// One axis as several; one -1 is inferred.
Tensor unflatten(const Tensor& x, int axis, const Shape& sizes);
/// Turned by k quarter turns in the plane of axes a and b, from a towards b.
Tensor rot90(const Tensor& x, int64_t k = 1, int a = 0, int b = 1);
/// The same elements in another size; throws where that would need a copy.
Tensor view(const Tensor& x, const Shape& to);
/// A view where one exists, a copy otherwise. One -1 is inferred.
Tensor reshape(const Tensor& x, const Shape& to);
Tensor flatten(const Tensor& x, int first = 1, int last = -1);

/// Memory order of a copy.
enum class Order : uint8_t { contiguous, channels_last, preserve };
/// A copy; preserve keeps dense strides.
Tensor clone(const Tensor& x, Order order = Order::preserve);
/// x itself where it has that order already, a copy otherwise.
Tensor contiguous(const Tensor& x);
Tensor channels_last(const Tensor& x);
Tensor cast(const Tensor& x, DType dtype);
/// x itself where it lies on that device, a copy there otherwise; a meta tensor stays one.
Tensor to(const Tensor& x, Device device);
/// to[...] = from, broadcast and converted, as an op with a gradient: PyTorch's copy_. `to` may be a view of what has a
/// history.
Tensor& overwrite_(Tensor& to, const Tensor& from);
/// The same for memory without a history, inside of ops and beside the graph: no op, nothing recorded. The two may lie
/// on different devices.
void copy_(const Tensor& to, const Tensor& from);
/// Sums the axes along which a gradient was broadcast, down to `size`.
Tensor sum_to(const Tensor& x, const Shape& size);

}  // namespace tenon
