#pragma once
#include <initializer_list>
#include <string>

#include "core/error.h"
#include "core/state.h"
#include "core/tensor.h"
#include "engine/ops/view.h"

// What kernels on raw pointers need of their operands. These run inside an op: what they copy is working memory, not a
// recorded op.
namespace tenon::ops {

inline Tensor copied(const Tensor& x, const Layout& to) {
  CategoryScope workspace(Category::workspace);
  Tensor t = empty_strided(to, x.dtype(), x.device());
  copy_(t, x);
  return t;
}
/// x itself where its elements lie in order without gaps, else a copy that does.
inline Tensor dense(const Tensor& x) { return !x || x.is_contiguous() ? x : copied(x, Layout::contiguous(x.size())); }
/// The same as elements of another dtype.
inline Tensor dense_as(const Tensor& x, DType t) {
  if (!x || x.dtype() == t) return dense(x);
  CategoryScope workspace(Category::workspace);
  Tensor y = empty(x.size(), t, x.device());
  copy_(y, x);
  return y;
}
/// The same with the channel axis (1) innermost.
inline Tensor dense_nhwc(const Tensor& x) {
  return !x || x.layout().is_channels_last() ? x : copied(x, Layout::channels_last(x.size()));
}

/// Null where the tensor is absent or has no elements.
template <class T>
T* data_or_null(const Tensor& t) {
  return t && t.numel() ? t.data<T>() : nullptr;
}

/// Fills an op's own output. Unlike copy_() it counts no write: dispatch does, where the output was there before.
inline void write_output(const Tensor& out, const Tensor& from) {
  const uint32_t version = out.version();
  copy_(out, from);
  if (out.storage()) out.storage()->version = version;
}

/// Calls f with a float or a double by the dtype.
template <class F>
void float_or_double(DType t, const F& f) {
  if (t == DType::f32)
    f(float{});
  else
    f(double{});
}

/// The dtype all of these inputs have, which must be f32 or f64. Absent inputs (of no axes where `optional`) are passed
/// over by the caller.
inline DType common_float(std::initializer_list<const Meta*> inputs) {
  DType t = (*inputs.begin())->dtype;
  for (const Meta* m : inputs) {
    if (m->dtype != DType::f32 && m->dtype != DType::f64)
      throw Error(std::string("it works on f32 and f64, not on ") + name(m->dtype), "cast() the tensor first");
    if (m->dtype != t)
      throw Error(std::string("its inputs are ") + name(t) + " and " + name(m->dtype) + "; they must be alike",
                  "cast() one of them");
  }
  return t;
}

}  // namespace tenon::ops
