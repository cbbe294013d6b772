#include "engine/ops/pad.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/op/strided_loop.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/join.h"
#include "engine/ops/onnx_op.h"

namespace tenon {
namespace {

using ops::dense;

struct PadAttrs {
  Dims before, after;  ///< one an axis
  int64_t mode;
  double value;
  Dims input;  ///< x's size, for the gradient
  template <class F>
  void fields(F&& f) const {
    f("before", before);
    f("after", after);
    f("mode", mode);
    f("value", value);
    f("input", input, false);
  }
};

Shape padded(const PadAttrs& a, const Shape& in) {
  Shape s = in;
  for (int i = 0; i < s.n; ++i) s[i] += a.before[i] + a.after[i];
  return s;
}

/// For every place of the padded axis its place in x, -1 for the constant.
std::vector<int64_t> places(const PadAttrs& a, int axis, int64_t n) {
  std::vector<int64_t> at(static_cast<size_t>(n + a.before[axis] + a.after[axis]));
  for (size_t o = 0; o < at.size(); ++o) {
    int64_t i = static_cast<int64_t>(o) - a.before[axis];
    if (i < 0 || i >= n) switch (static_cast<PadMode>(a.mode)) {
        case PadMode::constant:
          i = -1;
          break;
        case PadMode::reflect:
          i = i < 0 ? -i : 2 * (n - 1) - i;
          break;
        case PadMode::replicate:
          i = i < 0 ? 0 : n - 1;
          break;
        case PadMode::circular:
          i = i < 0 ? i + n : i - n;
          break;
      }
    at[o] = i;
  }
  return at;
}

/// Calls f(place in the padded tensor, place in x or -1) with the first elements of rows along the last axis, for
/// leading places [begin, end).
template <class F>
void each_row(const PadAttrs& a, const Shape& in, int64_t begin, int64_t end,
              const std::vector<std::vector<int64_t>>& at, const F& f) {
  Shape out = padded(a, in);
  int last = in.n - 1;
  for (int64_t row = begin; row < end; ++row) {
    int64_t rest = row, from = 0, step = in[last];
    for (int axis = last - 1; axis >= 0; --axis) {
      int64_t i = at[static_cast<size_t>(axis)][static_cast<size_t>(rest % out[axis])];
      rest /= out[axis];
      from = i < 0 || from < 0 ? -1 : from + i * step;
      step *= in[axis];
    }
    f(row * out[last], from);
  }
}

struct Pad {
  static constexpr OpInfo info{"pad", "Pad", OpKind::index};
  using Attrs = PadAttrs;
  static Meta infer(const Attrs& a, const Meta& x) {
    Meta m = x;
    if (a.before.n != x.shape.n)
      throw Error("padding of " + std::to_string(a.before.n) + " axes does not fit an input of size " +
                  to_string(x.shape));
    auto mode = static_cast<PadMode>(a.mode);
    for (int i = 0; i < x.shape.n; ++i) {
      int64_t n = x.shape[i], least = std::min(a.before[i], a.after[i]), most = std::max(a.before[i], a.after[i]);
      if (mode != PadMode::constant &&
          (least < 0 || (mode == PadMode::reflect && most >= std::max<int64_t>(n, 1)) ||
           (mode == PadMode::circular && most > n) || (mode == PadMode::replicate && most > 0 && n == 0)))
        throw Error("padding " + std::to_string(a.before[i]) + " and " + std::to_string(a.after[i]) +
                        " does not fit axis " + std::to_string(i) + " of an input of size " + to_string(x.shape),
                    "reflection needs less than the axis' size, a circle at most that");
      if (n + a.before[i] + a.after[i] < 0)
        throw Error("padding takes more from axis " + std::to_string(i) + " than an input of size " +
                    to_string(x.shape) + " has");
    }
    m.shape = padded(a, x.shape);
    return m;
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor x = dense(c.in[0], room);
    const Tensor& y = c.out[0];
    if (y.numel() == 0) return;
    int64_t width = y.size(-1), rows = y.numel() / width;
    auto item = static_cast<int64_t>(itemsize(x.dtype()));
    char constant[8];
    convert(constant, x.dtype(), 0, &a.value, DType::f64, 0, 1);
    std::vector<std::vector<int64_t>> at;
    for (int i = 0; i < x.ndim(); ++i) at.push_back(places(a, i, x.size(i)));
    const char* from = static_cast<const char*>(x.raw());
    char* to = static_cast<char*>(y.raw());
    const std::vector<int64_t>& last = at.back();
    // Along a row the middle is one piece of x.
    int64_t start = std::clamp<int64_t>(a.before[x.ndim() - 1], 0, width),
            plain = std::clamp<int64_t>(x.size(-1) + std::min<int64_t>(0, a.before[x.ndim() - 1]), 0, width - start);
    parallel_for(rows, std::max<int64_t>(1, 16384 / width), [&](int64_t begin, int64_t end) {
      each_row(a, x.size(), begin, end, at, [&](int64_t o, int64_t i) {
        for (int64_t j = 0; j < width; ++j) {
          if (j == start && i >= 0 && plain > 0) {
            std::memcpy(to + (o + j) * item, from + (i + last[static_cast<size_t>(j)]) * item,
                        static_cast<size_t>(plain * item));
            j += plain - 1;
            continue;
          }
          int64_t p = last[static_cast<size_t>(j)];
          std::memcpy(to + (o + j) * item, i < 0 || p < 0 ? constant : from + (i + p) * item,
                      static_cast<size_t>(item));
        }
      });
    });
  }
  static Tensor decompose(const Attrs& a, const std::vector<Tensor>& in);
  static void backward(Grad& d);
  static void onnx(const Attrs& a, OnnxOp& o) {
    const char* names[] = {"constant", "reflect", "edge", "wrap"};
    if (a.mode == 3) o.unsupported = "opset 17 cannot pad in a circle";
    o.set("mode", std::string(names[a.mode]));
    std::vector<int64_t> both(a.before.begin(), a.before.end());
    both.insert(both.end(), a.after.begin(), a.after.end());
    o.constants.push_back({both});
    o.numbers = {a.value};
  }
  static void samples(Samples& s) {
    s.add("constant", Attrs{{0, 1}, {0, 2}, 0, 0.5, {}}, {s.values({2, 3})});
    s.add("taken away", Attrs{{1, -1}, {0, 1}, 0, 0, {}}, {s.values({2, 3})});
    s.add("reflected", Attrs{{0, 0, 2}, {0, 1, 1}, 1, 0, {}}, {s.values({2, 3, 4})});
    s.add("repeated border", Attrs{{0, 2, 0}, {0, 1, 3}, 2, 0, {}}, {s.values({2, 2, 2})});
    s.add("circle", Attrs{{0, 2}, {0, 3}, 3, 0, {}}, {s.values({2, 3})});
  }
};

/// The adjoint: sums what went to several places.
struct PadBackward {
  static constexpr OpInfo info{"pad_backward", "", OpKind::other};
  using Attrs = PadAttrs;
  static Meta infer(const Attrs& a, const Meta& g) {
    ops::common_float({&g});
    if (!(padded(a, a.input) == g.shape)) throw Error("a gradient of size " + to_string(g.shape) + " does not fit");
    Meta m = g;
    m.shape = a.input;
    return m;
  }
  static size_t workspace(const Attrs&, const Call& c) { return ops::dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& a = c.as<Attrs>();
    Tensor g = dense(c.in[0], room);
    if (c.out[0].numel() == 0) return;
    int n = a.input.n;
    // Slices of the leading axes that are not padded are independent of each other.
    int64_t alone = 1, rows = g.size(-1) ? g.numel() / g.size(-1) : 0;
    for (int i = 0; i < n - 1 && a.before[i] == 0 && a.after[i] == 0; ++i) alone *= a.input[i];
    std::vector<std::vector<int64_t>> at;
    for (int i = 0; i < n; ++i) at.push_back(places(a, i, a.input[i]));
    ops::float_or_double(g.dtype(), [&](auto one) {
      using T = decltype(one);
      const T* from = g.data<T>();
      T* to = c.out[0].data<T>();
      std::fill_n(to, c.out[0].numel(), T(0));
      parallel_for(alone, std::max<int64_t>(1, 16384 * alone / std::max<int64_t>(1, g.numel())),
                   [&](int64_t begin, int64_t end) {
                     each_row(a, a.input, begin * (rows / alone), end * (rows / alone), at, [&](int64_t o, int64_t i) {
                       if (i < 0) return;
                       const std::vector<int64_t>& last = at.back();
                       for (size_t j = 0; j < last.size(); ++j)
                         if (last[j] >= 0) to[i + last[j]] += from[o + static_cast<int64_t>(j)];
                     });
                   });
    });
  }
  static void backward(Grad& d) {
    PadAttrs a = d.as<Attrs>();
    a.value = 0;
    d.in(0) = apply<Pad>(a, d.out());
  }
  static void samples(Samples& s) { s.add("reflected", Attrs{{0, 2}, {0, 1}, 1, 0, {2, 4}}, {s.values({2, 7})}); }
};
void Pad::backward(Grad& d) {
  PadAttrs a = d.as<Attrs>();
  a.input = d.meta(0).shape;
  d.in(0) = apply<PadBackward>(a, d.out());
}

const Register<Pad> pad_op;
const Register<PadBackward> pad_backward_op;
Tensor Pad::decompose(const Attrs& a, const std::vector<Tensor>& in) {
  Tensor x = in[0];
  if (static_cast<PadMode>(a.mode) != PadMode::circular) return apply<Pad>(a, x);
  for (int i = 0; i < x.ndim(); ++i) {
    std::vector<Tensor> parts;
    if (a.before[i] > 0) parts.push_back(narrow(x, i, x.size(i) - a.before[i], a.before[i]));
    parts.push_back(x);
    if (a.after[i] > 0) parts.push_back(narrow(x, i, 0, a.after[i]));
    if (parts.size() > 1) x = cat(parts, i);
  }
  return x;
}

}  // namespace

PadMode pad_mode(const std::string& name) {
  if (name == "constant" || name == "zeros") return PadMode::constant;
  if (name == "reflect") return PadMode::reflect;
  if (name == "replicate") return PadMode::replicate;
  if (name == "circular") return PadMode::circular;
  throw Error("there is no padding mode \"" + name + "\"", "zeros, reflect, replicate or circular");
}

Tensor pad(const Tensor& x, const std::vector<int64_t>& amounts, PadMode mode, double value) {
  if (amounts.size() % 2 || static_cast<int>(amounts.size() / 2) > x.ndim())
    throw Error("pad: " + std::to_string(amounts.size()) + " amounts do not fit an input of size " +
                to_string(x.size()) + ": two for every axis, the last axis first");
  if (std::all_of(amounts.begin(), amounts.end(), [](int64_t v) { return v == 0; })) return x;
  PadAttrs a{Dims::filled(x.ndim(), 0), Dims::filled(x.ndim(), 0), static_cast<int64_t>(mode), value, {}};
  for (size_t i = 0; i < amounts.size() / 2; ++i) {
    a.before[x.ndim() - 1 - static_cast<int>(i)] = amounts[2 * i];
    a.after[x.ndim() - 1 - static_cast<int>(i)] = amounts[2 * i + 1];
  }
  return apply<Pad>(a, x);
}

}  // namespace tenon
