#include "engine/ops/fold.h"

#include <algorithm>

#include "core/parallel.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/element_cost.h"

namespace tenon {
namespace {

using ops::dense;

struct WindowAttrs {
  Dims kernel, dilation, padding, stride, image;
  template <class F>
  void fields(F&& f) const {
    f("kernel", kernel);
    f("dilation", dilation);
    f("padding", padding);
    f("stride", stride);
    f("image", image, false);
  }
  int64_t windows(int i) const {
    return (image[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
  }
  void check() const {
    for (const Dims* d : {&kernel, &dilation, &padding, &stride, &image})
      if (d->n != 2) throw Error("windows of " + to_string(*d) + ": height and width are needed");
    for (int i = 0; i < 2; ++i) {
      if (kernel[i] < 1 || dilation[i] < 1 || padding[i] < 0 || stride[i] < 1)
        throw Error("kernel, dilation and stride are at least 1, padding at least 0");
      if (image[i] + 2 * padding[i] < dilation[i] * (kernel[i] - 1) + 1)
        throw Error("a window of " + std::to_string(dilation[i] * (kernel[i] - 1) + 1) + " does not fit an image of " +
                    to_string(image) + " with padding " + to_string(padding));
    }
  }
};

/// Calls f(place in the columns, place in the image) for what lies in the image of one channel; the columns of a
/// channel are [kh kw, windows].
template <class F>
void each(const WindowAttrs& a, const F& f) {
  int64_t oh = a.windows(0), ow = a.windows(1), at = 0;
  for (int64_t ky = 0; ky < a.kernel[0]; ++ky)
    for (int64_t kx = 0; kx < a.kernel[1]; ++kx)
      for (int64_t oy = 0; oy < oh; ++oy) {
        int64_t y = oy * a.stride[0] - a.padding[0] + ky * a.dilation[0];
        for (int64_t ox = 0; ox < ow; ++ox, ++at) {
          int64_t x = ox * a.stride[1] - a.padding[1] + kx * a.dilation[1];
          if (y >= 0 && y < a.image[0] && x >= 0 && x < a.image[1]) f(at, y * a.image[1] + x);
        }
      }
}

struct Im2Col {
  static constexpr OpInfo info{"im2col", "", OpKind::conv};
  using Attrs = WindowAttrs;
  static Meta infer(const Attrs& a, const Meta& x) {
    ops::common_float({&x});
    a.check();
    if (x.shape.n != 4 || x.shape[2] != a.image[0] || x.shape[3] != a.image[1])
      throw Error("its input has size " + to_string(x.shape) + "; it must be [batch, channels, height, width]");
    Meta m = x;
    m.shape = {x.shape[0], x.shape[1] * a.kernel.product(), a.windows(0) * a.windows(1)};
    return m;
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor x = dense(c.in[0], room);
    int64_t planes = x.size(0) * x.size(1), image = a.image.product(),
            columns = a.kernel.product() * a.windows(0) * a.windows(1);
    ops::float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      parallel_for(planes, std::max<int64_t>(1, 32768 / columns), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          const T* from = x.data<T>() + p * image;
          T* to = c.out[0].data<T>() + p * columns;
          std::fill_n(to, columns, T(0));
          each(a, [=](int64_t col, int64_t at) { to[col] = from[at]; });
        }
      });
    });
  }
  static void backward(Grad& d);
  static void samples(Samples& s) {
    s.add("strided, padded", Attrs{{2, 3}, {1, 1}, {1, 0}, {2, 1}, {4, 5}}, {s.values({2, 2, 4, 5})});
  }
};

struct Col2Im {
  static constexpr OpInfo info{"col2im", "", OpKind::conv};
  using Attrs = WindowAttrs;
  static Meta infer(const Attrs& a, const Meta& x) {
    ops::common_float({&x});
    a.check();
    int64_t taps = a.kernel.product(), windows = a.windows(0) * a.windows(1);
    if (x.shape.n != 3 || x.shape[1] % taps || x.shape[2] != windows)
      throw Error("its input has size " + to_string(x.shape) + "; for images of " + to_string(a.image) +
                  " it must be [batch, channels x " + std::to_string(taps) + ", " + std::to_string(windows) + "]");
    Meta m = x;
    m.shape = {x.shape[0], x.shape[1] / taps, a.image[0], a.image[1]};
    return m;
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor x = dense(c.in[0], room);
    int64_t image = a.image.product(), columns = a.kernel.product() * a.windows(0) * a.windows(1),
            planes = c.out[0].size(0) * c.out[0].size(1);
    ops::float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      parallel_for(planes, std::max<int64_t>(1, 32768 / columns), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          const T* from = x.data<T>() + p * columns;
          T* to = c.out[0].data<T>() + p * image;
          std::fill_n(to, image, T(0));
          each(a, [=](int64_t col, int64_t at) { to[at] += from[col]; });
        }
      });
    });
  }
  static void backward(Grad& d) { d.in(0) = apply<Im2Col>(d.as<Attrs>(), d.out()); }
  static Cost cost(const Attrs&, const Call& c) { return ops::element_cost(c.in[0], 1); }
  static void samples(Samples& s) {
    s.add("overlapping", Attrs{{2, 2}, {1, 2}, {0, 1}, {1, 1}, {3, 4}}, {s.values({2, 8, 8})});
  }
};
void Im2Col::backward(Grad& d) { d.in(0) = apply<Col2Im>(d.as<Attrs>(), d.out()); }

const Register<Im2Col> im2col_op;
const Register<Col2Im> col2im_op;

}  // namespace

Tensor im2col(const Tensor& x, const WindowOptions& o) {
  Dims image = x.ndim() == 4 ? Dims{x.size(2), x.size(3)} : Dims{0, 0};
  return apply<Im2Col>({o.kernel, o.dilation, o.padding, o.stride, image}, x);
}
Tensor col2im(const Tensor& x, const Dims& output, const WindowOptions& o) {
  return apply<Col2Im>({o.kernel, o.dilation, o.padding, o.stride, output}, x);
}

}  // namespace tenon
