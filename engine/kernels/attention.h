#pragma once
#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

/// Scaled dot-product attention of `batch` independent problems in contiguous memory: q [lq, d], k [lk, d], v [lk, dv],
/// y [lq, dv] each. Vaswani et al. (2017); computed in blocks with a running softmax as Dao et al., "FlashAttention"
/// (2022), so that no [lq, lk] matrix is kept.
template <class T>
struct AttentionShape {
  int64_t batch, lq, lk, d, dv;
  T scale;
  bool causal;  ///< query i sees keys 0..i
  // One mask a problem, both null for none; element (b, i, j) at mask_at[b] + i * mask_row + j * mask_col.
  const bool* keep = nullptr;  ///< true: takes part
  const T* bias = nullptr;     ///< added to the scaled products
  const int64_t* mask_at = nullptr;
  int64_t mask_row = 0, mask_col = 0;
  // Dropout of the shares: which ones is a function of (seed, stream, offset) and the place (b, i, j).
  double p = 0;
  uint64_t seed = 0, stream = 0, offset = 0;
};
/// Bytes that either function works in at most: its `room`. Of what is in the shape, sizes and `p` count. They grow
/// with the number of cores, not of threads.
template <class T>
size_t attention_workspace(const AttentionShape<T>& s);
/// lse [batch, lq] gets log(sum(exp)) of every row, -inf for one that sees no key (whose y is 0).
template <class T>
void attention_forward(const AttentionShape<T>& s, const T* q, const T* k, const T* v, T* y, T* lse, void* room);
template <class T>
void attention_backward(const AttentionShape<T>& s, const T* q, const T* k, const T* v, const T* y, const T* lse,
                        const T* gy, T* gq, T* gk, T* gv, void* room);

}  // namespace tenon::kernels
