#pragma once
#include "engine/kernels/room.h"
#include "engine/ops/dense.h"

// The forms of dense.h for ops that say what they work in (OpDef::workspace): a copy lies in the call's working memory.
// An op's workspace() and its kernel call them alike, and in the same order.
namespace tenon::ops {

inline Tensor copied(const Tensor& x, const Layout& to, kernels::Room& room) {
  char* at = room.take<char>(static_cast<int64_t>(x.nbytes()));
  if (!at) return x;  // it is only counted
  const Tensor t = from_blob(at, x.nbytes(), to, x.dtype(), [](Storage* s) { delete s; });
  copy_(t, x);
  return t;
}
inline Tensor dense(const Tensor& x, kernels::Room& room) {
  return !x || x.is_contiguous() ? x : copied(x, Layout::contiguous(x.size()), room);
}
/// As elements of another type.
inline Tensor converted(const Tensor& x, DType t, const Layout& to, kernels::Room& room) {
  const size_t bytes = static_cast<size_t>(x.numel()) * itemsize(t);
  char* at = room.take<char>(static_cast<int64_t>(bytes));
  if (!at) return x;
  Tensor y = from_blob(at, bytes, to, t, [](Storage* s) { delete s; });
  copy_(y, x);
  return y;
}
inline Tensor dense_as(const Tensor& x, DType t, kernels::Room& room) {
  return !x || x.dtype() == t ? dense(x, room) : converted(x, t, Layout::contiguous(x.size()), room);
}
inline Tensor dense_nhwc(const Tensor& x, kernels::Room& room) {
  return !x || x.layout().is_channels_last() ? x : copied(x, Layout::channels_last(x.size()), room);
}
inline Tensor dense_nhwc_as(const Tensor& x, DType t, kernels::Room& room) {
  return !x || x.dtype() == t ? dense_nhwc(x, room) : converted(x, t, Layout::channels_last(x.size()), room);
}

}  // namespace tenon::ops
