#pragma once
#include <cstdint>

#include "core/tensor.h"
#include "engine/ops/draws.h"

namespace tenon {

struct AttentionOptions {
  double dropout = 0;   ///< of the shares
  bool causal = false;  ///< query i sees keys 0..i
  double scale = 0;     ///< of the products; 0: 1 / sqrt(d)
  Draws draws = {};     ///< of the dropout, where there is one
};
/// softmax(q k^T * scale + mask) v: q [.., lq, d], k [.., lk, d], v [.., lk, dv] -> [.., lq, dv], with equal leading
/// axes. mask broadcasts to [.., lq, lk]: bool (true takes part) or numbers that are added. f32 or f64; halves are
/// worked on in f32 and rounded once. One op, which never makes the [lq, lk] matrix.
/// torch.nn.functional.scaled_dot_product_attention.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask = {},
                                    const AttentionOptions& options = {});
/// The shares themselves, [.., lq, lk], for who wants to look at them.
Tensor attention_weights(const Tensor& q, const Tensor& k, const Tensor& mask = {},
                         const AttentionOptions& options = {});

/// Rotates pairs of features by angles that grow with the position: x [.., length, d], d even; feature i is paired with
/// i + d / 2 (or, with `interleaved`, 2i with 2i + 1) and turned by (first + position) * base^(-2i / d). Su et al.:
/// RoFormer (2021).
Tensor rotary(const Tensor& x, double base = 10000, int64_t first = 0, bool interleaved = false);
/// [length, d]: sines of the same angles in the even features, cosines in the odd ones. Vaswani et al. (2017).
Tensor sinusoidal_positions(int64_t length, int64_t d, DType dtype = DType::f32, double base = 10000,
                            Device device = {});

}  // namespace tenon
