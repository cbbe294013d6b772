#include "engine/cuda/columns.h"

// Normalisations. A layer's works on rows, which belong to groups of threads; a batch's on columns: [rows, channels],
// the channels innermost, as channels-last images are without being copied. Moments are taken twice over the data: the
// mean first, then the squares about it.
namespace tenon::cuda {
namespace {

using rows::Add;
using rows::dense;
using rows::over_group;
using rows::RowLoop;
using rows::RowPlan;
using rows::Target;

/// Null where the operand has no elements.
template <class T>
const T* norm_vector(const Args& c, const Operand& v) {
  return v.there() && v.numel() > 0 ? dense<T>(c, v) : nullptr;
}

template <class T>
struct LayerVectors {
  const T *gamma, *beta;
};

template <class T>
__global__ void __launch_bounds__(1024) layer_norm_rows(const T* x, LayerVectors<T> by, T* y, T* mean, T* rstd,
                                                        int64_t rows, int64_t n, T eps, bool rms, int lanes) {
  TENON_SHARED(T, shared, 32);
  for (RowLoop r(rows, n, lanes); r.more(); r.next()) {
    const T* v = x + r.row * n;
    T* out = y + r.row * n;
    T m = 0, var = 0;
    if (!rms) {
      for (int64_t j = r.lane; j < r.end; j += lanes) m += v[j];
      m = over_group<Add>(m, lanes, shared) / static_cast<T>(n);
    }
    for (int64_t j = r.lane; j < r.end; j += lanes) var += (v[j] - m) * (v[j] - m);
    var = over_group<Add>(var, lanes, shared) / static_cast<T>(n);
    const T scale = T(1) / std::sqrt(var + eps);
    for (int64_t j = r.lane; j < r.end; j += lanes) {
      T to = (v[j] - m) * scale;
      if (by.gamma) to *= by.gamma[j];
      if (by.beta) to += by.beta[j];
      out[j] = to;
    }
    if (!r.there || r.lane != 0) continue;
    mean[r.row] = m;
    rstd[r.row] = scale;
  }
}

int64_t layer_width(const Args& c) {
  const AttrArg& shape = c.attr("shape");
  int64_t n = 1;
  for (int i = 0; i < shape.count; ++i) n *= shape.list[i];
  return n;
}

void run_layer_norm(Args& c) {
  const Operand x = c.in(0);
  const int64_t n = layer_width(c), count = n ? x.numel() / n : 0;
  with_compute_type(x.type(), [&](auto one) {
    using T = decltype(one);
    const RowPlan plan(count, n);
    const Target<T> y(c, c.out(0)), mean(c, c.out(1)), rstd(c, c.out(2));
    const LayerVectors<T> by{norm_vector<T>(c, c.in(1)), norm_vector<T>(c, c.in(2))};
    launch(layer_norm_rows<T>, plan.blocks, plan.threads, c, dense<T>(c, x), by, y, mean, rstd, count, n,
           static_cast<T>(c.number("eps")), c.flag("rms"), plan.lanes);
    for (const auto* t : {&y, &mean, &rstd}) t->finish(c);
  });
}

template <class T>
struct LayerGradient {
  const T *x, *gy, *gamma, *mean, *rstd;
  T* gx;
  int64_t rows, n;
  bool rms;
  __device__ T centre(int64_t row) const { return rms ? T(0) : mean[row]; }
};
template <class T>
__global__ void __launch_bounds__(1024) layer_norm_gradient(LayerGradient<T> of, int lanes) {
  TENON_SHARED(T, shared, 32);
  const T n = static_cast<T>(of.n);
  for (RowLoop r(of.rows, of.n, lanes); r.more(); r.next()) {
    const T *v = of.x + r.row * of.n, *g = of.gy + r.row * of.n;
    T* out = of.gx + r.row * of.n;
    const T m = r.there ? of.centre(r.row) : T(0), scale = r.there ? of.rstd[r.row] : T(0);
    T a = 0, b = 0;
    for (int64_t j = r.lane; j < r.end; j += lanes) {
      const T gj = of.gamma ? g[j] * of.gamma[j] : g[j];
      a += gj;
      b += gj * (v[j] - m);
    }
    a = of.rms ? T(0) : over_group<Add>(a, lanes, shared);
    b = over_group<Add>(b, lanes, shared);
    const T k1 = -b * scale * scale * scale / n, k0 = -a * scale / n;
    for (int64_t j = r.lane; j < r.end; j += lanes) {
      const T gj = of.gamma ? g[j] * of.gamma[j] : g[j];
      out[j] = gj * scale + (v[j] - m) * k1 + k0;
    }
  }
}
/// The sums of gy * xhat and of gy, one after the other.
template <class T>
struct LayerSums {
  LayerGradient<T> of;
  __device__ void operator()(int64_t row, int64_t column, T (&sums)[2]) const {
    const int64_t at = row * of.n + column;
    const T g = of.gy[at];
    sums[0] += g * ((of.x[at] - of.centre(row)) * of.rstd[row]);
    sums[1] += g;
  }
};
template <class T>
struct SumsOut {
  T *first, *second;
  __device__ void operator()(int64_t, int64_t column, const double (&sums)[2]) const {
    first[column] = static_cast<T>(sums[0]);
    second[column] = static_cast<T>(sums[1]);
  }
};

void run_layer_norm_backward(Args& c) {
  const Operand x = c.in(0);
  const int64_t n = layer_width(c), count = n ? x.numel() / n : 0;
  with_compute_type(x.type(), [&](auto one) {
    using T = decltype(one);
    LayerGradient<T> of{dense<T>(c, x),
                        dense<T>(c, c.in(1)),
                        norm_vector<T>(c, c.in(2)),
                        dense<T>(c, c.in(3)),
                        dense<T>(c, c.in(4)),
                        nullptr,
                        count,
                        n,
                        c.flag("rms")};
    if (c.flag("gx")) {
      const RowPlan plan(count, n);
      const Target<T> gx(c, c.out(0));
      of.gx = gx;
      launch(layer_norm_gradient<T>, plan.blocks, plan.threads, c, of, plan.lanes);
      gx.finish(c);
    }
    if (!c.flag("sums")) return;
    const Target<T> ggamma(c, c.out(1)), gbeta(c, c.out(2));
    rows::column_sums<T, 2>(c, count, n, LayerSums<T>{of}, SumsOut<T>{ggamma, gbeta});
    ggamma.finish(c);
    gbeta.finish(c);
  });
}

/// With four axes the memory order that puts the second innermost.
Operand channels_inside(const Operand& x) {
  if (x.ndim != 4) return x;
  Operand y = x;
  constexpr int kOrder[] = {0, 2, 3, 1};
  for (int d = 0; d < 4; ++d) {
    y.size[d] = x.size[kOrder[d]];
    y.stride[d] = x.stride[kOrder[d]];
  }
  return y;
}
struct BatchSize {
  int64_t channels, rows;
  explicit BatchSize(const Operand& x) : channels(x.size[1]), rows(channels ? x.numel() / channels : 0) {}
};

template <class T>
struct BatchSum {
  const T* x;
  int64_t channels;
  __device__ void operator()(int64_t row, int64_t column, T (&sums)[1]) const { sums[0] += x[row * channels + column]; }
};
template <class T>
struct BatchSquares {
  const T *x, *mean;
  int64_t channels;
  __device__ void operator()(int64_t row, int64_t column, T (&sums)[1]) const {
    const T d = x[row * channels + column] - mean[column];
    sums[0] += d * d;
  }
};
template <class T>
struct BatchMean {
  T* out;
  double rows;
  __device__ void operator()(int64_t, int64_t column, const double (&sums)[1]) const {
    out[column] = static_cast<T>(sums[0] / rows);
  }
};

template <class T>
struct BatchVectors {
  const T *mean, *var, *gamma, *beta;
  T eps;
  T *invstd, *scale;
};
template <class T>
__global__ void batch_norm_factors(BatchVectors<T> of, int64_t channels) {
  const int64_t j = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= channels) return;
  const T invstd = T(1) / std::sqrt(of.var[j] + of.eps);
  of.invstd[j] = invstd;
  of.scale[j] = of.gamma ? of.gamma[j] * invstd : invstd;
}
template <class T>
struct BatchApply {
  BatchVectors<T> of;
  const T* x;
  T* y;
  int64_t channels;
  __device__ void operator()(int64_t first, int64_t end, int64_t step, int64_t column) const {
    const T m = of.mean[column], scale = of.scale[column], shift = of.beta ? of.beta[column] : T(0);
    for (int64_t r = first; r < end; r += step)
      y[r * channels + column] = (x[r * channels + column] - m) * scale + shift;
  }
};
template <class T>
void batch_norm_apply(const Args& c, const BatchSize& n, const BatchVectors<T>& of, const T* x, T* y) {
  launch(batch_norm_factors<T>, static_cast<unsigned>(ceil_div(n.channels, 256)), 256, c, of, n.channels);
  rows::for_columns(c, n.rows, n.channels, BatchApply<T>{of, x, y, n.channels});
}

void run_batch_norm(Args& c) {
  const Operand x = channels_inside(c.in(0));
  const BatchSize n(c.in(0));
  with_compute_type(x.type(), [&](auto one) {
    using T = decltype(one);
    const T* from = dense<T>(c, x);
    const Target<T> y(c, channels_inside(c.out(0))), mean(c, c.out(1)), var(c, c.out(2)), invstd(c, c.out(3));
    const auto count = static_cast<double>(n.rows);
    rows::column_sums<T, 1>(c, n.rows, n.channels, BatchSum<T>{from, n.channels}, BatchMean<T>{mean, count});
    rows::column_sums<T, 1>(c, n.rows, n.channels, BatchSquares<T>{from, mean, n.channels}, BatchMean<T>{var, count});
    const BatchVectors<T> of{mean,
                             var,
                             norm_vector<T>(c, c.in(1)),
                             norm_vector<T>(c, c.in(2)),
                             static_cast<T>(c.number("eps")),
                             invstd,
                             c.scratch<T>(n.channels)};
    batch_norm_apply<T>(c, n, of, from, y);
    for (const auto* t : {&y, &mean, &var, &invstd}) t->finish(c);
  });
}

void run_batch_norm_inference(Args& c) {
  const Operand x = channels_inside(c.in(0));
  const BatchSize n(c.in(0));
  with_compute_type(x.type(), [&](auto one) {
    using T = decltype(one);
    const Target<T> y(c, channels_inside(c.out(0))), invstd(c, c.out(1));
    const BatchVectors<T> of{dense<T>(c, c.in(3)),
                             dense<T>(c, c.in(4)),
                             norm_vector<T>(c, c.in(1)),
                             norm_vector<T>(c, c.in(2)),
                             static_cast<T>(c.number("eps")),
                             invstd,
                             c.scratch<T>(n.channels)};
    batch_norm_apply<T>(c, n, of, dense<T>(c, x), y);
    y.finish(c);
    invstd.finish(c);
  });
}

template <class T>
struct BatchGradient {
  const T *x, *gy, *mean, *invstd, *gamma;
  T *gx, *ggamma, *gbeta, *k;  ///< gx = k0 * gy + k1 * (x - mean) + k2, each k of `channels`
  int64_t channels;
  double rows;
  bool batch;
};
template <class T>
struct BatchGradientSums {
  BatchGradient<T> of;
  __device__ void operator()(int64_t row, int64_t column, T (&sums)[2]) const {
    const int64_t at = row * of.channels + column;
    const T g = of.gy[at];
    sums[0] += g;
    sums[1] += g * ((of.x[at] - of.mean[column]) * of.invstd[column]);
  }
};
template <class T>
struct BatchGradientEnd {
  BatchGradient<T> of;
  __device__ void operator()(int64_t, int64_t j, const double (&sums)[2]) const {
    of.gbeta[j] = static_cast<T>(sums[0]);
    of.ggamma[j] = static_cast<T>(sums[1]);
    const T scale = of.gamma ? of.gamma[j] * of.invstd[j] : of.invstd[j];
    of.k[j] = scale;
    of.k[of.channels + j] = of.batch ? -scale * of.invstd[j] * static_cast<T>(sums[1] / of.rows) : T(0);
    of.k[2 * of.channels + j] = of.batch ? -scale * static_cast<T>(sums[0] / of.rows) : T(0);
  }
};
template <class T>
struct BatchGradientApply {
  BatchGradient<T> of;
  __device__ void operator()(int64_t first, int64_t end, int64_t step, int64_t column) const {
    const T m = of.mean[column], k0 = of.k[column], k1 = of.k[of.channels + column],
            k2 = of.k[2 * of.channels + column];
    for (int64_t r = first; r < end; r += step) {
      const int64_t at = r * of.channels + column;
      of.gx[at] = k0 * of.gy[at] + k1 * (of.x[at] - m) + k2;
    }
  }
};

void run_batch_norm_backward(Args& c) {
  const Operand x = channels_inside(c.in(0));
  const BatchSize n(c.in(0));
  with_compute_type(x.type(), [&](auto one) {
    using T = decltype(one);
    const Target<T> gx(c, channels_inside(c.out(0))), ggamma(c, c.out(1)), gbeta(c, c.out(2));
    const BatchGradient<T> of{dense<T>(c, x),
                              dense<T>(c, channels_inside(c.in(1))),
                              dense<T>(c, c.in(2)),
                              dense<T>(c, c.in(3)),
                              norm_vector<T>(c, c.in(4)),
                              gx,
                              ggamma,
                              gbeta,
                              c.scratch<T>(3 * n.channels),
                              n.channels,
                              static_cast<double>(n.rows),
                              c.flag("batch_statistics")};
    rows::column_sums<T, 2>(c, n.rows, n.channels, BatchGradientSums<T>{of}, BatchGradientEnd<T>{of});
    rows::for_columns(c, n.rows, n.channels, BatchGradientApply<T>{of});
    for (const auto* t : {&gx, &ggamma, &gbeta}) t->finish(c);
  });
}

/// In place on input 0, which is the output; each element is read and written by one thread.
template <class T>
__global__ void running_update(const T* old, const T* batch, T* out, T momentum, T factor, rows::Walk<3> walk) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= walk.count) return;
  int64_t at[3];
  walk.at(i, at);
  const T was = old[at[0]];
  out[at[2]] = was + momentum * (batch[at[1]] * factor - was);
}
void run_update_running(Args& c) {
  const Operand old = c.in(0), batch = c.in(1), out = c.out(0);
  with_compute_type(batch.type(), [&](auto one) {
    using T = decltype(one);
    const rows::Walk<3> walk = rows::walk_of(old, batch, out);
    launch(running_update<T>, static_cast<unsigned>(ceil_div(walk.count, 256)), 256, c, old.at<const T>(),
           batch.at<const T>(), out.at<T>(), static_cast<T>(c.number("momentum")), static_cast<T>(c.number("factor")),
           walk);
  });
}

const KernelOf layer_norm_entry{"layer_norm", run_layer_norm};
const KernelOf layer_norm_backward_entry{"layer_norm_backward", run_layer_norm_backward};
const KernelOf batch_norm_entry{"batch_norm", run_batch_norm};
const KernelOf batch_norm_inference_entry{"batch_norm_inference", run_batch_norm_inference};
const KernelOf batch_norm_backward_entry{"batch_norm_backward", run_batch_norm_backward};
const KernelOf update_running_entry{"update_running", run_update_running};

}  // namespace
}  // namespace tenon::cuda
