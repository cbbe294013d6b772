// C++ kernels that make one number of several.
#include <algorithm>

#include "engine/formats/cpp/kernel.h"

namespace tenon::formats {
namespace {

/// What is done with every element, and with the result; `count` is how many there are.
struct ReductionText {
  const char *start, *step, *end;
};

std::string reduction_text(CppCall& c, int64_t axes_input_since, const ReductionText& r) {
  const Shape& x = c.shape(0);
  const std::vector<int64_t> axes = c.opset() >= axes_input_since ? c.list(1, "") : c.node().integers("axes");
  if (axes.empty() && c.node().integer("noop_with_empty_axes", 0)) return c.map("a");
  const Layout from = Layout::contiguous(x);
  Shape kept, gone;
  Layout outer, inner, to;
  for (int i = 0; i < x.n; ++i) {
    const bool over =
        axes.empty() || std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return wrap_axis(a, x.n) == i; });
    (over ? gone : kept).push_back(x[i]);
    (over ? inner : outer).stride.push_back(from.stride[i]);
  }
  outer.size = kept;
  inner.size = gone;
  const char* type = cpp_type(c.out().dtype);
  std::string body =
      fmt::format("{0} sum = {1};\nconst {2}* const x = &$x0;\n", type, r.start, cpp_type(c.in(0).dtype));
  body += cpp_loops(gone, {{"x", inner}}, fmt::format("const {} a = $x;\n{}\n", type, r.step), 'j');
  return cpp_sizes({{"count", gone.product()}}) +
         cpp_loops(kept, {{"y", Layout::contiguous(kept)}, {"x0", outer}}, body + "$y = " + r.end + ";\n");
}

TENON_CPP(ReduceSum) { return reduction_text(c, 13, {"0", "sum += a;", "sum"}); }
TENON_CPP(ReduceMean) { return reduction_text(c, 18, {"0", "sum += a;", "sum / count"}); }
TENON_CPP(ReduceProd) { return reduction_text(c, 18, {"1", "sum *= a;", "sum"}); }
TENON_CPP(ReduceSumSquare) { return reduction_text(c, 18, {"0", "sum += a * a;", "sum"}); }
TENON_CPP(ReduceL1) { return reduction_text(c, 18, {"0", "sum += a < 0 ? -a : a;", "sum"}); }
TENON_CPP(ReduceL2) { return reduction_text(c, 18, {"0", "sum += a * a;", "std::sqrt(sum)"}); }
TENON_CPP(ReduceMax) {
  c.need_f32();
  return reduction_text(c, 18, {"-INFINITY", "sum = a > sum || a != a ? a : sum;", "sum"});
}
TENON_CPP(ReduceMin) {
  c.need_f32();
  return reduction_text(c, 18, {"INFINITY", "sum = a < sum || a != a ? a : sum;", "sum"});
}

/// An image, or rows of any number of axes of space, to one number a channel.
std::string over_space(CppCall& c, const char* start, const char* step, const char* end) {
  c.need_f32();
  const Shape& x = c.shape(0);
  const int64_t size = x.product() / (x[0] * x[1]);
  return cpp_sizes({{"rows", x[0] * x[1]}, {"size", size}}) + fmt::format(R"(for (int r = 0; r < rows; ++r) {{
float sum = {};
for (int i = 0; i < size; ++i) {{
const float a = x0[r * size + i];
{}
}}
y[r] = {};
}}
)",
                                                                          start, step, end);
}
TENON_CPP(GlobalAveragePool) { return over_space(c, "0.0f", "sum += a;", "sum / size"); }
TENON_CPP(GlobalMaxPool) { return over_space(c, "-INFINITY", "sum = a > sum || a != a ? a : sum;", "sum"); }

std::string extreme_place(CppCall& c, const char* better) {
  const Shape& x = c.shape(0);
  const int axis = wrap_axis(c.node().integer("axis", 0), x.n);
  int64_t inner = 1;
  for (int i = axis + 1; i < x.n; ++i) inner *= x[i];
  const char* last = c.node().integer("select_last_index", 0) ? "=" : "";
  return cpp_sizes({{"outer", x.product() / (inner * x[axis])}, {"length", x[axis]}, {"inner", inner}}) +
         fmt::format(R"(for (int o = 0; o < outer; ++o)
for (int j = 0; j < inner; ++j) {{
int best = 0;
for (int i = 1; i < length; ++i)
if (x0[(o * length + i) * inner + j] {}{} x0[(o * length + best) * inner + j]) best = i;
y[o * inner + j] = best;
}}
)",
                     better, last);
}
TENON_CPP(ArgMax) { return extreme_place(c, ">"); }
TENON_CPP(ArgMin) { return extreme_place(c, "<"); }

TENON_CPP(CumSum) {
  const Shape& x = c.shape(0);
  const int axis = wrap_axis(static_cast<int64_t>(c.number(1)), x.n);
  int64_t inner = 1;
  for (int i = axis + 1; i < x.n; ++i) inner *= x[i];
  const bool exclusive = c.node().integer("exclusive", 0), reverse = c.node().integer("reverse", 0);
  return cpp_sizes({{"outer", x.product() / (inner * x[axis])}, {"length", x[axis]}, {"inner", inner}}) +
         fmt::format(R"(for (int o = 0; o < outer; ++o)
for (int j = 0; j < inner; ++j) {{
{} sum = 0;
for (int k = 0; k < length; ++k) {{
const int at = (o * length + {}) * inner + j;
{}
}}
}}
)",
                     cpp_type(c.out().dtype), reverse ? "length - 1 - k" : "k",
                     exclusive ? "y[at] = sum;\nsum += x0[at];" : "sum += x0[at];\ny[at] = sum;");
}

}  // namespace
}  // namespace tenon::formats
