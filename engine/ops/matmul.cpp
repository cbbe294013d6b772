#include "engine/ops/matmul.h"

#include <algorithm>

#include "core/parallel.h"
#include "engine/autograd/node.h"
#include "engine/kernels/gemm.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/dense.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/reduce.h"

namespace tenon {
namespace {

using ops::common_float;
using ops::dense;
using ops::float_or_double;

/// The last two axes of a tensor as a matrix the product kernel can read.
struct Matrix {
  Tensor t;
  int64_t rows, cols, ld;
  bool transposed;  ///< in memory

  explicit Matrix(const Tensor& x) : t(x), rows(x.size(-2)), cols(x.size(-1)), transposed(false) {
    int64_t r = x.stride()[x.ndim() - 2], c = x.stride()[x.ndim() - 1];
    if ((c == 1 || cols == 1) && (rows == 1 || r >= std::max<int64_t>(1, cols))) {
      ld = rows == 1 ? std::max<int64_t>(1, cols) : r;
    } else if ((r == 1 || rows == 1) && (cols == 1 || c >= std::max<int64_t>(1, rows))) {
      transposed = true;
      ld = cols == 1 ? std::max<int64_t>(1, rows) : c;
    } else {
      t = dense(x);
      ld = std::max<int64_t>(1, cols);
    }
  }
  /// Position of matrix i of the batch, counted over the axes before the last two; a plain matrix serves for all.
  int64_t at(int64_t i) const {
    int64_t offset = 0;
    for (int axis = t.ndim() - 3; axis >= 0; --axis) {
      offset += i % t.size(axis) * t.stride()[axis];
      i /= t.size(axis);
    }
    return offset;
  }
};

struct MatMul {
  static constexpr OpInfo info{"matmul", "MatMul", OpKind::matmul};
  struct Attrs {
    bool ta = false, tb = false;
    template <class F>
    void fields(F&& f) const {
      f("transpose_a", ta);
      f("transpose_b", tb);
    }
  };
  static Meta infer(const Attrs& at, const Meta& a, const Meta& b) {
    Meta m = a;
    m.dtype = common_float({&a, &b});
    const Shape &sa = a.shape, &sb = b.shape;
    if (sa.n < 2 || sb.n < 2)
      throw Error("a product needs matrices; the inputs have sizes " + to_string(sa) + " and " + to_string(sb),
                  "unsqueeze() a vector first");
    int64_t rows = at.ta ? sa[sa.n - 1] : sa[sa.n - 2], ka = at.ta ? sa[sa.n - 2] : sa[sa.n - 1];
    int64_t kb = at.tb ? sb[sb.n - 1] : sb[sb.n - 2], cols = at.tb ? sb[sb.n - 2] : sb[sb.n - 1];
    if (ka != kb)
      throw Error("sizes " + to_string(sa) + (at.ta ? " transposed" : "") + " and " + to_string(sb) +
                  (at.tb ? " transposed" : "") + " do not fit: " + std::to_string(ka) + " columns meet " +
                  std::to_string(kb) + " rows");
    bool batch_fits = sa.n == 2 || sb.n == 2 || sa.n == sb.n;
    for (int i = 0; batch_fits && sa.n > 2 && sb.n > 2 && i < sa.n - 2; ++i) batch_fits = sa[i] == sb[i];
    if (!batch_fits)
      throw Error("the batch axes of " + to_string(sa) + " and " + to_string(sb) + " differ", "expand() one of them");
    m.shape = sa.n >= sb.n ? sa : sb;
    m.shape[m.shape.n - 2] = rows;
    m.shape[m.shape.n - 1] = cols;
    return m;
  }
  static void cpu(const Call& c) {
    const auto& at = c.as<Attrs>();
    Matrix a(c.in[0]), b(c.in[1]);
    const Tensor& y = c.out[0];
    int64_t m = y.size(-2), n = y.size(-1), k = at.ta ? a.rows : a.cols, batch = 1;
    for (int i = 0; i < y.ndim() - 2; ++i) batch *= y.size(i);
    float_or_double(y.dtype(), [&](auto one) {
      using T = decltype(one);
      // Small matrices of a batch are pieces themselves; large ones are cut each.
      constexpr double kPieceProducts = 1e6;
      const double each = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
      const int64_t grain = each > 8 * kPieceProducts
                                ? batch
                                : std::max<int64_t>(1, static_cast<int64_t>(kPieceProducts / std::max(1.0, each)));
      parallel_for(batch, grain, [&](int64_t i, int64_t last) {
        for (; i < last; ++i)
          kernels::gemm(at.ta != a.transposed, at.tb != b.transposed, m, n, k, a.t.template data<T>() + a.at(i), a.ld,
                        b.t.template data<T>() + b.at(i), b.ld, y.data<T>() + i * m * n, n);
      });
    });
  }
  static constexpr Saves saves{.inputs = 0b11};
  static Tensor decompose(const Attrs& a, const std::vector<Tensor>& in);
  static void backward(Grad& d) {
    auto [ta, tb] = d.as<Attrs>();
    const Tensor& g = d.out();
    // A matrix that served for a whole batch gets the gradient of every use; autograd adds them up.
    if (d.needs(0)) d.in(0) = ta ? matmul(d.x(1), g, tb, true) : matmul(g, d.x(1), false, !tb);
    if (d.needs(1)) d.in(1) = tb ? matmul(g, d.x(0), true, ta) : matmul(d.x(0), g, !ta, false);
  }
  static Cost cost(const Attrs& at, const Call& c) {
    const Shape& a = c.in[0].size();
    return {2.0 * static_cast<double>(c.out[0].numel()) * static_cast<double>(at.ta ? a[a.n - 2] : a[a.n - 1])};
  }
  static void onnx(const Attrs& at, OnnxOp& o) {
    if (at.ta || at.tb) o.unsupported = "a product with a transposed side";
  }
  static void samples(Samples& s) {
    s.add("matrices", Attrs{}, {s.values({3, 4}), s.values({4, 5})});
    s.add("left transposed", Attrs{true, false}, {s.values({4, 3}), s.values({4, 5})});
    s.add("right transposed", Attrs{false, true}, {s.values({3, 4}), s.values({5, 4})});
    s.add("both transposed", Attrs{true, true}, {s.values({4, 3}), s.values({5, 4})});
    s.add("batch", Attrs{}, {s.values({2, 3, 4}), s.values({2, 4, 5})});
    s.add("one matrix for a batch", Attrs{}, {s.values({2, 3, 4}), s.values({4, 5})});
    s.add("empty inner axis", Attrs{}, {s.values({3, 0}), s.values({0, 2})});
  }
};

struct Linear {
  static constexpr OpInfo info{"linear", "Gemm", OpKind::matmul};
  using Attrs = NoAttrs;
  static Meta infer(const NoAttrs&, const Meta& x, const Meta& w, const Meta& b) {
    bool bias = !absent(b);
    Meta m = x;
    m.dtype = bias ? common_float({&x, &w, &b}) : common_float({&x, &w});
    if (x.shape.n != 2 || w.shape.n != 2 || x.shape[1] != w.shape[1])
      throw Error("an input of size " + to_string(x.shape) + " does not fit a weight of size " + to_string(w.shape) +
                  ": its last axis must be " + (w.shape.n == 2 ? std::to_string(w.shape[1]) : "the weight's"));
    if (bias && !(b.shape == Shape{w.shape[0]}))
      throw Error("a bias of size " + to_string(b.shape) + " does not fit a weight of size " + to_string(w.shape));
    m.shape[1] = w.shape[0];
    return m;
  }
  static void cpu(const Call& c) {
    Tensor x = dense(c.in[0]), w = dense(c.in[1]), b = dense(c.in[2]);
    const Tensor& y = c.out[0];
    int64_t in = w.size(1), out = w.size(0), rows = x.size(0);
    float_or_double(y.dtype(), [&](auto one) {
      using T = decltype(one);
      T* to = y.data<T>();
      if (b)
        for (int64_t i = 0; i < rows; ++i) std::copy_n(b.data<T>(), out, to + i * out);
      kernels::gemm(false, true, rows, out, in, x.data<T>(), std::max<int64_t>(1, in), w.data<T>(),
                    std::max<int64_t>(1, in), to, out, T(b ? 1 : 0));
    });
  }
  static constexpr Saves saves{.inputs = 0b011};
  static void backward(Grad& d) {
    const Tensor& g = d.out();
    if (d.needs(0)) d.in(0) = matmul(g, d.x(1), false, false);
    if (d.needs(1)) d.in(1) = matmul(g, d.x(0), true, false);
    if (d.needs(2)) d.in(2) = sum(g, {0});
  }
  static Cost cost(const NoAttrs&, const Call& c) {
    return {2.0 * static_cast<double>(c.out[0].numel()) * static_cast<double>(c.in[1].size(1))};
  }
  static void onnx(const NoAttrs&, OnnxOp& o) { o.set("transB", int64_t{1}); }
  static void samples(Samples& s) {
    s.add("with bias", NoAttrs{}, {s.values({5, 3}), s.values({4, 3}), s.values({4})});
    s.add("without bias", NoAttrs{}, {s.values({5, 3}), s.values({4, 3}), Tensor()});
  }
};

const Register<MatMul> matmul_op;
Tensor MatMul::decompose(const Attrs& a, const std::vector<Tensor>& in) {
  return matmul(a.ta ? transpose(in[0], -1, -2) : in[0], a.tb ? transpose(in[1], -1, -2) : in[1]);
}
const Register<Linear> linear_op;

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) { return apply<MatMul>({}, a, b); }
Tensor matmul(const Tensor& a, const Tensor& b, bool ta, bool tb) { return apply<MatMul>({ta, tb}, a, b); }

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias) {
  if (x.ndim() == 2 || w.ndim() != 2 || x.ndim() == 0 || x.size(-1) != w.size(1)) return apply<Linear>({}, x, w, bias);
  // Any other shape is a matrix of rows seen otherwise: one op, one meaning, and ONNX's Gemm fits it.
  Shape rows{x.numel() / std::max<int64_t>(1, x.size(-1)), x.size(-1)}, result = x.size();
  result[result.n - 1] = w.size(0);
  return view(apply<Linear>({}, reshape(x, rows), w, bias), result);
}

}  // namespace tenon
