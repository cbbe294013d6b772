#include "engine/cuda/rows.h"

// Softmax along the last axis and the cross-entropy of rows of logits: a row belongs to a group of threads, which reads
// it again for each step. The second reading comes from a cache.
namespace tenon::cuda {
namespace {

using rows::RowLoop;
using rows::RowPlan;

template <class T>
__device__ T largest_of_row(const T* v, const RowLoop& r, int lanes, T* shared) {
  T m = -std::numeric_limits<T>::infinity();
  for (int64_t j = r.lane; j < r.end; j += lanes) m = v[j] > m ? v[j] : m;  // a NaN comes back through exp
  return rows::over_group<rows::Larger>(m, lanes, shared);
}
template <class T>
__device__ T sum_of_exps(const T* v, T m, const RowLoop& r, int lanes, T* shared) {
  T sum = 0;
  for (int64_t j = r.lane; j < r.end; j += lanes) sum += std::exp(v[j] - m);
  return rows::over_group<rows::Add>(sum, lanes, shared);
}

template <class T>
__global__ void __launch_bounds__(1024) softmax_rows(const T* x, T* y, int64_t rows, int64_t n, bool log, int lanes) {
  TENON_SHARED(T, shared, 32);
  for (RowLoop r(rows, n, lanes); r.more(); r.next()) {
    const T* v = x + r.row * n;
    T* out = y + r.row * n;
    const T m = largest_of_row(v, r, lanes, shared), sum = sum_of_exps(v, m, r, lanes, shared);
    const T shift = m + std::log(sum);
    for (int64_t j = r.lane; j < r.end; j += lanes) out[j] = log ? v[j] - shift : std::exp(v[j] - m) / sum;
  }
}

void run_softmax(Args& c) {
  const Operand x = c.in(0);
  const int64_t n = x.size[x.ndim - 1], count = n > 0 ? x.numel() / n : 0;
  const bool log = c.flag("log");
  with_compute_type(x.type(), [&](auto one) {
    using T = decltype(one);
    const RowPlan plan(count, n);
    const rows::Target<T> y(c, c.out(0));
    launch(softmax_rows<T>, plan.blocks, plan.threads, c, rows::dense<T>(c, x), y, count, n, log, plan.lanes);
    y.finish(c);
  });
}

template <class T>
__global__ void __launch_bounds__(1024)
    softmax_gradient(const T* y, const T* gy, T* gx, int64_t rows, int64_t n, bool log, int lanes) {
  TENON_SHARED(T, shared, 32);
  for (RowLoop r(rows, n, lanes); r.more(); r.next()) {
    const T *v = y + r.row * n, *g = gy + r.row * n;
    T* out = gx + r.row * n;
    T sum = 0;
    for (int64_t j = r.lane; j < r.end; j += lanes) sum += log ? g[j] : g[j] * v[j];
    sum = rows::over_group<rows::Add>(sum, lanes, shared);
    for (int64_t j = r.lane; j < r.end; j += lanes) out[j] = log ? g[j] - std::exp(v[j]) * sum : v[j] * (g[j] - sum);
  }
}

void run_softmax_backward(Args& c) {
  const Operand y = c.in(0);
  const int64_t n = y.size[y.ndim - 1], count = n > 0 ? y.numel() / n : 0;
  const bool log = c.flag("log");
  with_compute_type(y.type(), [&](auto one) {
    using T = decltype(one);
    const RowPlan plan(count, n);
    const rows::Target<T> gx(c, c.out(0));
    launch(softmax_gradient<T>, plan.blocks, plan.threads, c, rows::dense<T>(c, y), rows::dense<T>(c, c.in(1)), gx,
           count, n, log, plan.lanes);
    gx.finish(c);
  });
}

/// A target that is no class makes the loss NaN: nobody reads targets before the kernel runs.
template <class T>
__global__ void __launch_bounds__(1024)
    cross_entropy_rows(const T* x, const int64_t* target, T* lse, double* loss, int64_t rows, int64_t n, int lanes) {
  TENON_SHARED(T, shared, 32);
  for (RowLoop r(rows, n, lanes); r.more(); r.next()) {
    const T* v = x + r.row * n;
    const T m = largest_of_row(v, r, lanes, shared), sum = sum_of_exps(v, m, r, lanes, shared);
    if (!r.there || r.lane != 0) continue;
    const int64_t t = target[r.row];
    const T whole = m + std::log(sum);
    lse[r.row] = whole;
    loss[r.row] = t >= 0 && t < n ? static_cast<double>(whole) - static_cast<double>(v[t])
                                  : std::numeric_limits<double>::quiet_NaN();
  }
}
template <class T>
__global__ void __launch_bounds__(1024) cross_entropy_mean(const double* loss, int64_t rows, T* out) {
  TENON_SHARED(double, shared, 32);
  double sum = 0;
  for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) sum += loss[i];
  sum = rows::over_group<rows::Add>(sum, static_cast<int>(blockDim.x), shared);
  if (threadIdx.x == 0) *out = static_cast<T>(sum / static_cast<double>(rows));
}

void run_cross_entropy(Args& c) {
  const Operand x = c.in(0);
  const int64_t count = x.size[0], n = x.size[1];
  with_compute_type(x.type(), [&](auto one) {
    using T = decltype(one);
    const RowPlan plan(count, n);
    const rows::Target<T> lse(c, c.out(1));
    auto* loss = c.scratch<double>(count);
    launch(cross_entropy_rows<T>, plan.blocks, plan.threads, c, rows::dense<T>(c, x), rows::dense<int64_t>(c, c.in(1)),
           lse, loss, count, n, plan.lanes);
    launch(cross_entropy_mean<T>, 1, count > 256 ? 1024 : 256, c, loss, count, c.out(0).at<T>());
    lse.finish(c);
  });
}

template <class T>
__global__ void __launch_bounds__(1024) cross_entropy_gradient(const T* x, const int64_t* target, const T* lse,
                                                               const T* g, T* gx, int64_t rows, int64_t n, int lanes) {
  const T scale = *g / static_cast<T>(rows);
  for (RowLoop r(rows, n, lanes); r.more(); r.next()) {
    if (!r.there) continue;
    const int64_t t = target[r.row];
    const T whole = lse[r.row];
    const T* v = x + r.row * n;
    T* out = gx + r.row * n;
    for (int64_t j = r.lane; j < r.end; j += lanes) out[j] = (std::exp(v[j] - whole) - (j == t ? T(1) : T(0))) * scale;
  }
}

void run_cross_entropy_backward(Args& c) {
  const Operand x = c.in(0);
  const int64_t count = x.size[0], n = x.size[1];
  with_compute_type(x.type(), [&](auto one) {
    using T = decltype(one);
    const RowPlan plan(count, n);
    const rows::Target<T> gx(c, c.out(0));
    launch(cross_entropy_gradient<T>, plan.blocks, plan.threads, c, rows::dense<T>(c, x),
           rows::dense<int64_t>(c, c.in(1)), rows::dense<T>(c, c.in(2)), c.in(3).at<const T>(), gx, count, n,
           plan.lanes);
    gx.finish(c);
  });
}

const KernelOf softmax_entry{"softmax", run_softmax};
const KernelOf softmax_backward_entry{"softmax_backward", run_softmax_backward};
const KernelOf cross_entropy_entry{"cross_entropy", run_cross_entropy};
const KernelOf cross_entropy_backward_entry{"cross_entropy_backward", run_cross_entropy_backward};

}  // namespace
}  // namespace tenon::cuda
