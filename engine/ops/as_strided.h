#pragma once
#include "core/layout.h"
#include "core/tensor.h"

namespace tenon {

/// Where the elements of a view lie among those of its base, both in positions of one storage.
struct StridedPlace {
  Layout base, view;
  template <class F>
  void fields(F&& f) const {
    f("base", base);
    f("view", view);
  }
};

/// The elements of x's storage at offset + sum(i_k * stride_k), as a view; strides may overlap. Throws where they leave
/// the storage.
Tensor as_strided(const Tensor& x, const Shape& size, const Dims& stride, int64_t offset);
/// The adjoint pair that gradients of views are made of. Gather: the elements of x (of size place.base.size, laid out
/// in any way) that the view shows. Scatter: zeros of the base's size plus every element of x at its place; where
/// places overlap they are added in the order of the view's elements.
Tensor strided_gather(const Tensor& x, const StridedPlace& place);
Tensor strided_scatter(const Tensor& x, const StridedPlace& place);
/// x with the elements at the view's place taken from `values`, which the view's elements must not share.
Tensor strided_replace(const Tensor& x, const Tensor& values, const StridedPlace& place);

}  // namespace tenon
