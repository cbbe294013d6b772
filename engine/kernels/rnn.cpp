#include "engine/kernels/rnn.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "core/vectors.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/room.h"
#include "engine/kernels/tiled_gemm.h"
#include "engine/op/scalar.h"

namespace tenon::kernels {
namespace {

bool live(const RnnShape& s, int64_t row, int64_t t) { return !s.lengths || t < s.lengths[row]; }
int64_t time_of(const RnnShape& s, int64_t step) { return s.reverse ? s.steps - 1 - step : step; }

// Forward of `n` units of one row. Gates lie `h` apart; x: the inputs' part of them, g: the hidden state's. What
// backward needs goes to `kept`, where that is wanted.
/// In two passes: each is short enough that several of its rounds are on their way at once.
template <class T, bool Keeps>
[[gnu::always_inline]] inline void lstm_units(int64_t h, int64_t n, const T* __restrict x, const T* __restrict g,
                                              const T* __restrict before, T* __restrict cell, T* __restrict hidden,
                                              T* __restrict kept) {
  for (int64_t j = 0; j < n; ++j) {
    T i = sc::sigmoid(x[j] + g[j]), f = sc::sigmoid(x[h + j] + g[h + j]), u = sc::tanh(x[2 * h + j] + g[2 * h + j]);
    cell[j] = f * before[j] + i * u;
    if constexpr (Keeps) {
      kept[j] = i;
      kept[h + j] = f;
      kept[2 * h + j] = u;
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    T o = sc::sigmoid(x[3 * h + j] + g[3 * h + j]);
    hidden[j] = o * sc::tanh(cell[j]);
    if constexpr (Keeps) kept[3 * h + j] = o;
  }
}
template <class T, bool Keeps>
[[gnu::always_inline]] inline void gru_units(int64_t h, int64_t n, const T* __restrict x, const T* __restrict g,
                                             const T* __restrict before, T* __restrict hidden, T* __restrict kept) {
  for (int64_t j = 0; j < n; ++j) {
    T r = sc::sigmoid(x[j] + g[j]), z = sc::sigmoid(x[h + j] + g[h + j]), m = g[2 * h + j],
      u = sc::tanh(x[2 * h + j] + r * m);
    hidden[j] = (T(1) - z) * u + z * before[j];
    if constexpr (Keeps) {
      kept[j] = r;
      kept[h + j] = z;
      kept[2 * h + j] = u;
      kept[3 * h + j] = m;
    }
  }
}
template <class T>
[[gnu::always_inline]] inline void plain_units(int64_t n, bool relu, const T* __restrict x, const T* __restrict g,
                                               T* __restrict hidden) {
  if (relu)
    for (int64_t j = 0; j < n; ++j) hidden[j] = x[j] + g[j] > T(0) ? x[j] + g[j] : T(0);
  else
    for (int64_t j = 0; j < n; ++j) hidden[j] = sc::tanh(x[j] + g[j]);
}

// Backward of one row: gh comes in as the gradient of the new state and leaves as what goes straight to the old one;
// the part that goes through the gates is added by a product afterwards.
template <class T>
[[gnu::always_inline]] inline void lstm_row_back(int64_t h, const T* __restrict kept, const T* __restrict cell,
                                                 const T* __restrict before, T* __restrict gh, T* __restrict gc,
                                                 T* __restrict g) {
  for (int64_t j = 0; j < h; ++j) {
    T i = kept[j], f = kept[h + j], u = kept[2 * h + j], o = kept[3 * h + j], t = sc::tanh(cell[j]);
    T dc = gc[j] + gh[j] * o * (T(1) - t * t);
    g[3 * h + j] = gh[j] * t * o * (T(1) - o);
    g[j] = dc * u * i * (T(1) - i);
    g[2 * h + j] = dc * i * (T(1) - u * u);
    g[h + j] = dc * before[j] * f * (T(1) - f);
    gc[j] = dc * f;
    gh[j] = T(0);
  }
}
template <class T>
[[gnu::always_inline]] inline void gru_row_back(int64_t h, const T* __restrict kept, const T* __restrict before,
                                                T* __restrict gh, T* __restrict gx, T* __restrict g) {
  for (int64_t j = 0; j < h; ++j) {
    T r = kept[j], z = kept[h + j], n = kept[2 * h + j], m = kept[3 * h + j], d = gh[j];
    T dn = d * (T(1) - z) * (T(1) - n * n), dz = d * (before[j] - n) * z * (T(1) - z), dr = dn * m * r * (T(1) - r);
    gx[j] = g[j] = dr;
    gx[h + j] = g[h + j] = dz;
    gx[2 * h + j] = dn;
    g[2 * h + j] = dn * r;
    gh[j] = d * z;
  }
}
template <class T>
[[gnu::always_inline]] inline void plain_row_back(int64_t h, bool relu, const T* __restrict y, T* __restrict gh,
                                                  T* __restrict g) {
  for (int64_t j = 0; j < h; ++j) {
    g[j] = relu ? (y[j] > T(0) ? gh[j] : T(0)) : gh[j] * (T(1) - y[j] * y[j]);
    gh[j] = T(0);
  }
}

/// What one step of one row reads and writes: the state and the cell before and after it, and the output, which is the
/// state where that lies in its place.
template <class T>
struct RowStep {
  const T *x, *g, *before, *cell;
  T *after, *y, *c, *kept;
};

/// Units [first, first + n) of it.
template <class T>
void step_units(const RnnShape& s, bool alive, const RowStep<T>& r, int64_t first, int64_t n) {
  const int64_t h = s.h;
  T *after = r.after + first, *kept = r.kept ? r.kept + first : nullptr;
  const T *x = r.x + first, *g = r.g + first, *before = r.before + first;
  if (!alive) {
    std::copy_n(before, n, after);
    std::fill_n(r.y + first, n, T(0));
    if (s.cell == Cell::lstm) std::copy_n(r.cell + first, n, r.c + first);
    for (int64_t k = 0; kept && k < kept_of(s.cell); ++k) std::fill_n(kept + k * h, n, T(0));
    return;
  }
  in_vectors(
      n, [&]() __attribute__((always_inline)) {
        if (s.cell == Cell::lstm)
          kept ? lstm_units<T, true>(h, n, x, g, r.cell + first, r.c + first, after, kept)
               : lstm_units<T, false>(h, n, x, g, r.cell + first, r.c + first, after, nullptr);
        else if (s.cell == Cell::gru)
          kept ? gru_units<T, true>(h, n, x, g, before, after, kept)
               : gru_units<T, false>(h, n, x, g, before, after, nullptr);
        else
          plain_units(n, s.cell == Cell::relu, x, g, after);
      });
  if (r.after != r.y) std::copy_n(after, n, r.y + first);
}

/// Few rows of large states are cut into units at every step, so that several threads share the weights.
constexpr int64_t kUnitPieces = 4;
bool cut_into_units(const RnnShape& s) { return s.n < kUnitPieces && gates_of(s.cell) * s.h * s.h >= 1 << 16; }

/// op(W) [k, n], the right side of the product of every step, in the order that this reads fastest where it serves
/// several steps: a product of few rows spends as much on that order as on itself.
template <class T>
class StepWeights {
 public:
  StepWeights(const RnnShape& s, bool transposed, int64_t n, int64_t k, const T* w, T* room)
      : transposed_(transposed), n_(n), k_(k), w_(w), room_(serves(s) ? room : nullptr) {
    if (room_) tiled_pack(transposed, n, k, w, transposed ? k : n, room);
  }
  static int64_t elements(const RnnShape& s, int64_t n, int64_t k) { return serves(s) ? tiled_side<T>(n, k) : 0; }
  /// C [m, n] = A [m, k] op(W), or added to it.
  void multiply(int64_t m, const T* a, T* c, bool add) const {
    if (room_) return tiled_gemm_packed(m, n_, k_, a, k_, room_, {0, n_}, c, n_, add);
    gemm(false, transposed_, m, n_, k_, a, k_, w_, transposed_ ? k_ : n_, c, n_, add ? T(1) : T(0));
  }
  static bool serves(const RnnShape& s) { return s.steps > 2 && s.n >= 8; }

 private:
  bool transposed_;
  int64_t n_, k_;
  const T* w_;
  T* room_;
};

/// Rows of the batch a piece. Each piece reads all weights at every step, so of packed ones, by which a row has the
/// same bits in any piece, there are no more pieces than threads; others are cut by a rule of their number.
template <class T>
int64_t rnn_grain(const RnnShape& s) {
  const int64_t pieces = StepWeights<T>::serves(s) ? num_threads() : 2;
  return std::clamp<int64_t>((s.n + pieces - 1) / pieces, 4, 32);
}

/// Of every row of the batch.
template <class T>
struct ForwardRoom {
  T *hidden, *next, *gates, *weights;
  ForwardRoom(const RnnShape& s, Room& room)
      : hidden(room.take<T>(s.n * s.h)),
        next(room.take<T>(s.n * s.h)),
        gates(room.take<T>(s.n * gates_of(s.cell) * s.h)),
        weights(room.take<T>(StepWeights<T>::elements(s, gates_of(s.cell) * s.h, s.h))) {}
};
template <class T>
struct BackwardRoom {
  T* apart;   ///< what goes to the hidden state's part of the gates, of every step: for gru it differs from the input's
  T* before;  ///< the states before every step
  T *gh, *gcell;  ///< of every row of the batch
  T* weights;
  BackwardRoom(const RnnShape& s, Room& room)
      : apart(room.take<T>(s.cell == Cell::gru ? s.steps * s.n * gates_of(s.cell) * s.h : 0)),
        before(room.take<T>(s.steps * s.n * s.h)),
        gh(room.take<T>(s.n * s.h)),
        gcell(room.take<T>(s.n * s.h)),
        weights(room.take<T>(StepWeights<T>::elements(s, s.h, gates_of(s.cell) * s.h))) {}
};

}  // namespace

template <class T>
size_t rnn_forward_workspace(const RnnShape& s) {
  Room room;
  ForwardRoom<T>(s, room);
  return room.used();
}
template <class T>
size_t rnn_backward_workspace(const RnnShape& s) {
  Room room;
  BackwardRoom<T>(s, room);
  return room.used();
}

template <class T>
void rnn_forward(const RnnShape& s, const T* gx, const T* h0, const T* c0, const T* wh, const T* bh, T* y, T* c,
                 T* kept, void* memory) {
  int64_t h = s.h, width = gates_of(s.cell) * h, keep = kept_of(s.cell) * h;
  Room whole(memory);
  const ForwardRoom<T> room(s, whole);
  const bool lstm = s.cell == Cell::lstm;
  // Without lengths a state is the output of its step; of sequences that have ended it stays, while their outputs are
  // 0.
  auto state = [&](int64_t step) -> T* {  ///< [n, h] after so many steps
    if (step > 0 && !s.lengths) return y + time_of(s, step - 1) * s.n * h;
    return step % 2 == 0 ? room.hidden : room.next;
  };
  auto row_step = [&](int64_t row, int64_t step) {
    const int64_t t = time_of(s, step), at = t * s.n + row;
    const T* cells = !lstm ? nullptr : step == 0 ? c0 : c + time_of(s, step - 1) * s.n * h;
    return RowStep<T>{gx + at * width,
                      room.gates + row * width,
                      state(step) + row * h,
                      lstm ? cells + row * h : nullptr,
                      state(step + 1) + row * h,
                      y + at * h,
                      lstm ? c + at * h : nullptr,
                      kept ? kept + at * keep : nullptr};
  };
  const T add = bh ? T(1) : T(0);
  std::copy_n(h0, s.n * h, room.hidden);
  if (cut_into_units(s)) {
    for (int64_t step = 0; step < s.steps; ++step) {
      const int64_t t = time_of(s, step);
      const T* from = state(step);
      parallel_for(h, (h + kUnitPieces - 1) / kUnitPieces, [&](int64_t first, int64_t last) {
        const int64_t n = last - first;
        for (int64_t r = 0; r < s.n; ++r) {
          for (int64_t q = 0; q < gates_of(s.cell); ++q) {
            T* g = room.gates + r * width + q * h + first;
            if (bh) std::copy_n(bh + q * h + first, n, g);
            gemm(false, true, 1, n, h, from + r * h, h, wh + (q * h + first) * h, h, g, width, add);
          }
          step_units(s, live(s, r, t), row_step(r, step), first, n);
        }
      });
    }
    return;
  }
  const StepWeights<T> weights(s, true, width, h, wh, room.weights);
  parallel_for(s.n, rnn_grain<T>(s), [&](int64_t begin, int64_t end) {
    const int64_t rows = end - begin;
    T* gates = room.gates + begin * width;
    for (int64_t step = 0; step < s.steps; ++step) {
      const int64_t t = time_of(s, step);
      const T* from = state(step) + begin * h;
      for (int64_t r = 0; bh && r < rows; ++r) std::copy_n(bh, width, gates + r * width);
      weights.multiply(rows, from, gates, bh != nullptr);
      for (int64_t r = begin; r < end; ++r) step_units(s, live(s, r, t), row_step(r, step), 0, h);
    }
  });
}

template <class T>
void rnn_backward(const RnnShape& s, const T* h0, const T* c0, const T* wh, const T* y, const T* c, const T* kept,
                  const T* gy, const T* gc, T* ggx, T* gh0, T* gc0, T* gwh, T* gbh, void* memory) {
  int64_t h = s.h, width = gates_of(s.cell) * h, keep = kept_of(s.cell) * h, total = s.steps * s.n;
  Room whole(memory);
  const BackwardRoom<T> room(s, whole);
  T* g_hidden = s.cell == Cell::gru ? room.apart : ggx;
  /// The state (or cell) that a row had before time t.
  auto earlier = [&](const T* all, const T* first, int64_t row, int64_t t) {
    int64_t prior = s.reverse ? t + 1 : t - 1;
    bool start = prior < 0 || prior >= s.steps || (s.reverse && !live(s, row, prior));
    return start ? first + row * h : all + (prior * s.n + row) * h;
  };
  const StepWeights<T> weights(s, false, h, width, wh, room.weights);
  parallel_for(s.n, rnn_grain<T>(s), [&](int64_t begin, int64_t end) {
    int64_t rows = end - begin;
    T *gh = room.gh + begin * h, *gcell = room.gcell + begin * h;
    std::fill_n(gh, rows * h, T(0));
    std::fill_n(gcell, rows * h, T(0));
    for (int64_t step = s.steps - 1; step >= 0; --step) {
      int64_t t = time_of(s, step), at = t * s.n + begin;
      for (int64_t r = 0; r < rows; ++r) {
        T *d = gh + r * h, *dc = gcell + r * h, *g = g_hidden + (at + r) * width, *x = ggx + (at + r) * width;
        if (gc && s.cell == Cell::lstm)
          for (int64_t j = 0; j < h; ++j) dc[j] += gc[(at + r) * h + j];
        const T* prior = earlier(y, h0, begin + r, t);
        std::copy_n(prior, h, room.before + (at + r) * h);
        if (!live(s, begin + r, t)) {
          std::fill_n(g, width, T(0));
          std::fill_n(x, width, T(0));
          continue;
        }
        if (gy)
          for (int64_t j = 0; j < h; ++j) d[j] += gy[(at + r) * h + j];
        const T* k = kept + (at + r) * keep;
        in_vectors(
            h, [&]() __attribute__((always_inline)) {
              if (s.cell == Cell::lstm)
                lstm_row_back(h, k, c + (at + r) * h, earlier(c, c0, begin + r, t), d, dc, g);
              else if (s.cell == Cell::gru)
                gru_row_back(h, k, prior, d, x, g);
              else
                plain_row_back(h, s.cell == Cell::relu, y + (at + r) * h, d, g);
            });
      }
      weights.multiply(rows, g_hidden + at * width, gh, true);
    }
    std::copy_n(gh, rows * h, gh0 + begin * h);
    if (s.cell == Cell::lstm) std::copy_n(gcell, rows * h, gc0 + begin * h);
  });
  gemm(true, false, width, h, total, g_hidden, width, room.before, h, gwh, h);
  if (!gbh) return;
  parallel_for(width, 64, [&](int64_t begin, int64_t end) {
    std::fill(gbh + begin, gbh + end, T(0));
    for (int64_t i = 0; i < total; ++i)
      for (int64_t j = begin; j < end; ++j) gbh[j] += g_hidden[i * width + j];
  });
}

#define RNN_OF(T)                                                                                                      \
  template size_t rnn_forward_workspace<T>(const RnnShape&);                                                           \
  template size_t rnn_backward_workspace<T>(const RnnShape&);                                                          \
  template void rnn_forward<T>(const RnnShape&, const T*, const T*, const T*, const T*, const T*, T*, T*, T*, void*);  \
  template void rnn_backward<T>(const RnnShape&, const T*, const T*, const T*, const T*, const T*, const T*, const T*, \
                                const T*, T*, T*, T*, T*, T*, void*);
RNN_OF(float)
RNN_OF(double)
#undef RNN_OF

}  // namespace tenon::kernels
