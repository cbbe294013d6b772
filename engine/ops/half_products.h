#pragma once
#include <initializer_list>
#include <string>

#include "core/error.h"
#include "engine/kernels/dnnl_matmul.h"
#include "engine/op/op.h"
#include "engine/ops/dense_room.h"

// Note [Products of halves]
// bf16 is multiplied by the processor where it can (sums in f32, rounded once), else, like f16, in f32 copies: the same
// products and sums, which are exact in f32 but for the order in which they are added. So a run in bf16 repeats its
// bits on processors of one kind, as every product does.
namespace tenon::ops {

inline bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }

/// The type that all of a product's inputs have: f16, bf16, f32 or f64.
inline DType product_type(std::initializer_list<const Meta*> inputs) {
  const DType t = (*inputs.begin())->dtype;
  if (!is_half(t)) return common_float(inputs);
  for (const Meta* m : inputs)
    if (m->dtype != t)
      throw Error(std::string("its inputs are ") + name(t) + " and " + name(m->dtype) + "; they must be alike",
                  "cast() one of them");
  return t;
}
/// The type that products of such values are computed in on this processor.
inline DType computed_in(DType t) {
  return is_half(t) && !(t == DType::bf16 && kernels::has_bf16_products()) ? DType::f32 : t;
}
/// Memory in `room` for a result that is computed in another type than it has; undefined where it has that type, or the
/// room only counts.
inline Tensor wide_result(const Tensor& out, kernels::Room& room) {
  const DType t = computed_in(out.dtype());
  if (t == out.dtype()) return {};
  const size_t bytes = static_cast<size_t>(out.numel()) * itemsize(t);
  char* at = room.take<char>(static_cast<int64_t>(bytes));
  return at ? from_blob(at, bytes, out.layout(), t, [](Storage* s) { delete s; }) : Tensor();
}

}  // namespace tenon::ops
