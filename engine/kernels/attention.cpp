#include "engine/kernels/attention.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "core/parallel.h"
#include "core/random.h"
#include "core/vectors.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/room.h"
#include "engine/op/scalar.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kQueries = 64, kKeys = 256;
template <class T>
constexpr T kMinusInf = -std::numeric_limits<T>::infinity();

/// A block of rows i0.. and columns j0.. of problem b.
struct Block {
  int64_t b, i0, rows, j0, cols;
};

/// s[r, c] (leading dimension kKeys) = scaled products, masked.
template <class T>
void scores(const AttentionShape<T>& a, const Block& x, const T* q, const T* k, T* s) {
  gemm(false, true, x.rows, x.cols, a.d, q, a.d, k, a.d, s, kKeys);
  for (int64_t r = 0; r < x.rows; ++r) {
    T* __restrict row = s + r * kKeys;
    int64_t i = x.i0 + r;
    for (int64_t c = 0; c < x.cols; ++c) row[c] *= a.scale;
    if (a.keep) {
      const bool* m = a.keep + a.mask_at[x.b] + i * a.mask_row + x.j0 * a.mask_col;
      for (int64_t c = 0; c < x.cols; ++c) row[c] = m[c * a.mask_col] ? row[c] : kMinusInf<T>;
    } else if (a.bias) {
      const T* m = a.bias + a.mask_at[x.b] + i * a.mask_row + x.j0 * a.mask_col;
      for (int64_t c = 0; c < x.cols; ++c) row[c] += m[c * a.mask_col];
    }
    if (a.causal)
      for (int64_t c = std::max<int64_t>(0, i + 1 - x.j0); c < x.cols; ++c) row[c] = kMinusInf<T>;
  }
}

/// What each share is multiplied with: 0 or 1 / (1 - p).
template <class T>
void keep_factors(const AttentionShape<T>& a, const Block& x, T* z) {
  Philox random{a.seed, a.stream};
  auto below = static_cast<uint64_t>(a.p * 0x1p32);
  T scale = a.p < 1 ? static_cast<T>(1 / (1 - a.p)) : T(0);
  for (int64_t r = 0; r < x.rows; ++r) {
    uint64_t first = static_cast<uint64_t>((x.b * a.lq + x.i0 + r) * a.lk + x.j0);
    Philox::Words w{};
    uint64_t counter = ~uint64_t{0};
    for (int64_t c = 0; c < x.cols; ++c) {
      uint64_t at = first + static_cast<uint64_t>(c);
      if (at / 4 != counter) w = random.at(a.offset + (counter = at / 4));
      z[r * kKeys + c] = w.v[at % 4] < below ? T(0) : scale;
    }
  }
}

template <class T>
[[gnu::always_inline]] inline T row_max(int64_t n, const T* __restrict v) {
  T lanes[16];
  std::fill_n(lanes, 16, kMinusInf<T>);
  int64_t j = 0;
  for (; j + 16 <= n; j += 16)
    for (int k = 0; k < 16; ++k) lanes[k] = v[j + k] > lanes[k] ? v[j + k] : lanes[k];
  T m = kMinusInf<T>;
  for (T l : lanes) m = l > m ? l : m;
  for (; j < n; ++j) m = v[j] > m ? v[j] : m;
  return m;
}

/// v = exp(v - m); returns the sum.
template <class T>
[[gnu::always_inline]] inline T exp_row(int64_t n, T* __restrict v, T m) {
  for (int64_t j = 0; j < n; ++j) v[j] = sc::exp(v[j] - m);
  T lanes[16] = {};
  int64_t j = 0;
  for (; j + 16 <= n; j += 16)
    for (int k = 0; k < 16; ++k) lanes[k] += v[j + k];
  T sum = 0;
  for (; j < n; ++j) sum += v[j];
  for (int k = 8; k > 0; k /= 2)
    for (int i = 0; i < k; ++i) lanes[i] += lanes[i + k];
  return sum + lanes[0];
}

/// Keys a block of queries sees at all.
template <class T>
int64_t keys_seen(const AttentionShape<T>& a, int64_t i0, int64_t rows) {
  return a.causal ? std::min(a.lk, i0 + rows) : a.lk;
}

/// What one thread works in at a time: a block of scores, of gradients, of dropout, and a row's running state.
template <class T>
struct Desk {
  T *s, *g, *z, *state;
  Desk(const AttentionShape<T>& a, Room& room)
      : s(room.take<T>(kQueries * kKeys)),
        g(room.take<T>(kQueries * kKeys)),
        z(room.take<T>(a.p > 0 ? kQueries * kKeys : 0)),
        state(room.take<T>(2 * kQueries)) {}
};

/// As many as pieces can be under way at once. Not num_threads(): that may change between the question how much memory
/// a call needs and the call. Threads beyond the cores wait for a desk.
int64_t desks_of(int64_t pieces) {
  static const int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  return std::min(pieces, cores);
}
template <class T>
int64_t query_blocks(const AttentionShape<T>& a) {
  return (a.lq + kQueries - 1) / kQueries;
}

/// Which desk a piece gets is left to chance, and changes no result.
template <class T>
class Desks {
 public:
  Desks(const AttentionShape<T>& a, int64_t count, Room& room) : taken_(static_cast<size_t>(count)) {
    for (int64_t i = 0; i < count; ++i) desks_.emplace_back(a, room);
  }
  class Seat {
   public:
    explicit Seat(Desks& all) : all_(all) {
      while (all_.taken_[at_].exchange(true, std::memory_order_acquire))
        if (++at_ == all_.taken_.size()) {
          at_ = 0;
          std::this_thread::yield();
        }
    }
    ~Seat() { all_.taken_[at_].store(false, std::memory_order_release); }
    Seat(const Seat&) = delete;
    const Desk<T>* operator->() const { return &all_.desks_[at_]; }

   private:
    Desks& all_;
    size_t at_ = 0;
  };

 private:
  std::vector<Desk<T>> desks_;
  std::vector<std::atomic<bool>> taken_;
};

}  // namespace

template <class T>
size_t attention_workspace(const AttentionShape<T>& a) {
  Room room;
  Desks<T>(a, desks_of(a.batch * query_blocks(a)), room);
  return room.used();
}

template <class T>
void attention_forward(const AttentionShape<T>& a, const T* q, const T* k, const T* v, T* y, T* lse, void* memory) {
  Room room(memory);
  const int64_t blocks = query_blocks(a);
  Desks<T> desks(a, desks_of(a.batch * blocks), room);
  parallel_for(a.batch * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      int64_t b = piece / blocks, i0 = piece % blocks * kQueries, rows = std::min(kQueries, a.lq - i0),
              seen = keys_seen(a, i0, rows);
      const T *qb = q + (b * a.lq + i0) * a.d, *kb = k + b * a.lk * a.d, *vb = v + b * a.lk * a.dv;
      T* out = y + (b * a.lq + i0) * a.dv;
      const typename Desks<T>::Seat desk(desks);
      T *s = desk->s, *z = desk->z, *m = desk->state, *l = m + kQueries;
      std::fill_n(m, rows, kMinusInf<T>);
      std::fill_n(l, rows, T(0));
      std::fill_n(out, rows * a.dv, T(0));
      for (int64_t j0 = 0; j0 < seen; j0 += kKeys) {
        Block x{b, i0, rows, j0, std::min(kKeys, seen - j0)};
        scores(a, x, qb, kb + j0 * a.d, s);
        if (a.p > 0) keep_factors(a, x, z);
        in_vectors(
            rows * x.cols, [&]() __attribute__((always_inline)) {
              for (int64_t r = 0; r < rows; ++r) {
                T* row = s + r * kKeys;
                T top = std::max(m[r], row_max(x.cols, row));
                if (top == kMinusInf<T>) {  // nothing seen yet
                  std::fill_n(row, x.cols, T(0));
                  continue;
                }
                T shrink = sc::exp(m[r] - top);
                l[r] = l[r] * shrink + exp_row(x.cols, row, top);
                m[r] = top;
                if (j0 > 0 && shrink != T(1))
                  for (int64_t c = 0; c < a.dv; ++c) out[r * a.dv + c] *= shrink;
                if (a.p > 0)
                  for (int64_t c = 0; c < x.cols; ++c) row[c] *= z[r * kKeys + c];
              }
            });
        gemm(false, false, rows, a.dv, x.cols, s, kKeys, vb + j0 * a.dv, a.dv, out, a.dv, T(1));
      }
      for (int64_t r = 0; r < rows; ++r) {
        T inverse = l[r] != T(0) ? T(1) / l[r] : T(0);
        for (int64_t c = 0; c < a.dv; ++c) out[r * a.dv + c] *= inverse;
        lse[b * a.lq + i0 + r] = l[r] != T(0) ? m[r] + std::log(l[r]) : kMinusInf<T>;
      }
    }
  });
}

template <class T>
void attention_backward(const AttentionShape<T>& a, const T* q, const T* k, const T* v, const T* y, const T* lse,
                        const T* gy, T* gq, T* gk, T* gv, void* memory) {
  Room room(memory);
  Desks<T> desks(a, desks_of(a.batch), room);
  parallel_for(a.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const T *kb = k + b * a.lk * a.d, *vb = v + b * a.lk * a.dv;
      T *gkb = gk + b * a.lk * a.d, *gvb = gv + b * a.lk * a.dv;
      std::fill_n(gkb, a.lk * a.d, T(0));
      std::fill_n(gvb, a.lk * a.dv, T(0));
      const typename Desks<T>::Seat desk(desks);
      T *s = desk->s, *g = desk->g, *z = desk->z, *delta = desk->state;
      for (int64_t i0 = 0; i0 < a.lq; i0 += kQueries) {
        int64_t rows = std::min(kQueries, a.lq - i0), at = b * a.lq + i0, seen = keys_seen(a, i0, rows);
        const T *qb = q + at * a.d, *yb = y + at * a.dv, *gyb = gy + at * a.dv;
        T* gqb = gq + at * a.d;
        std::fill_n(gqb, rows * a.d, T(0));
        for (int64_t r = 0; r < rows; ++r) {
          T sum = 0;
          for (int64_t c = 0; c < a.dv; ++c) sum += gyb[r * a.dv + c] * yb[r * a.dv + c];
          delta[r] = sum;
        }
        for (int64_t j0 = 0; j0 < seen; j0 += kKeys) {
          Block x{b, i0, rows, j0, std::min(kKeys, seen - j0)};
          scores(a, x, qb, kb + j0 * a.d, s);
          gemm(false, true, rows, x.cols, a.dv, gyb, a.dv, vb + j0 * a.dv, a.dv, g, kKeys);
          if (a.p > 0) keep_factors(a, x, z);
          in_vectors(
              rows * x.cols, [&]() __attribute__((always_inline)) {
                for (int64_t r = 0; r < rows; ++r) {
                  T* __restrict share = s + r * kKeys;
                  T* __restrict grad = g + r * kKeys;
                  T total = lse[at + r], d = delta[r];
                  if (total == kMinusInf<T>) {
                    std::fill_n(share, x.cols, T(0));
                    std::fill_n(grad, x.cols, T(0));
                    continue;
                  }
                  for (int64_t c = 0; c < x.cols; ++c) share[c] = sc::exp(share[c] - total);
                  if (a.p > 0) {
                    const T* __restrict keep = z + r * kKeys;
                    for (int64_t c = 0; c < x.cols; ++c) {
                      grad[c] = share[c] * (grad[c] * keep[c] - d) * a.scale;
                      share[c] *= keep[c];
                    }
                  } else {
                    for (int64_t c = 0; c < x.cols; ++c) grad[c] = share[c] * (grad[c] - d) * a.scale;
                  }
                }
              });
          gemm(true, false, x.cols, a.dv, rows, s, kKeys, gyb, a.dv, gvb + j0 * a.dv, a.dv, T(1));
          gemm(true, false, x.cols, a.d, rows, g, kKeys, qb, a.d, gkb + j0 * a.d, a.d, T(1));
          gemm(false, false, rows, a.d, x.cols, g, kKeys, kb + j0 * a.d, a.d, gqb, a.d, T(1));
        }
      }
    }
  });
}

#define ATTENTION_OF(T)                                                                                           \
  template size_t attention_workspace<T>(const AttentionShape<T>&);                                               \
  template void attention_forward<T>(const AttentionShape<T>&, const T*, const T*, const T*, T*, T*, void*);      \
  template void attention_backward<T>(const AttentionShape<T>&, const T*, const T*, const T*, const T*, const T*, \
                                      const T*, T*, T*, T*, void*);
ATTENTION_OF(float)
ATTENTION_OF(double)
#undef ATTENTION_OF

}  // namespace tenon::kernels
