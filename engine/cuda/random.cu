#include "core/random.h"
#include "engine/cuda/strided.h"

// Random ops that take a key: the numbers are those of the CPU bit for bit, drawn by an element's place in row-major
// (or channels-last) order wherever its memory lies. A counter gives four words, so a thread has four elements.
namespace tenon::cuda {
namespace {

constexpr int kDrawThreads = 256;

/// engine/ops/draws.h: DrawnFrom. The key lies on the device.
struct DrawKey {
  const int64_t* key;
  int64_t step;
  uint64_t stream, first;
};
DrawKey key_of(const Args& c, const Operand& key) {
  return {key.at<const int64_t>(), key.stride[0], static_cast<uint64_t>(c.whole("stream")),
          static_cast<uint64_t>(c.whole("first"))};
}

/// y = f(x, a word) for every element. The plan, of y and x, counts them in the order of the draws.
template <class T, class F>
__device__ void each_drawn(const T* x, T* y, const DrawKey& from, const Strided<2>& p, const F& f) {
  const auto seed = static_cast<uint64_t>(from.key[0]);
  const uint64_t counter = static_cast<uint64_t>(from.key[from.step]) + from.first;
  for (int64_t q = first_of_thread(); q * 4 < p.numel; q += threads_of_grid()) {
    const Philox::Words w = Philox{seed, from.stream}.at(counter + static_cast<uint64_t>(q));
    for (int k = 0; k < 4 && q * 4 + k < p.numel; ++k) {
      int64_t at[2];
      p.find(q * 4 + k, at);
      y[at[0]] = f(x[at[1]], w.v[k]);
    }
  }
}

template <class T>
__global__ void drop_elements(const T* x, T* y, DrawKey key, uint64_t below, T scale, Strided<2> p) {
  each_drawn(x, y, key, p, [&](T v, uint32_t word) { return word < below ? T(0) : v * scale; });
}
template <class T>
__global__ void rrelu_slopes(const T* x, T* y, DrawKey key, double lower, double upper, Strided<2> p) {
  each_drawn(x, y, key, p, [&](T v, uint32_t word) {
    const float u = static_cast<float>(word >> 8) * 0x1p-24f;
    return v > T(0) ? T(1) : static_cast<T>(lower + (upper - lower) * static_cast<double>(u));
  });
}

/// Axes [n, c, h, w] as [n, h, w, c].
Operand channels_last_axes(const Operand& x) {
  constexpr int order[] = {0, 2, 3, 1};
  Operand o = x;
  for (int d = 0; d < 4; ++d) {
    o.size[d] = x.size[order[d]];
    o.stride[d] = x.stride[order[d]];
  }
  return o;
}

void run_dropout(Args& c) {
  Operand x = c.in(0), y = c.out(0);
  const Operand key = c.in(1);
  const double drop = c.number("p");
  if (c.flag("channels_last")) {
    x = channels_last_axes(x);
    y = channels_last_axes(y);
  }
  const Strided<2> p = strided_of<2>({y, x}, Count::row_major);
  with_compute_type(x.type(), [&]<class T>(T) {
    launch(drop_elements<T>, blocks_for(ceil_div(p.numel, 4), kDrawThreads), kDrawThreads, c, x.at<const T>(),
           y.at<T>(), key_of(c, key), static_cast<uint64_t>(drop * 0x1p32),
           drop < 1 ? static_cast<T>(1 / (1 - drop)) : T(0), p);
  });
}

void run_rrelu_slope(Args& c) {
  const Operand x = c.in(0), y = c.out(0);
  const Strided<2> p = strided_of<2>({y, x}, Count::row_major);
  with_compute_type(x.type(), [&]<class T>(T) {
    launch(rrelu_slopes<T>, blocks_for(ceil_div(p.numel, 4), kDrawThreads), kDrawThreads, c, x.at<const T>(), y.at<T>(),
           key_of(c, c.in(1)), c.number("lower"), c.number("upper"), p);
  });
}

const KernelOf dropout_entry{"dropout", run_dropout};
const KernelOf rrelu_slope_entry{"rrelu_slope", run_rrelu_slope};

}  // namespace
}  // namespace tenon::cuda
