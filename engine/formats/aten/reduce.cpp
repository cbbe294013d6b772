// Operators of PyTorch over the elements of axes.
#include <algorithm>
#include <cmath>

#include "engine/formats/aten/rule.h"

namespace tenon::formats {
namespace {

/// The axes that an argument names, from the beginning; all where it names none.
AtenInts reduced_axes(const AtenCall& c, const char* name) {
  AtenInts axes = c.knows(name) ? c.integers(name) : AtenInts();
  for (int64_t i = 0; axes.empty() && i < c.rank("self"); ++i) axes.push_back(i);
  for (int64_t& a : axes) a = c.axis("self", a);
  return axes;
}
bool keeps_axes(const AtenCall& c) { return c.knows("keepdim") && c.truth("keepdim"); }

std::string reduced(AtenCall& c, const char* type, const std::string& x, const AtenInts& axes, bool keep) {
  if (c.rank("self") == 0) return x;
  return c.add(type, {x, c.whole(axes)}, {{"keepdims", int64_t{keep}}});
}
/// The tensor in the type that it is summed in.
std::string summed(AtenCall& c) {
  const DType t = c.dtype("self");
  const auto wanted = c.knows("dtype") ? c.type("dtype") : std::nullopt;
  return c.cast_to(c.in("self"), t, wanted ? *wanted : is_floating(t) ? t : DType::i64);
}

TENON_ATEN(sum) { c.result(reduced(c, "ReduceSum", summed(c), reduced_axes(c, "dim"), keeps_axes(c))); }
TENON_ATEN(mean) {
  if (!is_floating(c.dtype("self")) && !c.has("dtype")) c.refuse("its input is no tensor of fractions");
  c.result(reduced(c, "ReduceMean", summed(c), reduced_axes(c, "dim"), keeps_axes(c)));
}
TENON_ATEN(prod) { c.result(reduced(c, "ReduceProd", summed(c), reduced_axes(c, "dim"), keeps_axes(c))); }
TENON_ATEN(amax) { c.result(reduced(c, "ReduceMax", c.in("self"), reduced_axes(c, "dim"), keeps_axes(c))); }
TENON_ATEN(amin) { c.result(reduced(c, "ReduceMin", c.in("self"), reduced_axes(c, "dim"), keeps_axes(c))); }

void extreme(AtenCall& c, const char* type, const char* place) {
  const AtenInts axes = reduced_axes(c, "dim");
  c.result(reduced(c, type, c.in("self"), axes, keeps_axes(c)), 0);
  if (c.outputs() > 1)
    c.result(c.add(place, {c.in("self")}, {{"axis", axes.at(0)}, {"keepdims", int64_t{keeps_axes(c)}}}), 1);
}
TENON_ATEN(max) { extreme(c, "ReduceMax", "ArgMax"); }
TENON_ATEN(min) { extreme(c, "ReduceMin", "ArgMin"); }
void place_of_extreme(AtenCall& c, const char* type) {
  if (c.has("dim"))
    return c.result(c.add(type, {c.in("self")},
                          {{"axis", c.axis("self", c.integer("dim"))}, {"keepdims", int64_t{keeps_axes(c)}}}));
  if (keeps_axes(c)) c.refuse("it keeps the axes of all elements");
  const std::string flat = c.add("Reshape", {c.in("self"), c.whole(AtenInts{-1})});
  c.result(c.add(type, {flat}, {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}}));
}
TENON_ATEN(argmax) { place_of_extreme(c, "ArgMax"); }
TENON_ATEN(argmin) { place_of_extreme(c, "ArgMin"); }
TENON_ATEN(cumsum) {
  c.result(
      c.add("CumSum", {summed(c), c.scalar_of(static_cast<double>(c.axis("self", c.integer("dim"))), DType::i64)}));
}

/// The mean, and the mean of the squared distances from it, with so many samples less than there are.
std::pair<std::string, std::string> moments(AtenCall& c) {
  const AtenInts axes = reduced_axes(c, "dim");
  double count = 1, less = 1;
  if (c.knows("unbiased")) less = c.truth("unbiased") ? 1 : 0;
  if (c.knows("correction") && c.has("correction")) less = c.number("correction");
  for (int64_t a : axes) count *= less == 0 ? 1 : static_cast<double>(c.size("self", a));
  const std::string x = c.in("self"), m = reduced(c, "ReduceMean", x, axes, true), d = c.add("Sub", {x, m});
  std::string v = reduced(c, "ReduceMean", c.add("Mul", {d, d}), axes, keeps_axes(c));
  if (less != 0) v = c.add("Mul", {v, c.scalar_of(count / std::max(count - less, 0.0), c.dtype("self"))});
  return {keeps_axes(c) ? m : reduced(c, "ReduceMean", x, axes, false), v};
}
TENON_ATEN(var) { c.result(moments(c).second); }
TENON_ATEN(std) { c.result(c.add("Sqrt", {moments(c).second})); }
TENON_ATEN(var_mean) {
  const auto [m, v] = moments(c);
  c.result(v, 0);
  c.result(m, 1);
}
TENON_ATEN(linalg_vector_norm) {
  const double order = c.number("ord");
  const AtenInts axes = reduced_axes(c, "dim");
  const bool keep = keeps_axes(c);
  if (order == 2) return c.result(reduced(c, "ReduceL2", c.in("self"), axes, keep));
  if (order == 1) return c.result(reduced(c, "ReduceL1", c.in("self"), axes, keep));
  if (!std::isinf(order)) c.refuse(fmt::format("its order is {}", order));
  c.result(reduced(c, order > 0 ? "ReduceMax" : "ReduceMin", c.add("Abs", {c.in("self")}), axes, keep));
}
TENON_ATEN(logsumexp) { c.result(reduced(c, "ReduceLogSumExp", c.in("self"), reduced_axes(c, "dim"), keeps_axes(c))); }
void truths(AtenCall& c, const char* type) {
  const std::string counted = c.cast_to(c.operand("self", DType::boolean), DType::boolean, DType::i32);
  c.result(c.cast_to(reduced(c, type, counted, reduced_axes(c, "dim"), keeps_axes(c)), DType::i32, DType::boolean));
}
TENON_ATEN(any) { truths(c, "ReduceMax"); }
TENON_ATEN(all) { truths(c, "ReduceMin"); }

void soft_over(AtenCall& c, const char* type) {
  if (c.knows("half_to_float") && c.truth("half_to_float")) c.refuse("it makes numbers of 32 bits of 16");
  const DType t = c.dtype("self");
  const auto wanted = c.knows("dtype") ? c.type("dtype") : std::nullopt;
  c.result(c.add(type, {c.cast_to(c.in("self"), t, wanted.value_or(t))}, {{"axis", c.axis("self", c.integer("dim"))}}));
}
TENON_ATEN(softmax) { soft_over(c, "Softmax"); }
TENON_ATEN(_softmax) { soft_over(c, "Softmax"); }
TENON_ATEN(log_softmax) { soft_over(c, "LogSoftmax"); }
TENON_ATEN(_log_softmax) { soft_over(c, "LogSoftmax"); }

}  // namespace
}  // namespace tenon::formats
