#include "engine/cuda/strided.h"

// Ops that put elements elsewhere by a rule of their coordinates: where, triangle, pad and its adjoint. Every element
// of the output is found by one thread, which reads its operands by their strides.
namespace tenon::cuda {
namespace {

constexpr int kShapeThreads = 256;

template <class T>
__global__ void where_moved(const bool* condition, const T* a, const T* b, T* y, Strided<4> p) {
  for (int64_t i = first_of_thread(); i < p.numel; i += threads_of_grid()) {
    int64_t at[4];
    p.find(i, at);
    y[at[0]] = condition[at[1]] ? a[at[2]] : b[at[3]];
  }
}
/// Operands of several dtypes meet in T, as on the CPU.
template <class T>
__global__ void where_mixed(const bool* condition, const void* a, DType a_type, const void* b, DType b_type, void* y,
                            DType y_type, Strided<4> p) {
  for (int64_t i = first_of_thread(); i < p.numel; i += threads_of_grid()) {
    int64_t at[4];
    p.find(i, at);
    const T v = condition[at[1]] ? element::at<T>(a, a_type, at[2]) : element::at<T>(b, b_type, at[3]);
    element::put(y, y_type, at[0], v);
  }
}

void run_where(Args& c) {
  const Operand y = c.out(0), condition = c.in(0), a = c.in(1), b = c.in(2);
  c.want(condition.is(DType::boolean));
  const Strided<4> p = strided_of<4>({y, condition, a, b});
  const unsigned blocks = blocks_for(p.numel, kShapeThreads);
  if (a.dtype == y.dtype && b.dtype == y.dtype) {
    with_width(y.type(), [&]<class T>(T) {
      launch(where_moved<T>, blocks, kShapeThreads, c, condition.at<const bool>(), a.at<const T>(), b.at<const T>(),
             y.at<T>(), p);
    });
    return;
  }
  const DType t = y.is(DType::f16) || y.is(DType::bf16) ? DType::f32 : y.type() < DType::i32 ? DType::i32 : y.type();
  with_compute_type<true>(t, [&]<class T>(T) {
    launch(where_mixed<T>, blocks, kShapeThreads, c, condition.at<const bool>(), static_cast<const void*>(a.data),
           a.type(), static_cast<const void*>(b.data), b.type(), y.data, y.type(), p);
  });
}

/// Columns below `edge` are on the lower side of the diagonal.
template <class T>
__global__ void triangle_of(const T* x, T* y, Divider rows, Divider cols, bool upper, int64_t shift, Strided<2> p) {
  for (int64_t i = first_of_thread(); i < p.numel; i += threads_of_grid()) {
    const int64_t q = cols.of(i), column = i - q * cols.by, row = q - rows.of(q) * rows.by;
    const int64_t edge = row + shift;
    int64_t at[2];
    p.find(i, at);
    y[at[0]] = (column >= edge) == upper ? x[at[1]] : T(0);
  }
}

void run_triangle(Args& c) {
  const Operand x = c.in(0), y = c.out(0);
  const bool upper = c.flag("upper");
  const int64_t rows = y.size[y.ndim - 2], cols = y.size[y.ndim - 1], given = c.whole("shift");
  // What lies beyond the matrix says no more than its border.
  const int64_t bounded = given < -rows ? -rows : given > cols ? cols : given;
  const Strided<2> p = strided_of<2>({y, x}, Count::row_major);
  with_width(y.type(), [&]<class T>(T) {
    launch(triangle_of<T>, blocks_for(p.numel, kShapeThreads), kShapeThreads, c, x.at<const T>(), y.at<T>(),
           Divider(rows), Divider(cols), upper, bounded + (upper ? 0 : 1), p);
  });
}

enum PadBy : int { pad_constant, pad_reflect, pad_replicate, pad_circular };

struct Padding {
  int ndim = 0, mode = 0;
  int64_t before[kDims], after[kDims];
  Divider inner[kDims], outer[kDims];            ///< sizes without and with padding
  int64_t inner_step[kDims], outer_step[kDims];  ///< strides of the operand without and the one with padding
  int64_t inner_numel = 1, outer_numel = 1;

  /// Place `o` of the padded axis d without padding; -1: none.
  __device__ int64_t inside(int d, int64_t o) const {
    const int64_t n = inner[d].by, i = o - before[d];
    if (i >= 0 && i < n) return i;
    switch (mode) {
      case pad_reflect:
        return i < 0 ? -i : 2 * (n - 1) - i;
      case pad_replicate:
        return i < 0 ? 0 : n - 1;
      case pad_circular:
        return i < 0 ? i + n : i - n;
      default:
        return -1;
    }
  }
  /// The places of the padded axis that show element i, in rising order: at most three, or a run of them.
  struct Seen {
    int64_t at[3];
    int64_t count;
    bool run;
    __device__ int64_t operator[](int64_t k) const { return run ? at[0] + k : at[k]; }
  };
  __device__ Seen seen(int d, int64_t i) const {
    const int64_t n = inner[d].by, total = outer[d].by, own = i + before[d];
    Seen s{{}, 0, mode == pad_replicate};
    if (mode == pad_replicate) {
      s.at[0] = i == 0 ? 0 : own;
      s.count = (i == n - 1 ? total : own + 1) - s.at[0];
      return s;
    }
    const auto add = [&](int64_t o) {
      if (o >= 0 && o < total) s.at[s.count++] = o;
    };
    if (mode == pad_reflect && i > 0) add(before[d] - i);
    if (mode == pad_circular) add(own - n);
    add(own);
    if (mode == pad_reflect && i < n - 1) add(own + 2 * (n - 1 - i));
    if (mode == pad_circular) add(own + n);
    return s;
  }
};

/// The last axis comes first. Leading axes that nothing is added to become one where both operands allow it.
Padding padding_of(const Args& c, const Operand& inner, const Operand& outer) {
  Padding p;
  const AttrArg &before = c.attr("before"), &after = c.attr("after");
  p.mode = static_cast<int>(c.whole("mode"));
  int64_t in[kDims], out[kDims];
  for (int d = inner.ndim - 1; d >= 0; --d) {
    const bool whole = before.list[d] == 0 && after.list[d] == 0;
    if (const int k = p.ndim - 1; whole && k >= 0 && p.before[k] == 0 && p.after[k] == 0 &&
                                  inner.stride[d] == p.inner_step[k] * in[k] &&
                                  outer.stride[d] == p.outer_step[k] * out[k]) {
      in[k] *= inner.size[d];
      out[k] *= outer.size[d];
      continue;
    }
    const int k = p.ndim++;
    p.before[k] = before.list[d];
    p.after[k] = after.list[d];
    in[k] = inner.size[d];
    out[k] = outer.size[d];
    p.inner_step[k] = inner.stride[d];
    p.outer_step[k] = outer.stride[d];
  }
  for (int k = 0; k < p.ndim; ++k) {
    p.inner[k] = Divider(in[k]);
    p.outer[k] = Divider(out[k]);
    p.inner_numel *= in[k];
    p.outer_numel *= out[k];
  }
  return p;
}

template <class T>
__global__ void pad_elements(const T* x, T* y, T constant, Padding p) {
  for (int64_t e = first_of_thread(); e < p.outer_numel; e += threads_of_grid()) {
    int64_t rest = e, from = 0, to = 0;
    bool there = true;
    for (int d = 0; d < p.ndim; ++d) {
      const int64_t q = p.outer[d].of(rest), o = rest - q * p.outer[d].by, i = p.inside(d, o);
      there = there && i >= 0;
      from += i * p.inner_step[d];
      to += o * p.outer_step[d];
      rest = q;
    }
    y[to] = there ? x[from] : constant;
  }
}

void run_pad(Args& c) {
  const Operand x = c.in(0), y = c.out(0);
  const Padding p = padding_of(c, x, y);
  uint64_t bits = 0;
  element::put(&bits, x.type(), 0, c.number("value"));
  with_width(y.type(), [&]<class T>(T) {
    launch(pad_elements<T>, blocks_for(p.outer_numel, kShapeThreads), kShapeThreads, c, x.at<const T>(), y.at<T>(),
           static_cast<T>(bits), p);
  });
}

/// Adds what went to several places, in the row-major order of these places.
template <class T>
__global__ void pad_gradient(const T* g, T* x, Padding p) {
  for (int64_t e = first_of_thread(); e < p.inner_numel; e += threads_of_grid()) {
    Padding::Seen seen[kDims];
    int64_t rest = e, to = 0, places = 1;
    for (int d = 0; d < p.ndim; ++d) {
      const int64_t q = p.inner[d].of(rest), i = rest - q * p.inner[d].by;
      seen[d] = p.seen(d, i);
      places *= seen[d].count;
      to += i * p.inner_step[d];
      rest = q;
    }
    T sum = 0;
    for (int64_t k = 0; k < places; ++k) {
      int64_t number = k, from = 0;
      for (int d = 0; d < p.ndim; ++d) {
        from += seen[d][number % seen[d].count] * p.outer_step[d];
        number /= seen[d].count;
      }
      sum += g[from];
    }
    x[to] = sum;
  }
}

void run_pad_backward(Args& c) {
  const Operand g = c.in(0), x = c.out(0);
  const Padding p = padding_of(c, x, g);
  with_compute_type(x.type(), [&]<class T>(T) {
    launch(pad_gradient<T>, blocks_for(p.inner_numel, kShapeThreads), kShapeThreads, c, g.at<const T>(), x.at<T>(), p);
  });
}

const KernelOf where_entry{"where", run_where};
const KernelOf triangle_entry{"triangle", run_triangle};
const KernelOf pad_entry{"pad", run_pad};
const KernelOf pad_backward_entry{"pad_backward", run_pad_backward};

}  // namespace
}  // namespace tenon::cuda
