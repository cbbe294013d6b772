#include "engine/ops/matmul.h"

#include <algorithm>

#include "core/parallel.h"
#include "engine/autograd/node.h"
#include "engine/kernels/gemm.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/half_products.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/reduce.h"

namespace tenon {
namespace {

using ops::float_or_double;

/// The last two axes of a tensor as a matrix the product kernel can read.
struct Matrix {
  const Tensor* t;  ///< the operand, or `copy`
  Tensor copy;
  int64_t rows, cols, ld;
  bool transposed;  ///< in memory

  /// As elements of type `as`; what has to be copied for it lies in `room`. `x` outlives it.
  Matrix(const Tensor& x, DType as, kernels::Room& room)
      : t(&x), rows(x.size(-2)), cols(x.size(-1)), transposed(false) {
    if (x.dtype() != as) {
      copy = ops::dense_as(x, as, room);
      t = &copy;
      ld = std::max<int64_t>(1, cols);
      return;
    }
    int64_t r = x.stride()[x.ndim() - 2], c = x.stride()[x.ndim() - 1];
    if ((c == 1 || cols == 1) && (rows == 1 || r >= std::max<int64_t>(1, cols))) {
      ld = rows == 1 ? std::max<int64_t>(1, cols) : r;
    } else if ((r == 1 || rows == 1) && (cols == 1 || c >= std::max<int64_t>(1, rows))) {
      transposed = true;
      ld = cols == 1 ? std::max<int64_t>(1, rows) : c;
    } else {
      copy = ops::dense(x, room);
      t = &copy;
      ld = std::max<int64_t>(1, cols);
    }
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  /// Position of matrix i of the batch, counted over the axes before the last two; a plain matrix serves for all.
  int64_t at(int64_t i) const {
    int64_t offset = 0;
    for (int axis = t->ndim() - 3; axis >= 0; --axis) {
      offset += i % t->size(axis) * t->stride()[axis];
      i /= t->size(axis);
    }
    return offset;
  }
  template <class T>
  const T* data(int64_t i) const {
    return t->data<T>() + at(i);
  }
};

/// What a product reads and writes, in the type that it is computed in.
struct Operands {
  Matrix a, b;
  Tensor bias;  ///< or undefined
  Tensor wide;  ///< the result in f32, where it is rounded to halves afterwards

  Operands(const Call& c, kernels::Room& room)
      : a(c.in[0], type_of(c), room),
        b(c.in[1], type_of(c), room),
        bias(c.inputs > 2 ? ops::dense_as(c.in[2], type_of(c), room) : Tensor()),
        wide(ops::wide_result(c.out[0], room)) {}
  static DType type_of(const Call& c) { return ops::computed_in(c.out[0].dtype()); }
  static size_t bytes(const Call& c) {
    bool as_they_are = type_of(c) == c.out[0].dtype();
    for (int i = 0; i < c.inputs; ++i) as_they_are = as_they_are && (!c.in[i] || c.in[i].is_contiguous());
    if (as_they_are) return 0;
    kernels::Room room;
    const Operands counted(c, room);
    return room.used();
  }
};

/// y = op(a) op(b), of every matrix of the batch, with a row `bias` added to each row of a single one.
void multiply_matrices(const Call& c, bool ta, bool tb, const kernels::WeightKeeper& keep = {}) {
  kernels::Room room(c.workspace);
  const Operands in(c, room);
  const Tensor& y = in.wide ? in.wide : c.out[0];
  const int64_t m = y.size(-2), n = y.size(-1), k = ta ? in.a.rows : in.a.cols;
  const bool a_turned = ta != in.a.transposed, b_turned = tb != in.b.transposed;
  int64_t batch = 1;
  for (int i = 0; i < y.ndim() - 2; ++i) batch *= y.size(i);
  // Small matrices of a batch are pieces themselves; large ones are cut each.
  const auto each = [&](const auto& product) {
    if (batch == 1) return product(0);
    constexpr double kPieceProducts = 1e6;
    const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const int64_t grain = products > 8 * kPieceProducts
                              ? batch
                              : std::max<int64_t>(1, static_cast<int64_t>(kPieceProducts / std::max(1.0, products)));
    parallel_for(batch, grain, [&](int64_t i, int64_t last) {
      for (; i < last; ++i) product(i);
    });
  };
  if (y.dtype() == DType::bf16)
    return each([&](int64_t i) {
      kernels::gemm_bf16(a_turned, b_turned, m, n, k, in.a.data<uint16_t>(i), in.a.ld, in.b.data<uint16_t>(i), in.b.ld,
                         in.bias ? in.bias.data<uint16_t>() : nullptr, y.data<uint16_t>() + i * m * n, n);
    });
  if (y.dtype() == DType::f32 && batch == 1 && !a_turned && b_turned) {
    kernels::gemm_by_weights(m, n, k, in.a.data<float>(0), in.a.ld, in.b.data<float>(0), in.b.ld,
                             in.bias ? in.bias.data<float>() : nullptr, y.data<float>(), n, keep);
    if (in.wide) ops::write_output(c.out[0], in.wide);
    return;
  }
  float_or_double(y.dtype(), [&](auto one) {
    using T = decltype(one);
    T* to = y.data<T>();
    if (in.bias)
      parallel_for(m, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, n)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) std::copy_n(in.bias.data<T>(), n, to + i * n);
      });
    each([&](int64_t i) {
      kernels::gemm(a_turned, b_turned, m, n, k, in.a.data<T>(i), in.a.ld, in.b.data<T>(i), in.b.ld, to + i * m * n, n,
                    T(in.bias ? 1 : 0));
    });
  });
  if (in.wide) ops::write_output(c.out[0], in.wide);
}

struct MatMul {
  static constexpr OpInfo info{.name = "matmul", .onnx = "MatMul", .kind = OpKind::matmul, .own_halves = true};
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
    m.dtype = ops::product_type({&a, &b});
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
  static size_t workspace(const Attrs&, const Call& c) { return Operands::bytes(c); }
  static void cpu(const Call& c) { multiply_matrices(c, c.as<Attrs>().ta, c.as<Attrs>().tb); }
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
    s.add("left transposed, one matrix for a batch", Attrs{true, false}, {s.values({4, 3}), s.values({2, 4, 5})});
    s.add("empty inner axis", Attrs{}, {s.values({3, 0}), s.values({0, 2})});
  }
};

struct Linear {
  static constexpr OpInfo info{.name = "linear", .onnx = "Gemm", .kind = OpKind::matmul, .own_halves = true};
  using Attrs = NoAttrs;
  static Meta infer(const NoAttrs&, const Meta& x, const Meta& w, const Meta& b) {
    bool bias = !absent(b);
    Meta m = x;
    m.dtype = bias ? ops::product_type({&x, &w, &b}) : ops::product_type({&x, &w});
    if (x.shape.n != 2 || w.shape.n != 2 || x.shape[1] != w.shape[1])
      throw Error("an input of size " + to_string(x.shape) + " does not fit a weight of size " + to_string(w.shape) +
                  ": its last axis must be " + (w.shape.n == 2 ? std::to_string(w.shape[1]) : "the weight's"));
    if (bias && !(b.shape == Shape{w.shape[0]}))
      throw Error("a bias of size " + to_string(b.shape) + " does not fit a weight of size " + to_string(w.shape));
    m.shape[1] = w.shape[0];
    return m;
  }
  static bool plain(const Tensor& t) { return t.dtype() == DType::f32 && t.is_contiguous(); }
  /// Of a weight that is read as it is.
  static kernels::WeightKeeper keeper(const Call& c) {
    const Tensor &x = c.in[0], &w = c.in[1];
    if (w.size(0) < kernels::kKeptColumns || w.dtype() != DType::f32 || !plain(x)) return {};
    return kernels::WeightKeeper(w);
  }
  static size_t workspace(const NoAttrs&, const Call& c) {
    const int64_t m = c.in[0].size(0), n = c.in[1].size(0), k = c.in[1].size(1);
    if (const auto keep = keeper(c)) kernels::keep_gemm_weights(m, n, k, k, k, c.in[2].defined(), n, keep);
    return Operands::bytes(c);
  }
  static void cpu(const Call& c) {
    const Tensor &x = c.in[0], &w = c.in[1], &bias = c.in[2], &y = c.out[0];
    if (!plain(x) || !plain(w) || (bias && !plain(bias))) return multiply_matrices(c, false, true, keeper(c));
    const int64_t n = w.size(0), k = w.size(1);
    kernels::gemm_by_weights(x.size(0), n, k, x.data<float>(), k, w.data<float>(), k,
                             bias ? bias.data<float>() : nullptr, y.data<float>(), n, keeper(c));
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
