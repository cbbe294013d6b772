#include "engine/cuda/strided.h"

// Pooling of volumes [n, c, d, h, w] by windows that may be adaptive: one thread an element of the result, channels
// innermost as the results lie. What a window's elements are is engine/ops/pool_nd.cpp's span_of().
namespace tenon::cuda {
namespace {

constexpr int kVolumeThreads = 256;

struct VolumeSpan {
  int begin, end, step, counted;
};
struct VolumeAxis {
  int kernel = 0, stride = 0, padding = 0, dilation = 0, in = 0, out = 0;

  __device__ VolumeSpan span(int o, bool adaptive, bool include_pad) const {
    if (adaptive) {
      const int64_t begin = int64_t{o} * in / out, end = ((o + int64_t{1}) * in + out - 1) / out;
      return {static_cast<int>(begin), static_cast<int>(end), 1, static_cast<int>(end - begin)};
    }
    const int start = o * stride - padding, step = dilation, stop = start + (kernel - 1) * step + 1;
    const int begin = start >= 0 ? start : start + (-start + step - 1) / step * step, end = stop < in ? stop : in;
    const int padded = start + kernel < in + padding ? start + kernel : in + padding;
    return {begin, end, step, include_pad ? padded - start : end > begin ? end - begin : 0};
  }
  /// The windows that may see element i, in [first, last].
  __device__ int first_seeing(int i, bool adaptive) const {
    if (adaptive) return static_cast<int>(int64_t{i} * out / in);
    const int reach = i + padding - (kernel - 1) * dilation;
    return reach > 0 ? (reach + stride - 1) / stride : 0;
  }
  __device__ int last_seeing(int i, bool adaptive) const {
    const int64_t last = adaptive ? ((i + int64_t{1}) * out + in - 1) / in - 1 : (i + padding) / stride;
    return last < out ? static_cast<int>(last) : out - 1;
  }
  __device__ static bool sees(const VolumeSpan& s, int i) {
    return i >= s.begin && i < s.end && (s.step == 1 || (i - s.begin) % s.step == 0);
  }
};

struct VolumePool {
  VolumeAxis axis[3];
  bool adaptive, include_pad;
  int64_t divisor;
  Divider channels, size[3];  ///< of the result
  int64_t numel;
  int64_t from[5], to[5];  ///< strides of input and result

  struct At {
    int64_t n, c;
    int at[3];
    int64_t to;
  };
  __device__ At element(int64_t t) const {
    At e;
    int64_t rest = channels.of(t);
    e.c = t - rest * channels.by;
    e.to = e.c * to[1];
    for (int d = 2; d >= 0; --d) {
      const int64_t q = size[d].of(rest);
      e.at[d] = static_cast<int>(rest - q * size[d].by);
      e.to += e.at[d] * to[2 + d];
      rest = q;
    }
    e.n = rest;
    e.to += e.n * to[0];
    return e;
  }
  __device__ VolumeSpan span(int d, int o) const { return axis[d].span(o, adaptive, include_pad); }
  template <class T>
  __device__ T share(int64_t counted) const {
    return T(1) / static_cast<T>(divisor ? divisor : counted > 1 ? counted : 1);
  }
};

VolumePool volume_pool(const Args& c, const Operand& x, const Operand& y, bool backward) {
  VolumePool p;
  p.adaptive = c.flag("adaptive");
  p.include_pad = c.flag("count_include_pad");
  p.divisor = c.whole("divisor");
  for (int d = 0; d < 3; ++d) {
    VolumeAxis& a = p.axis[d];
    if (!p.adaptive) {
      a.kernel = static_cast<int>(c.attr("kernel").list[d]);
      a.stride = static_cast<int>(c.attr("stride").list[d]);
      a.padding = static_cast<int>(c.attr("padding").list[d]);
      a.dilation = static_cast<int>(c.attr("dilation").list[d]);
    }
    a.in = static_cast<int>(c.attr("in").list[d]);
    a.out = static_cast<int>(c.attr("out").list[d]);
  }
  const Operand &from = backward ? y : x, &to = backward ? x : y;
  p.channels = Divider(to.size[1]);
  for (int d = 0; d < 3; ++d) p.size[d] = Divider(to.size[2 + d]);
  p.numel = to.numel();
  for (int d = 0; d < 5; ++d) {
    p.from[d] = from.stride[d];
    p.to[d] = to.stride[d];
  }
  return p;
}

/// Calls f(z, y, x) for every tap of a window.
template <class F>
__device__ void each_volume_tap(const VolumeSpan& d, const VolumeSpan& h, const VolumeSpan& w, const F& f) {
  for (int z = d.begin; z < d.end; z += d.step)
    for (int y = h.begin; y < h.end; y += h.step)
      for (int x = w.begin; x < w.end; x += w.step) f(z, y, x);
}

template <class T>
__global__ void means_of_windows(const T* x, T* y, VolumePool p) {
  for (int64_t t = first_of_thread(); t < p.numel; t += threads_of_grid()) {
    const VolumePool::At e = p.element(t);
    const VolumeSpan d = p.span(0, e.at[0]), h = p.span(1, e.at[1]), w = p.span(2, e.at[2]);
    const T share = p.share<T>(int64_t{d.counted} * h.counted * w.counted);
    const T* from = x + e.n * p.from[0] + e.c * p.from[1];
    T sum = 0;
    each_volume_tap(d, h, w,
                    [&](int z, int i, int j) { sum += from[z * p.from[2] + i * p.from[3] + j * p.from[4]] * share; });
    y[e.to] = sum;
  }
}

/// An element takes its share of every window that sees it, in the order of the windows.
template <class T>
__global__ void mean_gradient(const T* g, T* x, VolumePool p) {
  for (int64_t t = first_of_thread(); t < p.numel; t += threads_of_grid()) {
    const VolumePool::At e = p.element(t);
    int first[3], last[3];
    for (int k = 0; k < 3; ++k) {
      first[k] = p.axis[k].first_seeing(e.at[k], p.adaptive);
      last[k] = p.axis[k].last_seeing(e.at[k], p.adaptive);
    }
    const T* from = g + e.n * p.from[0] + e.c * p.from[1];
    T sum = 0;
    for (int od = first[0]; od <= last[0]; ++od) {
      const VolumeSpan d = p.span(0, od);
      if (!VolumeAxis::sees(d, e.at[0])) continue;
      for (int oh = first[1]; oh <= last[1]; ++oh) {
        const VolumeSpan h = p.span(1, oh);
        if (!VolumeAxis::sees(h, e.at[1])) continue;
        for (int ow = first[2]; ow <= last[2]; ++ow) {
          const VolumeSpan w = p.span(2, ow);
          if (!VolumeAxis::sees(w, e.at[2])) continue;
          sum += from[od * p.from[2] + oh * p.from[3] + ow * p.from[4]] *
                 p.share<T>(int64_t{d.counted} * h.counted * w.counted);
        }
      }
    }
    x[e.to] = sum;
  }
}

/// The maxima and where in the volume they were: the first of equals, NaN where any is NaN.
template <class T>
__global__ void maxima_of_windows(const T* x, T* y, int64_t* index, VolumePool p) {
  for (int64_t t = first_of_thread(); t < p.numel; t += threads_of_grid()) {
    const VolumePool::At e = p.element(t);
    const T* from = x + e.n * p.from[0] + e.c * p.from[1];
    T best = 0;
    int64_t won = -1;
    each_volume_tap(p.span(0, e.at[0]), p.span(1, e.at[1]), p.span(2, e.at[2]), [&](int z, int i, int j) {
      const T v = from[z * p.from[2] + i * p.from[3] + j * p.from[4]];
      if (won < 0 || v > best || (v != v && best == best)) {
        best = v;
        won = (int64_t{z} * p.axis[1].in + i) * p.axis[2].in + j;
      }
    });
    y[e.to] = best;
    index[e.to] = won;
  }
}

void run_avg_pool(Args& c) {
  const Operand x = c.in(0), y = c.out(0);
  with_compute_type(x.type(), [&]<class T>(T) {
    launch(means_of_windows<T>, blocks_for(y.numel(), kVolumeThreads), kVolumeThreads, c, x.at<const T>(), y.at<T>(),
           volume_pool(c, x, y, false));
  });
}
void run_avg_pool_backward(Args& c) {
  const Operand g = c.in(0), x = c.out(0);
  with_compute_type(x.type(), [&]<class T>(T) {
    launch(mean_gradient<T>, blocks_for(x.numel(), kVolumeThreads), kVolumeThreads, c, g.at<const T>(), x.at<T>(),
           volume_pool(c, x, g, true));
  });
}
void run_max_pool(Args& c) {
  const Operand x = c.in(0), y = c.out(0), index = c.out(1);
  bool alike = true;  // place() gives both outputs one layout
  for (int d = 0; d < 5; ++d) alike = alike && y.stride[d] == index.stride[d];
  c.want(alike);
  with_compute_type(x.type(), [&]<class T>(T) {
    launch(maxima_of_windows<T>, blocks_for(y.numel(), kVolumeThreads), kVolumeThreads, c, x.at<const T>(), y.at<T>(),
           index.at<int64_t>(), volume_pool(c, x, y, false));
  });
}

const KernelOf avg_pool_entry{"avg_pool", run_avg_pool};
const KernelOf avg_pool_backward_entry{"avg_pool_backward", run_avg_pool_backward};
const KernelOf max_pool_entry{"max_pool", run_max_pool};

}  // namespace
}  // namespace tenon::cuda
