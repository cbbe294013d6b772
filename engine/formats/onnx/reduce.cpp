// ONNX operators that reduce axes, and those that normalise over them.
#include <algorithm>
#include <cmath>

#include "engine/formats/onnx/operator.h"
#include "engine/ops/create.h"
#include "engine/ops/loss.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/sort.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

struct Reduction {
  Tensor x;
  Dims axes;
  bool keep, nothing = false;  ///< nothing: no axes were given and the node says that this means none
  Reduction(const OnnxCall& c, int64_t input_since) : x(c.input(0)), keep(c.node.integer("keepdims", 1)) {
    const std::vector<int64_t> given = c.opset >= input_since ? c.list(1, "") : c.node.integers("axes");
    axes = Dims(given);
    if (given.empty()) {
      nothing = c.node.integer("noop_with_empty_axes", 0);
      for (int i = 0; i < x.ndim(); ++i) axes.push_back(i);
    }
    for (int i = 0; i < axes.n; ++i) axes[i] = wrap_axis(axes[i], x.ndim());
  }
  /// The result's size.
  Shape size() const {
    Shape s;
    for (int i = 0; i < x.ndim(); ++i) {
      const bool gone = std::find(axes.begin(), axes.end(), i) != axes.end();
      if (!gone || keep) s.push_back(gone ? 1 : x.size(i));
    }
    return s;
  }
  int64_t count() const {
    int64_t n = 1;
    for (int64_t a : axes) n *= x.size(static_cast<int>(a));
    return n;
  }
  Tensor sum_of(const Tensor& t) const { return axes.n ? cast(sum(t, axes, keep), t.dtype()) : t; }
  Tensor shaped(const Tensor& t) const { return reshape(t, size()); }
};

template <class F>
Out reduced(const OnnxCall& c, int64_t since, const F& f) {
  const Reduction r(c, since);
  if (r.nothing) return {f.alone(r.x)};
  return {f(r)};
}
/// A reduction and what it makes of single elements (where there are no axes to reduce).
template <class All, class One>
struct Rule {
  All all;
  One one;
  Tensor operator()(const Reduction& r) const { return all(r); }
  Tensor alone(const Tensor& x) const { return one(x); }
};
template <class All, class One>
Rule(All, One) -> Rule<All, One>;

Tensor same(const Tensor& x) { return x; }

TENON_ONNX(ReduceSum) {
  return reduced(c, 13, Rule{[](const Reduction& r) { return r.sum_of(r.x); }, same});
}
TENON_ONNX(ReduceSumSquare) {
  return reduced(
      c, 18,
      Rule{[](const Reduction& r) { return r.sum_of(mul(r.x, r.x)); }, [](const Tensor& x) { return mul(x, x); }});
}
TENON_ONNX(ReduceL1) {
  return reduced(c, 18,
                 Rule{[](const Reduction& r) { return r.sum_of(abs(r.x)); }, [](const Tensor& x) { return abs(x); }});
}
TENON_ONNX(ReduceL2) {
  return reduced(c, 18,
                 Rule{[](const Reduction& r) { return cast(sqrt(r.sum_of(mul(r.x, r.x))), r.x.dtype()); },
                      [](const Tensor& x) { return abs(x); }});
}
TENON_ONNX(ReduceLogSum) {
  return reduced(c, 18,
                 Rule{[](const Reduction& r) { return log(r.sum_of(r.x)); }, [](const Tensor& x) { return log(x); }});
}
TENON_ONNX(ReduceLogSumExp) {
  return reduced(c, 18,
                 Rule{[](const Reduction& r) {
                        if (r.count() == 0) return full(r.size(), -INFINITY, r.x.dtype());
                        Tensor top = r.axes.n ? amax(r.x, r.axes, true) : r.x;
                        top = where(lt(abs(top), INFINITY), top, scalar_like(0, top));
                        const Tensor s = r.axes.n ? sum(exp(sub(r.x, top)), r.axes, true) : exp(sub(r.x, top));
                        return r.shaped(add(log(s), top));
                      },
                      same});
}
TENON_ONNX(ReduceMean) {
  return reduced(c, 18,
                 Rule{[](const Reduction& r) {
                        if (r.axes.n == 0) return r.x;
                        return is_floating(r.x.dtype())
                                   ? mean(r.x, r.axes, r.keep)
                                   : cast(mean(cast(r.x, DType::f64), r.axes, r.keep), r.x.dtype());
                      },
                      same});
}
TENON_ONNX(ReduceProd) {
  return reduced(c, 18,
                 Rule{[](const Reduction& r) {
                        if (r.count() == 0) return ones(r.size(), r.x.dtype());
                        return r.axes.n ? cast(prod(r.x, r.axes, r.keep), r.x.dtype()) : r.x;
                      },
                      same});
}

Tensor extreme(const Reduction& r, bool largest) {
  if (r.axes.n == 0) return r.x;
  if (r.count() == 0) {
    const double edge = is_floating(r.x.dtype()) ? INFINITY
                        : r.x.dtype() == DType::boolean
                            ? 1
                            : std::ldexp(1.0, 8 * static_cast<int>(itemsize(r.x.dtype())) - 1);
    if (r.x.dtype() == DType::boolean || r.x.dtype() == DType::u8)
      return full(r.size(), largest ? 0 : r.x.dtype() == DType::u8 ? 255 : 1, r.x.dtype());
    if (r.x.dtype() == DType::i64) throw OnnxUnsupported("the extreme of no i64 elements is not supported");
    return full(r.size(), largest ? -edge : is_floating(r.x.dtype()) ? edge : edge - 1, r.x.dtype());
  }
  if (r.x.dtype() == DType::boolean) {
    const Tensor y = cast(r.x, DType::u8);
    return cast(largest ? amax(y, r.axes, r.keep) : amin(y, r.axes, r.keep), DType::boolean);
  }
  return largest ? amax(r.x, r.axes, r.keep) : amin(r.x, r.axes, r.keep);
}
TENON_ONNX(ReduceMax) {
  return reduced(c, 18, Rule{[](const Reduction& r) { return extreme(r, true); }, same});
}
TENON_ONNX(ReduceMin) {
  return reduced(c, 18, Rule{[](const Reduction& r) { return extreme(r, false); }, same});
}

Out place_of(const OnnxCall& c, bool largest) {
  const Tensor& x = c.input(0);
  const int axis = wrap_axis(c.node.integer("axis", 0), x.ndim());
  const bool keep = c.node.integer("keepdims", 1), last = c.node.integer("select_last_index", 0);
  const Tensor from = last ? flip(x, axis) : x;
  const Tensor at = largest ? max_dim(from, axis, keep).indices : min_dim(from, axis, keep).indices;
  return {last ? sub(scalar(static_cast<double>(x.size(axis) - 1), DType::i64), at) : at};
}
TENON_ONNX(ArgMax) { return place_of(c, true); }
TENON_ONNX(ArgMin) { return place_of(c, false); }

// Before opset 13 the axes from `axis` on are one.
template <class F>
Out along_axis(const OnnxCall& c, const F& f) {
  const Tensor& x = c.input(0);
  const int axis = wrap_axis(c.node.integer("axis", c.opset < 13 ? 1 : -1), x.ndim());
  if (c.opset >= 13) return {f(x, axis)};
  int64_t rows = 1, cols = 1;
  for (int i = 0; i < x.ndim(); ++i) (i < axis ? rows : cols) *= x.size(i);
  return {reshape(f(reshape(x, {rows, cols}), 1), x.size())};
}
TENON_ONNX(Softmax) {
  return along_axis(c, [](const Tensor& x, int axis) { return softmax(x, axis); });
}
TENON_ONNX(LogSoftmax) {
  return along_axis(c, [](const Tensor& x, int axis) { return log_softmax(x, axis); });
}
TENON_ONNX(Hardmax) {
  return along_axis(c, [](const Tensor& x, int axis) {
    Shape row = Shape::filled(x.ndim(), 1);
    row[axis] = x.size(axis);
    return cast(eq(max_dim(x, axis, true).indices, reshape(arange(x.size(axis)), row)), x.dtype());
  });
}

TENON_ONNX(LpNormalization) {
  const Tensor& x = c.input(0);
  const int axis = wrap_axis(c.node.integer("axis", -1), x.ndim());
  const int64_t p = c.node.integer("p", 2);
  if (p != 1 && p != 2) throw Error(fmt::format("a norm of order {}", p));
  const Tensor norm = p == 1 ? sum(abs(x), {axis}, true) : sqrt(sum(square(x), {axis}, true));
  return {where(eq(norm, 0), scalar_like(0, x), div(x, norm))};
}

TENON_ONNX(MeanVarianceNormalization) {
  const Tensor& x = c.input(0);
  const Dims axes(c.node.integers("axes", {0, 2, 3}));
  const Tensor m = mean(x, axes, true), d = sub(x, m);
  return {div(d, add(sqrt(mean(square(d), axes, true)), 1e-9))};
}

}  // namespace
}  // namespace tenon::formats
