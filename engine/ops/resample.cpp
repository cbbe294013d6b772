#include "engine/ops/resample.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/element_cost.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/pool_nd.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

using ops::dense;

struct ResampleAttrs {
  int64_t axis, in, out, mode;
  bool align;
  double step;   ///< places of x from one of y to the next
  int64_t axes;  ///< of x
  template <class F>
  void fields(F&& f) const {
    f("axis", axis);
    f("out", out);
    f("mode", mode);
    f("align_corners", align);
    f("step", step);
    f("in", in, false);
    f("axes", axes, false);
  }
};

/// Each element of y is a weighted sum of at most four of x.
struct Taps {
  int64_t at[4] = {};
  double weight[4] = {};
  int count = 0;
};
std::vector<Taps> taps_of(const ResampleAttrs& a) {
  std::vector<Taps> all(static_cast<size_t>(a.out));
  auto inside = [&](int64_t i) { return std::clamp<int64_t>(i, 0, a.in - 1); };
  for (int64_t o = 0; o < a.out; ++o) {
    Taps& t = all[static_cast<size_t>(o)];
    auto mode = static_cast<Resample>(a.mode);
    if (mode == Resample::nearest) {
      t = {{std::min(static_cast<int64_t>(std::floor(static_cast<float>(o) * static_cast<float>(a.step))), a.in - 1), 0,
            0, 0},
           {1, 0, 0, 0},
           1};
      continue;
    }
    double place = a.align ? static_cast<double>(o) * a.step : (static_cast<double>(o) + 0.5) * a.step - 0.5;
    if (mode == Resample::linear) {
      place = std::max(0.0, place);
      int64_t i = inside(static_cast<int64_t>(place));
      double f = place - static_cast<double>(i);
      t = {{i, inside(i + 1), 0, 0}, {1 - f, f, 0, 0}, 2};
      continue;
    }
    int64_t i = static_cast<int64_t>(std::floor(place));
    double f = place - static_cast<double>(i);
    constexpr double A = -0.75;  // Keys' kernel with PyTorch's constant
    auto near = [](double x) { return ((A + 2) * x - (A + 3)) * x * x + 1; };
    auto far = [](double x) { return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A; };
    t = {{inside(i - 1), inside(i), inside(i + 1), inside(i + 2)}, {far(f + 1), near(f), near(1 - f), far(2 - f)}, 4};
  }
  return all;
}

Shape with_axis(Shape s, int64_t axis, int64_t size) {
  s[static_cast<int>(axis)] = size;
  return s;
}
template <class F>
void parts(const Shape& s, int64_t axis, const F& f) {
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < s.n; ++i) (i < axis ? outer : inner) *= i == axis ? 1 : s[i];
  f(outer, inner);
}

/// to = the weighted sum of rows of `inner` elements.
template <class T>
void blend(const Taps& t, const T* x, int64_t inner, T* __restrict to) {
  const T* __restrict a = x + t.at[0] * inner, * __restrict b = x + t.at[1] * inner;
  T wa = static_cast<T>(t.weight[0]), wb = static_cast<T>(t.weight[1]);
  if (t.count == 1) {
    std::copy_n(a, inner, to);
  } else if (t.count == 2) {
    for (int64_t j = 0; j < inner; ++j) to[j] = wa * a[j] + wb * b[j];
  } else {
    const T* __restrict c = x + t.at[2] * inner, * __restrict d = x + t.at[3] * inner;
    T wc = static_cast<T>(t.weight[2]), wd = static_cast<T>(t.weight[3]);
    for (int64_t j = 0; j < inner; ++j) to[j] = (wa * a[j] + wb * b[j]) + (wc * c[j] + wd * d[j]);
  }
}

/// Elements that each resampled one is made of.
int taps_each(const ResampleAttrs& a) {
  const auto mode = static_cast<Resample>(a.mode);
  return mode == Resample::nearest ? 1 : mode == Resample::linear ? 2 : 4;
}

struct ResampleAxis {
  static constexpr OpInfo info{"resample", "Resize", OpKind::pool};
  using Attrs = ResampleAttrs;
  static Meta infer(const Attrs& a, const Meta& x) {
    ops::common_float({&x});
    if (a.axis < 0 || a.axis >= x.shape.n || x.shape[static_cast<int>(a.axis)] != a.in || a.in < 1 || a.out < 1)
      throw Error("axis " + std::to_string(a.axis) + " of an input of size " + to_string(x.shape) + " cannot become " +
                  std::to_string(a.out) + " long");
    Meta m = x;
    m.shape = with_axis(x.shape, a.axis, a.out);
    return m;
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0}); }
  // A product for every tap, and their sum; the nearest element is copied.
  static Cost cost(const Attrs& a, const Call& c) {
    const int taps = taps_each(a);
    return ops::element_cost(c.out[0], taps == 1 ? 0 : 2 * taps - 1);
  }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor x = dense(c.in[0], room);
    std::vector<Taps> taps = taps_of(a);
    parts(x.size(), a.axis, [&](int64_t outer, int64_t inner) {
      ops::float_or_double(x.dtype(), [&](auto one) {
        using T = decltype(one);
        parallel_for(outer, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, a.out * inner)),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t p = begin; p < end; ++p)
                         for (int64_t o = 0; o < a.out; ++o)
                           blend(taps[static_cast<size_t>(o)], x.data<T>() + p * a.in * inner, inner,
                                 c.out[0].data<T>() + (p * a.out + o) * inner);
                     });
      });
    });
  }
  static void backward(Grad& d);
  static void onnx(const Attrs& a, OnnxOp& o) {
    auto scale = static_cast<float>(static_cast<double>(a.out) / static_cast<double>(a.in));
    auto mode = static_cast<Resample>(a.mode);
    if (static_cast<int64_t>(std::floor(static_cast<double>(a.in) * static_cast<double>(scale))) != a.out ||
        (!a.align && std::abs(a.step * static_cast<double>(a.out) - static_cast<double>(a.in)) > 1e-6))
      o.unsupported = "a new size that is not the old one times an f32 number";
    o.gaps = 1;  // the region of interest
    o.lists = {std::vector<float>(static_cast<size_t>(a.axes), 1.0f)};
    if (a.axis < a.axes) o.lists[0][static_cast<size_t>(a.axis)] = scale;
    o.set("mode", std::string(mode == Resample::nearest ? "nearest" : mode == Resample::linear ? "linear" : "cubic"));
    o.set("coordinate_transformation_mode", std::string(mode == Resample::nearest ? "asymmetric"
                                                        : a.align                 ? "align_corners"
                                                                                  : "half_pixel"));
    if (mode == Resample::nearest) o.set("nearest_mode", std::string("floor"));
    if (mode == Resample::cubic) o.set("cubic_coeff_a", -0.75f);
  }
  static void samples(Samples& s) {
    s.add("nearest", Attrs{1, 3, 7, 0, false, 3.0 / 7, 3}, {s.values({2, 3, 2})});
    s.add("linear", Attrs{2, 4, 8, 1, false, 4.0 / 8, 3}, {s.values({2, 3, 4})});
    s.add("linear, corners", Attrs{0, 5, 3, 1, true, 2, 2}, {s.values({5, 2})});
    s.add("cubic", Attrs{1, 4, 6, 2, false, 4.0 / 6, 2}, {s.values({2, 4})});
  }
};

/// The adjoint.
struct ResampleBackward {
  static constexpr OpInfo info{"resample_backward", "", OpKind::pool};
  using Attrs = ResampleAttrs;
  static Meta infer(const Attrs& a, const Meta& g) {
    ops::common_float({&g});
    if (a.axis < 0 || a.axis >= g.shape.n || g.shape[static_cast<int>(a.axis)] != a.out)
      throw Error("a gradient of size " + to_string(g.shape) + " does not fit");
    Meta m = g;
    m.shape = with_axis(g.shape, a.axis, a.in);
    return m;
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0}); }
  static Cost cost(const Attrs& a, const Call& c) { return ops::element_cost(c.in[0], 2 * taps_each(a)); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor g = dense(c.in[0], room);
    std::vector<Taps> taps = taps_of(a);
    parts(g.size(), a.axis, [&](int64_t outer, int64_t inner) {
      ops::float_or_double(g.dtype(), [&](auto one) {
        using T = decltype(one);
        parallel_for(outer, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, a.out * inner)),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t p = begin; p < end; ++p) {
                         std::fill_n(c.out[0].data<T>() + p * a.in * inner, a.in * inner, T(0));
                         for (int64_t o = 0; o < a.out; ++o) {
                           const Taps& t = taps[static_cast<size_t>(o)];
                           const T* __restrict from = g.data<T>() + (p * a.out + o) * inner;
                           for (int k = 0; k < t.count; ++k) {
                             T* __restrict to = c.out[0].data<T>() + (p * a.in + t.at[k]) * inner;
                             T w = static_cast<T>(t.weight[k]);
                             for (int64_t j = 0; j < inner; ++j) to[j] += w * from[j];
                           }
                         }
                       }
                     });
      });
    });
  }
  static void backward(Grad& d) { d.in(0) = apply<ResampleAxis>(d.as<Attrs>(), d.out()); }
  static void samples(Samples& s) { s.add("cubic", Attrs{1, 4, 6, 2, false, 4.0 / 6, 2}, {s.values({2, 6})}); }
};
void ResampleAxis::backward(Grad& d) { d.in(0) = apply<ResampleBackward>(d.as<Attrs>(), d.out()); }

const Register<ResampleAxis> resample_op;
const Register<ResampleBackward> resample_backward_op;

}  // namespace

Tensor interpolate(const Tensor& x, const InterpolateOptions& o) {
  int axes = x.ndim() - 2;
  if (axes < 1 || axes > 3)
    throw Error("interpolate: its input has size " + to_string(x.size()) +
                "; it must be [batch, channels, 1 to 3 axes]");
  auto scale = [&](int i) { return o.scale.size() == 1 ? o.scale[0] : o.scale.at(static_cast<size_t>(i)); };
  if (o.size.n == 0 && o.scale.size() != 1 && static_cast<int>(o.scale.size()) != axes)
    throw Error("interpolate: a size, or a scale for every axis, is needed");
  if (o.size.n > 1 && o.size.n != axes)
    throw Error("interpolate: sizes " + to_string(o.size) + " do not fit " + std::to_string(axes) + " axes");
  Dims to;
  for (int i = 0; i < axes; ++i)
    to.push_back(o.size.n ? o.size[o.size.n == 1 ? 0 : i]
                          : static_cast<int64_t>(std::floor(static_cast<double>(x.size(i + 2)) * scale(i))));
  if (o.mode == Resample::area) return adaptive_avg_pool(x, to);
  Tensor y = x;
  for (int i = axes - 1; i >= 0; --i) {  // the last axis, which is slowest, while the others are still short
    int64_t in = x.size(i + 2), out = to[i];
    if (out < 1) throw Error("interpolate: an axis of " + std::to_string(in) + " would have no elements left");
    bool align = o.align_corners && o.mode != Resample::nearest;
    double step = align      ? (out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0)
                  : o.size.n ? static_cast<double>(in) / static_cast<double>(out)
                             : 1 / scale(i);
    if (in == out && step == 1) continue;
    y = apply<ResampleAxis>({i + 2, in, out, static_cast<int64_t>(o.mode), align, step, x.ndim()}, y);
  }
  return y;
}

namespace {

void check_image(const char* what, const Tensor& x, bool fits) {
  if (x.ndim() < 3 || !fits)
    throw Error(std::string(what) + ": an input of size " + to_string(x.size()) +
                " cannot be divided so; it must be [.., channels, height, width]");
}

}  // namespace

Tensor pixel_shuffle(const Tensor& x, int64_t r) {
  check_image("pixel_shuffle", x, r > 0 && x.ndim() >= 3 && x.size(-3) % (r * r) == 0);
  int64_t c = x.size(-3) / (r * r), h = x.size(-2), w = x.size(-1),
          n = c * h * w > 0 ? x.numel() / (c * r * r * h * w) : 0;
  Shape size = x.size();
  size[size.n - 3] = c;
  size[size.n - 2] = h * r;
  size[size.n - 1] = w * r;
  return reshape(permute(reshape(x, {n, c, r, r, h, w}), {0, 1, 4, 2, 5, 3}), size);
}
Tensor pixel_unshuffle(const Tensor& x, int64_t r) {
  check_image("pixel_unshuffle", x, r > 0 && x.ndim() >= 3 && x.size(-2) % r == 0 && x.size(-1) % r == 0);
  int64_t c = x.size(-3), h = x.size(-2) / r, w = x.size(-1) / r,
          n = c * h * w > 0 ? x.numel() / (c * r * r * h * w) : 0;
  Shape size = x.size();
  size[size.n - 3] = c * r * r;
  size[size.n - 2] = h;
  size[size.n - 1] = w;
  return reshape(permute(reshape(x, {n, c, h, r, w, r}), {0, 1, 3, 5, 2, 4}), size);
}
Tensor channel_shuffle(const Tensor& x, int64_t groups) {
  check_image("channel_shuffle", x, groups > 0 && x.ndim() >= 3 && x.size(1) % groups == 0);
  int64_t n = x.size(0), c = x.size(1), rest = n * c > 0 ? x.numel() / (n * c) : 0;
  return reshape(permute(reshape(x, {n, groups, c / groups, rest}), {0, 2, 1, 3}), x.size());
}

}  // namespace tenon
