#pragma once
#include "core/random.h"
#include "engine/cuda/product_types.h"

// What the kernels of attention share: those of every type (attention.cu), and those that multiply halves on tensor
// cores (attention_halves.cu, attention_halves_back.cu). Sums, statistics of rows and what is kept of them are of
// SumOf<T>, so the forward pass of one fits the backward pass of the other.
namespace tenon::cuda {

/// A tensor [.., rows, cols] by strides.
struct AttentionSide {
  void* data;
  int64_t row, col;
  int64_t batch[kDims];
};
/// Of one problem of the batch.
template <class T>
struct AttentionRows {
  T* data;
  int64_t row, col;
};

struct AttentionSizes {
  int axes;
  int64_t size[kDims];
  int64_t batch, lq, lk, d, dv;
  bool causal;
  double scale;
  AttentionSide mask;  ///< broadcast to the scores; null for none
  bool mask_keeps;     ///< bool: true takes part. Else it is added
  // Dropout of the shares, see DrawnFrom.
  double p;
  const int64_t* key;
  int64_t key_stride;
  uint64_t stream, first;

  __device__ int64_t offset(const AttentionSide& s, int64_t b) const {
    int64_t at = 0;
    for (int i = axes - 1; i >= 0; --i) {
      at += b % size[i] * s.batch[i];
      b /= size[i];
    }
    return at;
  }
  template <class T>
  __device__ AttentionRows<T> rows(const AttentionSide& s, int64_t b) const {
    return {static_cast<T*>(s.data) + offset(s, b), s.row, s.col};
  }
  /// A scaled product after the mask, at `from`: that of the problem. Of elements of type T.
  template <class T, class Sum>
  __device__ Sum masked(Sum v, int64_t from, int64_t query, int64_t key_at) const {
    const int64_t place = from + query * mask.row + key_at * mask.col;
    if (!mask_keeps) return v + element::number(static_cast<const T*>(mask.data)[place]);
    return static_cast<const bool*>(mask.data)[place] ? v : -std::numeric_limits<Sum>::infinity();
  }
};

/// What shares are multiplied with: 0 or 1 / (1 - p). Four that follow each other are drawn at once.
template <class Sum>
struct AttentionDraws {
  Philox random;
  uint64_t begin, below, drawn = ~uint64_t{0};
  Sum scale;
  Philox::Words words{};

  __device__ explicit AttentionDraws(const AttentionSizes& a)
      : random{static_cast<uint64_t>(a.key[0]), a.stream},
        begin(static_cast<uint64_t>(a.key[a.key_stride]) + a.first),
        below(static_cast<uint64_t>(a.p * 4294967296.0)),
        scale(a.p < 1 ? static_cast<Sum>(1 / (1 - a.p)) : Sum(0)) {}
  __device__ bool kept(uint64_t place) {
    if (place / 4 != drawn) words = random.at(begin + (drawn = place / 4));
    const auto word = static_cast<unsigned>(place % 4);
    return (word < 2 ? (word == 0 ? words.v[0] : words.v[1]) : (word == 2 ? words.v[2] : words.v[3])) >= below;
  }
  __device__ Sum factor(uint64_t place) { return kept(place) ? scale : Sum(0); }
};

struct AttentionForward {
  AttentionSizes sizes;
  AttentionSide q, k, v, y, lse;
};
struct AttentionGradient {
  AttentionSizes sizes;
  AttentionSide q, k, v, y, lse, gy, gq, gk, gv;
  void* delta;  ///< [batch, lq]: the products of rows of y and gy
};

/// Queue the kernels for tensor cores, or do nothing and say false: of other types, wide heads, or operands whose rows
/// are not read in pieces of 16 bytes.
bool attention_of_halves(const Args& c, DType type, const AttentionForward& f);
bool attention_gradient_of_halves(const Args& c, DType type, const AttentionGradient& g);
/// Whether a side is read and written in such pieces.
bool attention_in_pieces(const AttentionSizes& a, const AttentionSide& s);

}  // namespace tenon::cuda
