#include "engine/cuda/strided.h"

// Pooling of images: one thread an element of the result, channels innermost as the results lie. Gradients are gathered
// too: an element of x meets the windows that see it in the order of the windows.
namespace tenon::cuda {
namespace {

constexpr int kPoolThreads = 256;

/// Elements of an image batch, numbered with the channels innermost.
struct PoolImages {
  Divider channels, width, height;
  int64_t numel;

  explicit PoolImages(const Operand& t) : channels(t.size[1]), width(t.size[3]), height(t.size[2]), numel(t.numel()) {}
  struct At {
    int64_t n, c;
    int y, x;
  };
  __device__ At operator()(int64_t i) const {
    const int64_t pixel = channels.of(i), row = width.of(pixel), image = height.of(row);
    return {image, i - pixel * channels.by, static_cast<int>(row - image * height.by),
            static_cast<int>(pixel - row * width.by)};
  }
};
struct PoolSteps {
  int64_t n, c, y, x;
  explicit PoolSteps(const Operand& t) : n(t.stride[0]), c(t.stride[1]), y(t.stride[2]), x(t.stride[3]) {}
  __device__ int64_t plane(const PoolImages::At& p) const { return p.n * n + p.c * c; }
  __device__ int64_t at(const PoolImages::At& p) const { return plane(p) + p.y * y + p.x * x; }
};

/// A window along one axis.
struct PoolAxis {
  int kernel, stride, padding, dilation, in, out;

  __device__ int begin(int o) const { return o * stride - padding; }
  /// The windows that may see element i.
  __device__ int first_seeing(int i) const {
    const int reach = i + padding - (kernel - 1) * dilation;
    return reach > 0 ? (reach + stride - 1) / stride : 0;
  }
  __device__ int last_seeing(int i) const { return min_of((i + padding) / stride, out - 1); }
  /// The tap by which window o sees element i; -1: by none.
  __device__ int tap(int o, int i) const {
    const int far = i - begin(o), k = far / dilation;
    return far >= 0 && k < kernel && k * dilation == far ? k : -1;
  }
  __device__ static int min_of(int a, int b) { return a < b ? a : b; }
};
PoolAxis pool_axis(const Args& c, int i, const Operand& x, const Operand& y) {
  const auto of = [&](const char* name) { return static_cast<int>(c.attr(name).list[i]); };
  return {of("kernel"),
          of("stride"),
          of("padding"),
          of("dilation"),
          static_cast<int>(x.size[2 + i]),
          static_cast<int>(y.size[2 + i])};
}

/// The largest value, the first of equals; NaN where any is NaN.
template <class T, class I>
__global__ void max_of_windows(const T* x, T* y, I* index, PoolImages all, PoolSteps xs, PoolSteps ys, PoolSteps is,
                               PoolAxis v, PoolAxis h) {
  for (int64_t t = first_of_thread(); t < all.numel; t += threads_of_grid()) {
    const PoolImages::At at = all(t);
    const T* plane = x + xs.plane(at);
    T best = 0;
    int won = -1;
    for (int ky = 0; ky < v.kernel; ++ky) {
      const int iy = v.begin(at.y) + ky * v.dilation;
      if (iy < 0 || iy >= v.in) continue;
      for (int kx = 0; kx < h.kernel; ++kx) {
        const int ix = h.begin(at.x) + kx * h.dilation;
        if (ix < 0 || ix >= h.in) continue;
        const T value = plane[iy * xs.y + ix * xs.x];
        if (won < 0 || value > best || value != value) {
          best = value;
          won = ky * h.kernel + kx;
        }
      }
    }
    y[ys.at(at)] = best;
    index[is.at(at)] = static_cast<I>(won);
  }
}

template <class T, class I>
__global__ void max_gradient(const T* g, const I* index, T* x, PoolImages all, PoolSteps xs, PoolSteps gs, PoolSteps is,
                             PoolAxis v, PoolAxis h) {
  for (int64_t t = first_of_thread(); t < all.numel; t += threads_of_grid()) {
    const PoolImages::At at = all(t);
    const T* from = g + gs.plane(at);
    const I* won = index + is.plane(at);
    T sum = 0;
    for (int oy = v.first_seeing(at.y); oy <= v.last_seeing(at.y); ++oy) {
      const int ky = v.tap(oy, at.y);
      if (ky < 0) continue;
      for (int ox = h.first_seeing(at.x); ox <= h.last_seeing(at.x); ++ox) {
        const int kx = h.tap(ox, at.x);
        if (kx >= 0 && won[oy * is.y + ox * is.x] == static_cast<I>(ky * h.kernel + kx))
          sum += from[oy * gs.y + ox * gs.x];
      }
    }
    x[xs.at(at)] = sum;
  }
}

/// The value where the window's maximum was; 0 for an index that leads out of the image, which no pooling makes.
template <class T, class I>
__global__ void values_at_max(const T* x, const I* index, T* y, PoolImages all, PoolSteps xs, PoolSteps ys,
                              PoolSteps is, PoolAxis v, PoolAxis h) {
  for (int64_t t = first_of_thread(); t < all.numel; t += threads_of_grid()) {
    const PoolImages::At at = all(t);
    const auto tap = static_cast<int>(index[is.at(at)]);
    const int iy = v.begin(at.y) + tap / h.kernel * v.dilation, ix = h.begin(at.x) + tap % h.kernel * h.dilation;
    const bool there = iy >= 0 && iy < v.in && ix >= 0 && ix < h.in;
    y[ys.at(at)] = there ? x[xs.plane(at) + iy * xs.y + ix * xs.x] : T(0);
  }
}

/// f(a value of the dtype, an index of the index' dtype)
template <class F>
void with_pool_types(const Operand& x, const Operand& index, const F& f) {
  with_compute_type(x.type(), [&]<class T>(T one) {
    if (index.is(DType::u8))
      f(one, uint8_t{});
    else
      f(one, int32_t{});
  });
}

void run_max_pool2d(Args& c) {
  const Operand x = c.in(0), y = c.out(0), index = c.out(1);
  with_pool_types(x, index, [&]<class T, class I>(T, I) {
    launch(max_of_windows<T, I>, blocks_for(y.numel(), kPoolThreads), kPoolThreads, c, x.at<const T>(), y.at<T>(),
           index.at<I>(), PoolImages(y), PoolSteps(x), PoolSteps(y), PoolSteps(index), pool_axis(c, 0, x, y),
           pool_axis(c, 1, x, y));
  });
}
void run_max_pool2d_backward(Args& c) {
  const Operand g = c.in(0), index = c.in(1), x = c.out(0);
  with_pool_types(x, index, [&]<class T, class I>(T, I) {
    launch(max_gradient<T, I>, blocks_for(x.numel(), kPoolThreads), kPoolThreads, c, g.at<const T>(),
           index.at<const I>(), x.at<T>(), PoolImages(x), PoolSteps(x), PoolSteps(g), PoolSteps(index),
           pool_axis(c, 0, x, g), pool_axis(c, 1, x, g));
  });
}
void run_max_pool2d_gather(Args& c) {
  const Operand x = c.in(0), index = c.in(1), y = c.out(0);
  with_pool_types(x, index, [&]<class T, class I>(T, I) {
    launch(values_at_max<T, I>, blocks_for(y.numel(), kPoolThreads), kPoolThreads, c, x.at<const T>(),
           index.at<const I>(), y.at<T>(), PoolImages(y), PoolSteps(x), PoolSteps(y), PoolSteps(index),
           pool_axis(c, 0, x, y), pool_axis(c, 1, x, y));
  });
}

/// Columns [n, c kh kw, windows], the last axis innermost.
struct PoolColumns {
  PoolAxis v, h;
  Divider channels, kernel_x, kernel_y, windows_x, windows_y, width, height;
  int64_t column_step[3], image_step[4];
};
PoolColumns columns_of(const Args& c, const Operand& columns, const Operand& image) {
  PoolColumns a;
  for (int i = 0; i < 2; ++i) {
    PoolAxis& p = i ? a.h : a.v;
    p = pool_axis(c, i, image, image);
    p.out = (p.in + 2 * p.padding - p.dilation * (p.kernel - 1) - 1) / p.stride + 1;
  }
  a.channels = Divider(image.size[1]);
  a.kernel_y = Divider(a.v.kernel);
  a.kernel_x = Divider(a.h.kernel);
  a.windows_y = Divider(a.v.out);
  a.windows_x = Divider(a.h.out);
  a.height = Divider(image.size[2]);
  a.width = Divider(image.size[3]);
  for (int d = 0; d < 3; ++d) a.column_step[d] = columns.stride[d];
  for (int d = 0; d < 4; ++d) a.image_step[d] = image.stride[d];
  return a;
}

/// Takes the last coordinate off a number.
__device__ int64_t last_coordinate(int64_t& number, const Divider& size) {
  const int64_t q = size.of(number), index = number - q * size.by;
  number = q;
  return index;
}

template <class T>
__global__ void columns_of_image(const T* x, T* y, int64_t n, PoolColumns a) {
  for (int64_t t = first_of_thread(); t < n; t += threads_of_grid()) {
    int64_t rest = t;
    const auto ox = static_cast<int>(last_coordinate(rest, a.windows_x)),
               oy = static_cast<int>(last_coordinate(rest, a.windows_y)),
               kx = static_cast<int>(last_coordinate(rest, a.kernel_x)),
               ky = static_cast<int>(last_coordinate(rest, a.kernel_y));
    const int64_t channel = last_coordinate(rest, a.channels), row = (channel * a.v.kernel + ky) * a.h.kernel + kx;
    const int iy = a.v.begin(oy) + ky * a.v.dilation, ix = a.h.begin(ox) + kx * a.h.dilation;
    const bool there = iy >= 0 && iy < a.v.in && ix >= 0 && ix < a.h.in;
    const int64_t from =
        rest * a.image_step[0] + channel * a.image_step[1] + iy * a.image_step[2] + ix * a.image_step[3];
    y[rest * a.column_step[0] + row * a.column_step[1] + (int64_t{oy} * a.h.out + ox) * a.column_step[2]] =
        there ? x[from] : T(0);
  }
}

template <class T>
__global__ void image_of_columns(const T* x, T* y, int64_t n, PoolColumns a) {
  for (int64_t t = first_of_thread(); t < n; t += threads_of_grid()) {
    int64_t rest = t;
    const auto ix = static_cast<int>(last_coordinate(rest, a.width)),
               iy = static_cast<int>(last_coordinate(rest, a.height));
    const int64_t channel = last_coordinate(rest, a.channels);
    const int64_t first = channel * a.v.kernel * a.h.kernel;
    const T* from = x + rest * a.column_step[0] + first * a.column_step[1];
    T sum = 0;
    for (int ky = 0; ky < a.v.kernel; ++ky) {
      const int far_y = iy + a.v.padding - ky * a.v.dilation, oy = far_y / a.v.stride;
      if (far_y < 0 || oy >= a.v.out || oy * a.v.stride != far_y) continue;
      for (int kx = 0; kx < a.h.kernel; ++kx) {
        const int far_x = ix + a.h.padding - kx * a.h.dilation, ox = far_x / a.h.stride;
        if (far_x < 0 || ox >= a.h.out || ox * a.h.stride != far_x) continue;
        sum += from[(ky * a.h.kernel + kx) * a.column_step[1] + (int64_t{oy} * a.h.out + ox) * a.column_step[2]];
      }
    }
    y[rest * a.image_step[0] + channel * a.image_step[1] + iy * a.image_step[2] + ix * a.image_step[3]] = sum;
  }
}

void run_im2col(Args& c) {
  const Operand x = c.in(0), y = c.out(0);
  with_compute_type(x.type(), [&]<class T>(T) {
    launch(columns_of_image<T>, blocks_for(y.numel(), kPoolThreads), kPoolThreads, c, x.at<const T>(), y.at<T>(),
           y.numel(), columns_of(c, y, x));
  });
}
void run_col2im(Args& c) {
  const Operand x = c.in(0), y = c.out(0);
  with_compute_type(x.type(), [&]<class T>(T) {
    launch(image_of_columns<T>, blocks_for(y.numel(), kPoolThreads), kPoolThreads, c, x.at<const T>(), y.at<T>(),
           y.numel(), columns_of(c, x, y));
  });
}

const KernelOf max_pool2d_entry{"max_pool2d", run_max_pool2d};
const KernelOf max_pool2d_backward_entry{"max_pool2d_backward", run_max_pool2d_backward};
const KernelOf max_pool2d_gather_entry{"max_pool2d_gather", run_max_pool2d_gather};
const KernelOf im2col_entry{"im2col", run_im2col};
const KernelOf col2im_entry{"col2im", run_col2im};

}  // namespace
}  // namespace tenon::cuda
