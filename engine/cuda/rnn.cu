#include "engine/cuda/gemm.h"
#include "engine/op/scalar.h"

// A layer of recurrent cells: of every step one product of the states with the weights, and one kernel for the cells of
// all rows. A length that is not in 0 .. steps, which the CPU refuses, is read as the nearer of the two: the values are
// on the device.
namespace tenon::cuda {
namespace {

enum RnnCell : int32_t { kLstm, kGru, kTanh, kRelu };  // as kernels::Cell
enum RnnInput { kRnnGates, kRnnHidden, kRnnCells, kRnnWeight, kRnnBias, kRnnLengths, kRnnInputs };

/// [steps, rows, units], or [rows, units] with a step of 0; null where it is left out.
template <class T>
struct RnnArray {
  T* data;
  int64_t by_step, by_row, by_unit;
  explicit RnnArray(const Operand& x) : data(x.at<T>()), by_step(0), by_row(0), by_unit(0) {
    if (!x.there() || x.ndim < 2 || x.numel() == 0) {
      data = nullptr;
      return;
    }
    by_step = x.ndim == 3 ? x.stride[0] : 0;
    by_row = x.stride[x.ndim - 2];
    by_unit = x.stride[x.ndim - 1];
  }
  /// Without gaps.
  RnnArray(T* p, int64_t rows, int64_t units) : data(p), by_step(rows * units), by_row(units), by_unit(1) {}
  RnnArray at_step(int64_t t) const {
    RnnArray a = *this;
    if (a.data) a.data += t * by_step;
    return a;
  }
  __host__ __device__ T* at(int64_t row, int64_t unit) const { return data + row * by_row + unit * by_unit; }
};

struct RnnSizes {
  int32_t cell;
  bool reverse;
  int64_t steps, n, h;
  const int64_t* lengths;  ///< or null
  int64_t length_stride;

  int64_t gates() const { return cell == kLstm ? 4 : cell == kGru ? 3 : 1; }
  int64_t time(int64_t step) const { return reverse ? steps - 1 - step : step; }
  __device__ bool live(int64_t row, int64_t t) const { return !lengths || t < lengths[row * length_stride]; }
};

/// Of one step: what the inputs and the hidden state give to the gates, the states before and after.
template <class T>
struct RnnStep {
  RnnSizes s;
  int64_t t;
  RnnArray<const T> x, g, before, cell;
  RnnArray<T> after, y, c, kept;  ///< `after` may be y
};

template <class T>
__global__ void rnn_cells(RnnStep<T> r) {
  const int64_t h = r.s.h, all = r.s.n * h, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < all; at += step) {
    const int64_t row = at / h, j = at % h;
    const T before = r.before.data ? *r.before.at(row, j) : T(0), cell = r.cell.data ? *r.cell.at(row, j) : T(0);
    T hidden = before, next = cell, k[4] = {};
    const bool live = r.s.live(row, r.t);
    if (live) {
      const auto x = [&](int q) { return *r.x.at(row, q * h + j); };
      const auto g = [&](int q) { return *r.g.at(row, q * h + j); };
      if (r.s.cell == kLstm) {
        k[0] = sc::sigmoid(x(0) + g(0));
        k[1] = sc::sigmoid(x(1) + g(1));
        k[2] = sc::tanh(x(2) + g(2));
        k[3] = sc::sigmoid(x(3) + g(3));
        next = k[1] * cell + k[0] * k[2];
        hidden = k[3] * sc::tanh(next);
      } else if (r.s.cell == kGru) {
        k[0] = sc::sigmoid(x(0) + g(0));
        k[1] = sc::sigmoid(x(1) + g(1));
        k[3] = g(2);
        k[2] = sc::tanh(x(2) + k[0] * k[3]);
        hidden = (T(1) - k[1]) * k[2] + k[1] * before;
      } else {
        const T sum = x(0) + g(0);
        hidden = r.s.cell == kTanh ? sc::tanh(sum) : sum > T(0) ? sum : T(0);
      }
    }
    *r.after.at(row, j) = hidden;
    if (r.after.data != r.y.data) *r.y.at(row, j) = live ? hidden : T(0);
    if (r.c.data) *r.c.at(row, j) = next;
    if (r.kept.data)
      for (int q = 0; q < 4; ++q) *r.kept.at(row, q * h + j) = k[q];
  }
}

RnnSizes rnn_sizes(const Args& c) {
  const Operand gx = c.in(kRnnGates), wh = c.in(kRnnWeight), lengths = c.in(kRnnLengths);
  for (const int i : {kRnnHidden, kRnnCells, kRnnWeight, kRnnBias})
    c.want(!c.in(i).there() || c.in(i).dtype == gx.dtype);
  c.want(!lengths.there() || lengths.is(DType::i64));
  RnnSizes s{static_cast<int32_t>(c.whole("cell")), c.flag("reverse"), gx.size[0], gx.size[1], wh.size[1], nullptr, 0};
  if (lengths.there()) s.lengths = lengths.at<const int64_t>(), s.length_stride = lengths.stride[0];
  return s;
}

template <class T>
GemmMatrix rnn_matrix(const RnnArray<T>& a) {
  return {const_cast<void*>(static_cast<const void*>(a.data)), a.by_row, a.by_unit, {}};
}

void run_rnn_sequence(Args& c) {
  const RnnSizes s = rnn_sizes(c);
  with_compute_type(c.out(0).type(), [&](auto one) {
    using T = decltype(one);
    const int64_t width = s.gates() * s.h;
    const Operand wh = c.in(kRnnWeight), bias = c.in(kRnnBias);
    const RnnArray<const T> gx(c.in(kRnnGates)), h0(c.in(kRnnHidden)), c0(c.in(kRnnCells));
    const RnnArray<T> y(c.out(0)), cells(c.out(1)), kept(c.out(2));
    const RnnArray<T> gates(c.scratch<T>(s.n * width), s.n, width);
    // Without lengths a state is the output of its step; of sequences that have ended it stays, while their outputs are
    // 0.
    const RnnArray<T> states(s.lengths ? c.scratch<T>(2 * s.n * s.h) : nullptr, s.n, s.h);
    GemmPlan p;
    p.type = c.out(0).type();
    p.m = s.n, p.n = width, p.k = s.h;
    p.b = {wh.data, wh.stride[1], wh.stride[0], {}};
    p.c = rnn_matrix(gates);
    if (bias.there()) p.bias = bias.data, p.bias_stride = bias.stride[0];
    const int64_t room = gemm_room(p);
    p.room = room > 0 ? c.scratch<double>(room / 8 + 1) : nullptr;
    RnnStep<T> r{s, 0, gx, RnnArray<const T>(gates.data, s.n, width), h0, c0, y, y, cells, kept};
    for (int64_t step = 0; step < s.steps; ++step) {
      r.t = s.time(step);
      p.a = rnn_matrix(r.before);
      p.k = r.before.data ? s.h : 0;
      gemm(c, p);
      r.x = gx.at_step(r.t);
      r.y = y.at_step(r.t);
      r.c = cells.at_step(r.t);
      r.kept = kept.at_step(r.t);
      r.after = s.lengths ? states.at_step(step % 2) : r.y;
      launch(rnn_cells<T>, blocks_for(s.n * s.h, 256), 256, c, r);
      const auto constant = [](const RnnArray<T>& a) {
        RnnArray<const T> k(a.data, 0, 0);
        k.by_step = a.by_step, k.by_row = a.by_row, k.by_unit = a.by_unit;
        return k;
      };
      r.before = constant(r.after);
      r.cell = constant(r.c);
    }
  });
}

/// Of one step backwards: gh and gcell come in as the gradients of the new states and leave as what goes straight to
/// the old ones; the part that goes through the gates is added to gh by a product afterwards.
template <class T>
struct RnnStepBack {
  RnnSizes s;
  int64_t t;
  bool last;                 ///< of the sequence: nothing came before
  RnnArray<const T> h0, c0;  ///< of the beginning
  RnnArray<const T> y, c;    ///< of all steps
  RnnArray<const T> kept, gy, gc;
  RnnArray<T> gh, gcell, gx, g, before;  ///< g: what goes to the hidden state's part of the gates; may be gx
};

template <class T>
__global__ void rnn_cells_back(RnnStepBack<T> r) {
  const int64_t h = r.s.h, all = r.s.n * h, step = int64_t{gridDim.x} * blockDim.x;
  const int64_t prior = r.s.reverse ? r.t + 1 : r.t - 1, gates = r.s.cell == kLstm ? 4 : r.s.cell == kGru ? 3 : 1;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < all; at += step) {
    const int64_t row = at / h, j = at % h;
    const bool start = prior < 0 || prior >= r.s.steps || (r.s.reverse && !r.s.live(row, prior));
    const auto earlier = [&](const RnnArray<const T>& every, const RnnArray<const T>& first) {
      if (start) return first.data ? *first.at(row, j) : T(0);
      return every.at(row, j)[prior * every.by_step];
    };
    const T before = earlier(r.y, r.h0);
    T d = r.last ? T(0) : *r.gh.at(row, j), dc = r.last || !r.gcell.data ? T(0) : *r.gcell.at(row, j);
    if (r.gc.data && r.gcell.data) dc += *r.gc.at(row, j);
    *r.before.at(row, j) = before;
    T g[4] = {}, fresh = 0;  // `fresh`: of gru's last gate, by way of the inputs
    if (r.s.live(row, r.t)) {
      if (r.gy.data) d += *r.gy.at(row, j);
      const auto k = [&](int q) { return *r.kept.at(row, q * h + j); };
      if (r.s.cell == kLstm) {
        const T i = k(0), f = k(1), u = k(2), o = k(3), t = sc::tanh(r.c.at(row, j)[r.t * r.c.by_step]);
        dc += d * o * (T(1) - t * t);
        g[3] = d * t * o * (T(1) - o);
        g[0] = dc * u * i * (T(1) - i);
        g[2] = dc * i * (T(1) - u * u);
        g[1] = dc * earlier(r.c, r.c0) * f * (T(1) - f);
        dc *= f;
        d = 0;
      } else if (r.s.cell == kGru) {
        const T reset = k(0), z = k(1), n = k(2), m = k(3);
        fresh = d * (T(1) - z) * (T(1) - n * n);
        g[0] = fresh * m * reset * (T(1) - reset);
        g[1] = d * (before - n) * z * (T(1) - z);
        g[2] = fresh * reset;
        d = d * z;
      } else {
        const T y = r.y.at(row, j)[r.t * r.y.by_step];
        g[0] = r.s.cell == kRelu ? (y > T(0) ? d : T(0)) : d * (T(1) - y * y);
        d = 0;
      }
    }
    *r.gh.at(row, j) = d;
    if (r.gcell.data) *r.gcell.at(row, j) = dc;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      if (q >= gates) continue;
      *r.g.at(row, q * h + j) = g[q];
      if (r.g.data != r.gx.data) *r.gx.at(row, q * h + j) = q == 2 ? fresh : g[q];
    }
  }
}

template <class T>
__global__ void rnn_one(T* to) {
  *to = T(1);
}

/// The gradients of the weights: products over all steps and rows at once.
template <class T>
void rnn_weight_gradients(const Args& c, const RnnSizes& s, const RnnArray<T>& g, const RnnArray<T>& before) {
  const Operand gwh = c.out(3), gbh = c.out(2);
  GemmPlan p;
  p.type = gwh.type();
  p.m = s.gates() * s.h, p.n = s.h, p.k = s.steps * s.n;
  p.a = {g.data, 1, g.by_row, {}};
  p.b = {before.data, before.by_row, 1, {}};
  p.c = {gwh.data, gwh.stride[0], gwh.stride[1], {}};
  gemm(c, p);
  if (s.cell == kLstm || gbh.numel() == 0) return;
  T* ones = c.scratch<T>(1);  // a row of them
  launch(rnn_one<T>, 1, 1, c, ones);
  p.n = p.m, p.m = 1;
  p.a = {ones, 0, 0, {}};
  p.b = {g.data, g.by_row, 1, {}};
  p.c = {gbh.data, 0, gbh.stride[0], {}};
  gemm(c, p);
}

/// Inputs as the forward op's, then y, c, kept, gy, gc; outputs ggx, gh0, gc0 (of lstm) or gbh, gwh.
void run_rnn_backward(Args& c) {
  const RnnSizes s = rnn_sizes(c);
  const Operand ggx = c.out(0);
  c.want(ggx.contiguous());
  for (int i = kRnnInputs; i < kRnnInputs + 5; ++i) c.want(!c.in(i).there() || c.in(i).dtype == ggx.dtype);
  with_compute_type(ggx.type(), [&](auto one) {
    using T = decltype(one);
    const int64_t width = s.gates() * s.h;
    const RnnArray<T> gx(ggx.at<T>(), s.n, width),
        g = s.cell == kGru ? RnnArray<T>(c.scratch<T>(s.steps * s.n * width), s.n, width) : gx,
        before(c.scratch<T>(s.steps * s.n * s.h), s.n, s.h), gh(c.out(1));
    const RnnArray<const T> kept(c.in(kRnnInputs + 2)), gy(c.in(kRnnInputs + 3)), gc(c.in(kRnnInputs + 4));
    const Operand none{{nullptr, -1, 0, {}, {}}}, wh = c.in(kRnnWeight);
    GemmPlan p;
    p.type = ggx.type();
    p.m = s.n, p.n = s.h, p.k = width;
    p.b = {wh.data, wh.stride[0], wh.stride[1], {}};
    p.c = rnn_matrix(gh);
    p.add = true;
    const int64_t room = gemm_room(p);
    p.room = room > 0 ? c.scratch<double>(room / 8 + 1) : nullptr;
    RnnStepBack<T> r{s,
                     0,
                     true,
                     RnnArray<const T>(c.in(kRnnHidden)),
                     RnnArray<const T>(c.in(kRnnCells)),
                     RnnArray<const T>(c.in(kRnnInputs)),
                     RnnArray<const T>(c.in(kRnnInputs + 1)),
                     kept,
                     gy,
                     gc,
                     gh,
                     RnnArray<T>(s.cell == kLstm ? c.out(2) : none),
                     gx,
                     g,
                     before};
    for (int64_t step = s.steps - 1; step >= 0; --step) {
      r.t = s.time(step);
      r.last = step == s.steps - 1;
      r.kept = kept.at_step(r.t), r.gy = gy.at_step(r.t), r.gc = gc.at_step(r.t);
      r.gx = gx.at_step(r.t), r.g = g.at_step(r.t), r.before = before.at_step(r.t);
      launch(rnn_cells_back<T>, blocks_for(s.n * s.h, 256), 256, c, r);
      p.a = rnn_matrix(r.g);
      gemm(c, p);
    }
    rnn_weight_gradients(c, s, g, before);
  });
}

const KernelOf rnn_entry{"rnn_sequence", run_rnn_sequence};
const KernelOf rnn_backward_entry{"rnn_sequence_backward", run_rnn_backward};

}  // namespace
}  // namespace tenon::cuda
