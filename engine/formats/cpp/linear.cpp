// C++ kernels of matrix products.
#include <algorithm>

#include "engine/formats/cpp/kernel.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

constexpr int64_t kColumns = 16;

// Sums of many terms are made of sums of a few, which rounds less.
constexpr const char* kTile = R"(
/// Rows x Columns elements of y = bias + x w, in registers.
template <int Rows, int Columns>
void tile(const float* x, int x_row, int x_step, const float* w, int w_row, const float* bias, float* y, int y_row,
          int depth) {
  float total[Rows][Columns];
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Columns; ++c) total[r][c] = bias ? bias[c] : 0.0f;
  for (int from = 0; from < depth; from += 128) {
    const int to = from + 128 < depth ? from + 128 : depth;
    float sum[Rows][Columns] = {};
    for (int k = from; k < to; ++k)
      for (int r = 0; r < Rows; ++r) {
        const float a = x[r * x_row + k * x_step];
        for (int c = 0; c < Columns; ++c) sum[r][c] += a * w[k * w_row + c];
      }
    for (int r = 0; r < Rows; ++r)
      for (int c = 0; c < Columns; ++c) total[r][c] += sum[r][c];
  }
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Columns; ++c) y[r * y_row + c] = total[r][c];
}
/// Columns of a whole product.
template <int Columns>
void column(const float* x, int x_row, int x_step, const float* w, int w_row, const float* bias, float* y, int y_row,
            int rows, int depth) {
  int r = 0;
  for (; r + 4 <= rows; r += 4)
    tile<4, Columns>(x + r * x_row, x_row, x_step, w, w_row, bias, y + r * y_row, y_row, depth);
  for (; r < rows; ++r)
    tile<1, Columns>(x + r * x_row, x_row, x_step, w, w_row, bias, y + r * y_row, y_row, depth);
}
)";

/// A product of matrices that lie behind the pointers' names, [rows, depth] and [depth, columns].
struct Product {
  int64_t rows, depth, columns;
  int64_t x_row, x_step;
  bool packed;  ///< the second matrix lies in panels of kColumns columns, one row of a panel after the other
  std::string x = "x0", w = "x1", bias = "nullptr", y = "y";
};
std::string product_text(CppCall& c, const Product& p) {
  c.uses(kTile);
  const int64_t rest = p.columns % kColumns, whole = p.columns - rest;
  auto column = [&](int64_t width, const std::string& at) {
    const std::string w = p.packed ? fmt::format("{} + {} * {}", p.w, at, p.depth) : fmt::format("{} + {}", p.w, at);
    const std::string bias = p.bias == "nullptr" ? p.bias : fmt::format("{} + {}", p.bias, at);
    return fmt::format("column<{}>({}, {}, {}, {}, {}, {}, {} + {}, {}, {}, {});\n", width, p.x, p.x_row, p.x_step, w,
                       p.packed ? width : p.columns, bias, p.y, at, p.columns, p.rows, p.depth);
  };
  std::string text;
  if (whole) text += fmt::format("for (int c = 0; c < {}; c += {}) ", whole, kColumns) + column(kColumns, "c");
  if (rest) text += column(rest, std::to_string(whole));
  return text;
}

/// [depth, columns] in panels.
Tensor panels(const Tensor& w) {
  const int64_t depth = w.size(0), columns = w.size(1);
  const Tensor from = contiguous(w), to = empty({w.numel()});
  float* next = to.data<float>();
  for (int64_t c = 0; c < columns; c += kColumns)
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t j = c; j < std::min(c + kColumns, columns); ++j) *next++ = from.data<float>()[k * columns + j];
  return to;
}

TENON_CPP(Gemm) {
  c.need_f32();
  const bool ta = c.node().integer("transA", 0), tb = c.node().integer("transB", 0);
  const double alpha = c.node().number("alpha", 1), beta = c.node().number("beta", 1);
  const Shape &y = c.out().shape, &x = c.shape(0);
  const StaticValue& w = c.in(1);
  const int64_t depth = ta ? x[0] : x[1];
  if (!w.constant && (tb || alpha != 1)) {  // no layer writes it so; short rather than fast
    if (c.has(2)) throw OnnxUnsupported("it adds to a scaled or turned product of two results");
    return cpp_sizes({{"rows", y[0]}, {"columns", y[1]}, {"depth", depth}}) +
           fmt::format(R"(for (int r = 0; r < rows; ++r)
for (int c = 0; c < columns; ++c) {{
float sum = 0.0f;
for (int k = 0; k < depth; ++k) sum += x0[{}] * x1[{}];
y[r * columns + c] = {} * sum;
}}
)",
                       ta ? "k * rows + r" : "r * depth + k", tb ? "c * depth + k" : "k * columns + c",
                       cpp_number(alpha, DType::f32));
  }
  Product p{y[0], depth, y[1], ta ? 1 : depth, ta ? y[0] : 1, w.constant.defined()};
  if (w.constant) {
    const Tensor turned = tb ? transpose(w.constant, 0, 1) : w.constant;
    c.hold(1, panels(alpha == 1 ? turned : mul(turned, alpha)),
           fmt::format("panels{}{}", tb ? "_t" : "", alpha == 1 ? "" : fmt::format("_{}", alpha)));
  }
  if (!c.has(2)) return product_text(c, p);
  const StaticValue& bias = c.in(2);
  if (bias.constant && beta == 1 && bias.shape == Shape{y[1]}) {
    p.bias = "x2";
    return product_text(c, p);
  }
  std::string text = product_text(c, p);
  const std::string scale = beta == 1 ? "" : cpp_number(beta, DType::f32) + " * ";
  return text + cpp_loops(y, {{"y", Layout::contiguous(y)}, {"x2", c.spread(2)}}, "$y += " + scale + "$x2;\n");
}

TENON_CPP(MatMul) {
  c.need_f32();
  Shape a = c.shape(0), b = c.shape(1), y = c.out().shape;
  // A vector is a matrix of one row, or of one column.
  if (a.n == 1) {
    a.insert(0, 1);
    y.insert(y.n - (b.n == 1 ? 0 : 1), 1);
  }
  if (b.n == 1) {
    b.insert(1, 1);
    y.insert(y.n, 1);
  }
  const int64_t rows = a[a.n - 2], depth = a[a.n - 1], columns = b[b.n - 1];
  const StaticValue& w = c.in(1);
  Product p{rows, depth, columns, depth, 1, w.constant && b.n == 2};
  if (p.packed) {
    c.hold(1, panels(reshape(w.constant, b)), "panels");
    p.rows = a.product() / depth;  // all matrices against one
    return product_text(c, p);
  }
  // Every matrix of the batch against its own.
  auto outer = [](const Shape& s) {
    Shape o;
    for (int i = 0; i < s.n - 2; ++i) o.push_back(s[i]);
    return o;
  };
  const Shape batch = outer(y);
  auto matrices = [&](const Shape& s) {
    Layout l = Layout::contiguous(outer(s)).expand(batch);
    for (int i = 0; i < l.stride.n; ++i) l.stride[i] *= s[s.n - 2] * s[s.n - 1];
    return l;
  };
  p.x = "a", p.w = "b", p.y = "to";
  return cpp_loops(
      batch, {{"x0", matrices(a)}, {"x1", matrices(b)}, {"y", matrices(y)}},
      "const float* const a = &$x0;\nconst float* const b = &$x1;\nfloat* const to = &$y;\n" + product_text(c, p));
}

}  // namespace
}  // namespace tenon::formats
