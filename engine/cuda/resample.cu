#include <cmath>

#include "engine/cuda/strided.h"

// Resampling along one axis. Each element of the long axis is a weighted sum of at most four; which ones, and their
// weights, are worked out once for the axis, in f64 as on the CPU.
namespace tenon::cuda {
namespace {

constexpr int kResampleThreads = 256;
enum ResampleBy : int { by_nearest, by_linear, by_cubic };

struct ResampleAxis {
  int64_t in, out;
  int mode;
  bool align;
  double step;

  __device__ int64_t inside(int64_t i) const { return i < 0 ? 0 : i < in ? i : in - 1; }
};

/// Four places and weights for every element of the result.
template <class T>
struct ResampleTaps {
  int32_t* at;
  T* weight;
  int count;
};

__device__ double cubic_near(double x) { return ((-0.75 + 2) * x - (-0.75 + 3)) * x * x + 1; }
__device__ double cubic_far(double x) { return ((-0.75 * x - 5 * -0.75) * x + 8 * -0.75) * x - 4 * -0.75; }

template <class T>
__global__ void resample_taps(ResampleAxis a, ResampleTaps<T> taps) {
  for (int64_t o = first_of_thread(); o < a.out; o += threads_of_grid()) {
    int64_t at[4] = {};
    double weight[4] = {1, 0, 0, 0};
    const double place = a.align ? static_cast<double>(o) * a.step : (static_cast<double>(o) + 0.5) * a.step - 0.5;
    if (a.mode == by_nearest) {
      const auto i = static_cast<int64_t>(std::floor(static_cast<float>(o) * static_cast<float>(a.step)));
      at[0] = i < a.in - 1 ? i : a.in - 1;
    } else if (a.mode == by_linear) {
      const double from = place > 0 ? place : 0;
      at[0] = a.inside(static_cast<int64_t>(from));
      at[1] = a.inside(at[0] + 1);
      weight[1] = from - static_cast<double>(at[0]);
      weight[0] = 1 - weight[1];
    } else {
      const auto i = static_cast<int64_t>(std::floor(place));
      const double f = place - static_cast<double>(i);
      for (int k = 0; k < 4; ++k) at[k] = a.inside(i - 1 + k);
      weight[0] = cubic_far(f + 1);
      weight[1] = cubic_near(f);
      weight[2] = cubic_near(1 - f);
      weight[3] = cubic_far(2 - f);
    }
    for (int k = 0; k < 4; ++k) {
      taps.at[o * 4 + k] = static_cast<int32_t>(at[k]);
      taps.weight[o * 4 + k] = static_cast<T>(weight[k]);
    }
  }
}

/// For every element of x the elements of y that read it: [begin, end). Places rise with the element of y.
template <class T>
__global__ void resample_readers(ResampleAxis a, ResampleTaps<T> taps, int32_t* begin, int32_t* end) {
  const auto first_where = [&](const auto& holds) {
    int64_t low = 0, high = a.out;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (holds(middle))
        high = middle;
      else
        low = middle + 1;
    }
    return static_cast<int32_t>(low);
  };
  for (int64_t i = first_of_thread(); i < a.in; i += threads_of_grid()) {
    begin[i] = first_where([&](int64_t o) { return taps.at[o * 4 + taps.count - 1] >= i; });
    end[i] = first_where([&](int64_t o) { return taps.at[o * 4] > i; });
  }
}

/// The plan is of y, of x without the axis, and of the place along the axis.
template <class T>
__global__ void resample_rows(const T* x, T* y, int64_t step, ResampleTaps<T> taps, Strided<3> p) {
  for (int64_t i = first_of_thread(); i < p.numel; i += threads_of_grid()) {
    int64_t at[3];
    p.find(i, at);
    const T* from = x + at[1];
    const int32_t* t = taps.at + at[2] * 4;
    const T* w = taps.weight + at[2] * 4;
    T v;
    if (taps.count == 1) {
      v = from[t[0] * step];
    } else {
      v = w[0] * from[t[0] * step] + w[1] * from[t[1] * step];
      if (taps.count == 4) v = v + (w[2] * from[t[2] * step] + w[3] * from[t[3] * step]);
    }
    y[at[0]] = v;
  }
}

/// The adjoint: an element of x adds what its readers made of it, in their order. The plan is of x, of g without the
/// axis, and of the place along the axis.
template <class T>
__global__ void resample_gradient(const T* g, T* x, int64_t step, ResampleTaps<T> taps, const int32_t* begin,
                                  const int32_t* end, Strided<3> p) {
  for (int64_t i = first_of_thread(); i < p.numel; i += threads_of_grid()) {
    int64_t at[3];
    p.find(i, at);
    T sum = 0;
    for (int64_t o = begin[at[2]]; o < end[at[2]]; ++o)
      for (int k = 0; k < taps.count; ++k)
        if (taps.at[o * 4 + k] == at[2]) sum += taps.weight[o * 4 + k] * g[at[1] + o * step];
    x[at[0]] = sum;
  }
}

ResampleAxis resample_axis(const Args& c) {
  const ResampleAxis a{c.whole("in"), c.whole("out"), static_cast<int>(c.whole("mode")), c.flag("align_corners"),
                       c.number("step")};
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  c.want(a.in <= most && a.out <= most && a.mode <= by_cubic);
  return a;
}
template <class T>
ResampleTaps<T> resample_taps_of(const Args& c, const ResampleAxis& a) {
  const ResampleTaps<T> taps{c.scratch<int32_t>(a.out * 4), c.scratch<T>(a.out * 4),
                             a.mode == by_nearest  ? 1
                             : a.mode == by_linear ? 2
                                                   : 4};
  launch(resample_taps<T>, blocks_for(a.out, kResampleThreads), kResampleThreads, c, a, taps);
  return taps;
}
Strided<3> resample_plan(const Operand& to, const Operand& from, int axis) {
  Operand column = from, place = to;
  column.size[axis] = to.size[axis];
  column.stride[axis] = 0;
  for (int d = 0; d < to.ndim; ++d) place.stride[d] = d == axis;
  return strided_of<3>({to, column, place});
}

void run_resample(Args& c) {
  const Operand x = c.in(0), y = c.out(0);
  const ResampleAxis a = resample_axis(c);
  const auto axis = static_cast<int>(c.whole("axis"));
  with_compute_type(x.type(), [&]<class T>(T) {
    launch(resample_rows<T>, blocks_for(y.numel(), kResampleThreads), kResampleThreads, c, x.at<const T>(), y.at<T>(),
           x.stride[axis], resample_taps_of<T>(c, a), resample_plan(y, x, axis));
  });
}
void run_resample_backward(Args& c) {
  const Operand g = c.in(0), x = c.out(0);
  const ResampleAxis a = resample_axis(c);
  const auto axis = static_cast<int>(c.whole("axis"));
  with_compute_type(x.type(), [&]<class T>(T) {
    const ResampleTaps<T> taps = resample_taps_of<T>(c, a);
    auto *begin = c.scratch<int32_t>(a.in), *end = c.scratch<int32_t>(a.in);
    launch(resample_readers<T>, blocks_for(a.in, kResampleThreads), kResampleThreads, c, a, taps, begin, end);
    launch(resample_gradient<T>, blocks_for(x.numel(), kResampleThreads), kResampleThreads, c, g.at<const T>(),
           x.at<T>(), g.stride[axis], taps, begin, end, resample_plan(x, g, axis));
  });
}

const KernelOf resample_entry{"resample", run_resample};
const KernelOf resample_backward_entry{"resample_backward", run_resample_backward};

}  // namespace
}  // namespace tenon::cuda
