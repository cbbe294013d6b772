#pragma once
#include <initializer_list>

#include "engine/kernels/room.h"
#include "engine/op/op.h"
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

/// The workspace() of an op whose kernel begins with dense(c.in[i], room) for each of these inputs and works in no
/// more.
inline size_t dense_bytes(const Call& c, std::initializer_list<int> inputs) {
  kernels::Room room;
  for (const int i : inputs)
    if (i < c.inputs && c.in[i] && !c.in[i].is_contiguous()) room.take<char>(static_cast<int64_t>(c.in[i].nbytes()));
  return room.used();
}
inline size_t dense_nhwc_bytes(const Call& c, std::initializer_list<int> inputs) {
  kernels::Room room;
  for (const int i : inputs)
    if (i < c.inputs && c.in[i] && !c.in[i].layout().is_channels_last())
      room.take<char>(static_cast<int64_t>(c.in[i].nbytes()));
  return room.used();
}

/// Where a kernel of elements of type t writes: output k itself where it is dense and of that type, else working memory
/// of which finished() copies the result there.
inline bool writes_straight(const Call& c, int k, DType t) { return c.out[k].is_contiguous() && c.out[k].dtype() == t; }
inline Tensor target(const Call& c, int k, DType t, kernels::Room& room) {
  const Tensor& y = c.out[k];
  if (writes_straight(c, k, t)) return y;
  const size_t bytes = static_cast<size_t>(y.numel()) * itemsize(t);
  char* at = room.take<char>(static_cast<int64_t>(bytes));
  return at ? from_blob(at, bytes, Layout::contiguous(y.size()), t, [](Storage* s) { delete s; }) : y;
}
inline void finished(const Call& c, int k, const Tensor& y) {
  if (!y.same(c.out[k])) write_output(c.out[k], y);
}

}  // namespace tenon::ops
