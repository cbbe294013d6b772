#include <limits>

#include "engine/cuda/rows.h"

// Connectionist temporal classification (Graves et al., 2006), as engine/ops/ctc.cpp has it: logarithms of the shares
// of ways that begin (alpha) or end (beta) at each label of a sequence with blanks between, in double precision. A
// block takes a sequence; its threads take the labels of a step, and steps follow one another. Of a length or label out
// of range, for which the CPU throws, the loss is NaN and the gradient 0.
namespace tenon::cuda {
namespace {

constexpr int kCtcThreads = 128;
constexpr double kNever = -std::numeric_limits<double>::infinity();

__device__ double log_add(double a, double b) {
  const double hi = a < b ? b : a, lo = a < b ? a : b;
  return lo == kNever ? hi : hi + std::log1p(std::exp(lo - hi));
}

/// All operands in row-major order: [steps, n, classes], [n, most], [n], [n].
struct CtcTask {
  const void* log_p;
  const int64_t *targets, *steps, *lengths;
  DType dtype;
  int64_t all_steps, n, classes, most, blank;
  bool zero_infinity;
};

/// One sequence as the threads of its block see it.
struct CtcSequence {
  const CtcTask& t;
  int64_t i, steps, length, labels;
  __device__ CtcSequence(const CtcTask& task, int64_t at) : t(task), i(at), steps(t.steps[at]), length(t.lengths[at]) {
    labels = 2 * length + 1;
  }
  /// Whether all lengths and labels are in range.
  __device__ bool fits() const {
    if (steps < 0 || steps > t.all_steps || length < 0 || length > t.most) return false;
    for (int64_t k = 0; k < length; ++k)
      if (const int64_t v = t.targets[i * t.most + k]; v < 0 || v >= t.classes) return false;
    return true;
  }
  __device__ int64_t label(int64_t s) const { return s % 2 ? t.targets[i * t.most + s / 2] : t.blank; }
  __device__ bool skips(int64_t s) const { return s >= 2 && label(s) != t.blank && label(s) != label(s - 2); }
  __device__ double p(int64_t step, int64_t s) const {
    return element::at<double>(t.log_p, t.dtype, (step * t.n + i) * t.classes + label(s));
  }
  __device__ double alpha(const double* before, int64_t step, int64_t s) const {
    if (step == 0) return s < 2 ? p(0, s) : kNever;
    double a = before[s];
    if (s >= 1) a = log_add(a, before[s - 1]);
    if (skips(s)) a = log_add(a, before[s - 2]);
    return a + p(step, s);
  }
  __device__ double beta(const double* after, int64_t step, int64_t s) const {
    if (step == steps - 1) return s >= labels - 2 ? 0 : kNever;
    double b = after[s] + p(step + 1, s);
    if (s + 1 < labels) b = log_add(b, after[s + 1] + p(step + 1, s + 1));
    if (s + 2 < labels && skips(s + 2)) b = log_add(b, after[s + 2] + p(step + 1, s + 2));
    return b;
  }
  /// Of alpha's last step.
  __device__ double loss(const double* end) const {
    if (steps == 0) return length == 0 ? 0 : -kNever;
    return -(labels > 1 ? log_add(end[labels - 1], end[labels - 2]) : end[0]);
  }
};

/// rows: [n, 2, most labels], alpha of two steps in turns.
template <class T>
__global__ void ctc_losses(CtcTask task, double* rows, T* to) {
  const int64_t widest = 2 * task.most + 1;
  for (int64_t i = blockIdx.x; i < task.n; i += gridDim.x) {
    const CtcSequence q(task, i);
    const bool fits = q.fits();
    double* const mine = rows + i * 2 * widest;
    for (int64_t step = 0; fits && step < q.steps; ++step) {
      double* const now = mine + step % 2 * widest;
      const double* const before = mine + (step + 1) % 2 * widest;
      for (int64_t s = threadIdx.x; s < q.labels; s += blockDim.x) now[s] = q.alpha(before, step, s);
      __syncthreads();
    }
    if (threadIdx.x != 0) continue;
    const double loss = fits ? q.loss(mine + (q.steps + 1) % 2 * widest) : std::numeric_limits<double>::quiet_NaN();
    to[i] = loss == -kNever && task.zero_infinity ? T(0) : static_cast<T>(loss);
  }
}

/// alpha and beta: [n, steps, most labels].
__global__ void ctc_shares(CtcTask task, double* alpha, double* beta) {
  const int64_t widest = 2 * task.most + 1, all = task.all_steps * widest;
  for (int64_t i = blockIdx.x; i < task.n; i += gridDim.x) {
    const CtcSequence q(task, i);
    const int64_t steps = q.fits() ? q.steps : 0;
    double *const a = alpha + i * all, *const b = beta + i * all;
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t back = steps - 1 - step;
      for (int64_t s = threadIdx.x; s < q.labels; s += blockDim.x) {
        a[step * widest + s] = q.alpha(a + (step - 1) * widest, step, s);
        b[back * widest + s] = q.beta(b + (back + 1) * widest, back, s);
      }
      __syncthreads();
    }
  }
}

/// The share of all ways that pass a label at a step is its gradient, up to the sign. The first place of a label adds
/// up those of all its places, so each sum is one thread's. to: zeros.
template <class T>
__global__ void ctc_gradients(CtcTask task, const double* alpha, const double* beta, const T* g, T* to) {
  const int64_t widest = 2 * task.most + 1, all = task.all_steps * widest;
  for (int64_t i = blockIdx.x; i < task.n; i += gridDim.x) {
    const CtcSequence q(task, i);
    const int64_t steps = q.fits() ? q.steps : 0;
    const double* const a = alpha + i * all;
    const double* const b = beta + i * all;
    const double loss = q.fits() ? q.loss(a + (steps - 1) * widest) : 0;
    if (loss == -kNever && task.zero_infinity) continue;
    for (int64_t at = threadIdx.x; at < steps * q.labels; at += blockDim.x) {
      const int64_t step = at / q.labels, first = at % q.labels, label = q.label(first);
      bool seen = false;
      for (int64_t s = 0; s < first && !seen; ++s) seen = q.label(s) == label;
      if (seen) continue;
      T sum = 0;
      for (int64_t s = first; s < q.labels; ++s) {
        if (q.label(s) != label) continue;
        const double share = std::exp(a[step * widest + s] + b[step * widest + s] + loss);
        sum -= static_cast<T>(share * static_cast<double>(g[i]));
      }
      to[(step * task.n + i) * task.classes + label] = sum;
    }
  }
}

CtcTask ctc_task(const Args& c) {
  const Operand p = c.in(0);
  return {dense_of(c, p, p.type()).data,
          rows::dense<int64_t>(c, c.in(1)),
          rows::dense<int64_t>(c, c.in(2)),
          rows::dense<int64_t>(c, c.in(3)),
          p.type(),
          p.size[0],
          p.size[1],
          p.size[2],
          c.in(1).size[1],
          c.whole("blank"),
          c.flag("zero_infinity")};
}

void run_ctc_loss(Args& c) {
  const CtcTask t = ctc_task(c);
  with_compute_type(t.dtype, [&]<class T>(T) {
    const rows::Target<T> to(c, c.out(0));
    T* const losses = to;
    launch(ctc_losses<T>, blocks_for(t.n, 1), kCtcThreads, c, t, c.scratch<double>(t.n * 2 * (2 * t.most + 1)), losses);
    to.finish(c);
  });
}
void run_ctc_backward(Args& c) {
  const CtcTask t = ctc_task(c);
  with_compute_type(t.dtype, [&]<class T>(T) {
    const rows::Target<T> to(c, c.out(0));
    T* const gradients = to;
    Operand zeros = c.out(0);
    zeros.data = gradients;
    zeros.stride[2] = 1;
    zeros.stride[1] = t.classes;
    zeros.stride[0] = t.classes * t.n;
    fill_elements(c, zeros, 0);
    const int64_t values = t.n * t.all_steps * (2 * t.most + 1);
    auto *alpha = c.scratch<double>(values), *beta = c.scratch<double>(values);
    launch(ctc_shares, blocks_for(t.n, 1), kCtcThreads, c, t, alpha, beta);
    launch(ctc_gradients<T>, blocks_for(t.n, 1), kCtcThreads, c, t, static_cast<const double*>(alpha),
           static_cast<const double*>(beta), rows::dense<T>(c, c.in(4)), gradients);
    to.finish(c);
  });
}

const KernelOf ctc_entry{"ctc_loss", run_ctc_loss};
const KernelOf ctc_backward_entry{"ctc_loss_backward", run_ctc_backward};

}  // namespace
}  // namespace tenon::cuda
