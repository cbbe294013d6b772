// C++ kernels that lay elements out anew.
#include <algorithm>

#include "engine/formats/cpp/kernel.h"

namespace tenon::formats {
namespace {

/// One operand copied to another.
std::string copied(const Shape& size, const CppOperand& to, const CppOperand& from) {
  return cpp_loops(size, {to, from}, fmt::format("${} = ${};\n", to.pointer, from.pointer));
}

TENON_CPP(Concat) {
  const StaticValue& y = c.out();
  const int axis = wrap_axis(c.node().integer("axis", 0), y.shape.n);
  std::string text;
  int64_t at = 0;
  for (size_t i = 0; i < c.inputs(); ++i) {
    const Shape& size = c.shape(i);
    if (size.product() == 0) continue;
    text += copied(size, {"y", Layout::contiguous(y.shape).slice(axis, at, at + size[axis])},
                   {fmt::format("x{}", i), Layout::contiguous(size)});
    at += size[axis];
  }
  return text;
}

// A number that names no row is taken for the nearest one that does: there is nobody to tell of it.
TENON_CPP(Gather) {
  const Shape& x = c.shape(0);
  const int axis = wrap_axis(c.node().integer("axis", 0), x.n);
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < x.n; ++i) (i < axis ? outer : i > axis ? inner : outer) *= i == axis ? 1 : x[i];
  return cpp_sizes({{"outer", outer}, {"rows", x[axis]}, {"inner", inner}, {"wanted", c.shape(1).product()}}) +
         R"(for (int o = 0; o < outer; ++o)
for (int i = 0; i < wanted; ++i) {
auto row = x1[i] < 0 ? x1[i] + rows : x1[i];
row = row < 0 ? 0 : row >= rows ? rows - 1 : row;
for (int j = 0; j < inner; ++j) y[(o * wanted + i) * inner + j] = x0[(o * rows + static_cast<int>(row)) * inner + j];
}
)";
}

TENON_CPP(GatherElements) {
  const Shape &x = c.shape(0), &at = c.shape(1);
  const int axis = wrap_axis(c.node().integer("axis", 0), x.n);
  Layout from = Layout::contiguous(x);
  const int64_t step = from.stride[axis];
  from.stride[axis] = 0;
  from.size = at;
  return cpp_sizes({{"rows", x[axis]}, {"step", step}}) +
         cpp_loops(at, {{"y", Layout::contiguous(at)}, {"x1", Layout::contiguous(at)}, {"x0", from}},
                   R"(auto row = $x1 < 0 ? $x1 + rows : $x1;
row = row < 0 ? 0 : row >= rows ? rows - 1 : row;
$y = (&$x0)[static_cast<int>(row) * step];
)");
}

TENON_CPP(Pad) {
  const Shape& x = c.shape(0);
  const std::string mode = c.node().text("mode", "constant");
  const std::vector<int64_t> pads = c.list(1, "pads");
  if (c.has(3)) throw OnnxUnsupported("its axes are named");
  if (pads.size() != 2 * static_cast<size_t>(x.n)) throw OnnxUnsupported("its paddings are not of every axis");
  if (mode == "constant") {
    Layout to = Layout::contiguous(c.out().shape), from = Layout::contiguous(x);
    for (int i = 0; i < x.n; ++i) {
      const int64_t before = pads[static_cast<size_t>(i)], after = pads[static_cast<size_t>(i + x.n)];
      const int64_t skipped = std::max<int64_t>(0, -before);
      const int64_t kept = x[i] - skipped - std::max<int64_t>(0, -after);
      from = from.slice(i, skipped, skipped + kept);
      to = to.slice(i, std::max<int64_t>(0, before), std::max<int64_t>(0, before) + kept);
    }
    const double value = c.has(2) ? c.number(2) : c.node().number("value", 0);
    return fmt::format("for (int i = 0; i < {}; ++i) y[i] = {};\n", c.out().shape.product(),
                       cpp_number(value, c.out().dtype)) +
           copied(from.size, {"y", to}, {"x0", from});
  }
  if (mode != "reflect" && mode != "edge") throw OnnxUnsupported(fmt::format("its mode is {}", mode));
  // Every place of an axis names the element that it takes.
  std::string text, index;
  const Shape& y = c.out().shape;
  const Layout from = Layout::contiguous(x), to = Layout::contiguous(y);
  std::string loops;
  for (int i = 0; i < x.n; ++i) {
    loops += fmt::format("for (int i{0} = 0; i{0} < {1}; ++i{0}) {{\nint j{0} = i{0} - {2};\n", i, y[i],
                         pads[static_cast<size_t>(i)]);
    loops += mode == "edge" ? fmt::format("j{0} = j{0} < 0 ? 0 : j{0} >= {1} ? {1} - 1 : j{0};\n", i, x[i])
                            : fmt::format("j{0} = j{0} < 0 ? -j{0} : j{0};\nj{0} = j{0} >= {1} ? {2} - j{0} : j{0};\n",
                                          i, x[i], 2 * (x[i] - 1));
    text += fmt::format("{}i{} * {}", i ? " + " : "", i, to.stride[i]);
    index += fmt::format("{}j{} * {}", i ? " + " : "", i, from.stride[i]);
  }
  return loops + fmt::format("y[{}] = x0[{}];\n", text, index) + std::string(static_cast<size_t>(x.n), '}') + "\n";
}

TENON_CPP(Tile) {
  const Shape& x = c.shape(0);
  const std::vector<int64_t> times = c.list(1, "");
  // Each axis is two: which copy, and the element in it.
  Shape size;
  Layout from, to;
  const Layout ends = Layout::contiguous(c.out().shape), begins = Layout::contiguous(x);
  for (int i = 0; i < x.n; ++i) {
    size.push_back(times.at(static_cast<size_t>(i)));
    from.stride.push_back(0);
    to.stride.push_back(ends.stride[i] * x[i]);
    if (size.n == kMaxDims) throw OnnxUnsupported("too many axes");
    size.push_back(x[i]);
    from.stride.push_back(begins.stride[i]);
    to.stride.push_back(ends.stride[i]);
  }
  from.size = to.size = size;
  return copied(size, {"y", to}, {"x0", from});
}

/// Blocks of an image as channels, or channels as blocks: the axes are those of the narrow picture's.
std::string blocks(const Shape& parts, const Dims& order) {
  const Layout from = Layout::contiguous(parts).permute(order);
  return copied(from.size, {"y", Layout::contiguous(from.size)}, {"x0", from});
}
TENON_CPP(DepthToSpace) {
  const Shape& x = c.shape(0);
  const int64_t b = c.node().integer("blocksize", 1), d = x[1] / (b * b);
  return c.node().text("mode", "DCR") == "DCR" ? blocks({x[0], b, b, d, x[2], x[3]}, {0, 3, 4, 1, 5, 2})
                                               : blocks({x[0], d, b, b, x[2], x[3]}, {0, 1, 4, 2, 5, 3});
}
TENON_CPP(SpaceToDepth) {
  const Shape& x = c.shape(0);
  const int64_t b = c.node().integer("blocksize", 1);
  return blocks({x[0], x[1], x[2] / b, b, x[3] / b, b}, {0, 3, 5, 1, 2, 4});
}

}  // namespace
}  // namespace tenon::formats
