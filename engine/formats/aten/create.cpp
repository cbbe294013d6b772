// Operators of PyTorch that make tensors of nothing, and the numbers of their sizes.
#include <cmath>

#include "engine/formats/aten/rule.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

/// What a program may have as a constant.
constexpr double kMostCreated = 1 << 24;

void filled(AtenCall& c, const std::vector<AtenInt>& to, double value, DType t) {
  std::vector<AtenInt> sizes = to;
  if (sizes.empty()) return c.result(c.scalar_of(value, t));
  c.result(c.add("Expand", {c.scalar_of(value, t), c.whole(sizes)}));
}
/// The type of a number that is made without one.
DType created_type(AtenCall& c, const char* number) {
  if (const auto wanted = c.type("dtype")) return *wanted;
  return c.knows("self") ? c.dtype("self") : number ? c.number_type(number) : DType::f32;
}
TENON_ATEN(full) { filled(c, c.sizes("size"), c.number("fill_value"), created_type(c, "fill_value")); }
TENON_ATEN(ones) { filled(c, c.sizes("size"), 1, created_type(c, nullptr)); }
TENON_ATEN(zeros) { filled(c, c.sizes("size"), 0, created_type(c, nullptr)); }
TENON_ATEN(new_full) { filled(c, c.sizes("size"), c.number("fill_value"), created_type(c, nullptr)); }
TENON_ATEN(new_ones) { filled(c, c.sizes("size"), 1, created_type(c, nullptr)); }
TENON_ATEN(new_zeros) { filled(c, c.sizes("size"), 0, created_type(c, nullptr)); }
TENON_ATEN(scalar_tensor) { c.result(c.scalar_of(c.number("s"), created_type(c, nullptr))); }
void filled_like(AtenCall& c, double value) {
  c.result(c.add("Expand", {c.scalar_of(value, created_type(c, nullptr)), c.add("Shape", {c.in("self")})}));
}
TENON_ATEN(fill) {
  if (!c.is_tensor("value")) return filled_like(c, c.number("value"));
  c.result(c.add("Expand", {c.operand("value", c.dtype("self")), c.add("Shape", {c.in("self")})}));
}
TENON_ATEN(copy) { c.result(c.add("Expand", {c.operand("src", c.dtype("self")), c.add("Shape", {c.in("self")})})); }
TENON_ATEN(zero) { filled_like(c, 0); }
TENON_ATEN(full_like) { filled_like(c, c.number("fill_value")); }
TENON_ATEN(ones_like) { filled_like(c, 1); }
TENON_ATEN(zeros_like) { filled_like(c, 0); }

TENON_ATEN(arange) {
  const double start = c.knows("start") ? c.number("start") : 0, end = c.number("end"),
               step = c.knows("step") ? c.number("step") : 1;
  if (!(step != 0) || !(std::abs((end - start) / step) < kMostCreated)) c.refuse("it makes too many numbers");
  DType t = c.number_type("end");
  if (c.knows("start")) t = promote(t, c.number_type("start"));
  if (c.knows("step")) t = promote(t, c.number_type("step"));
  c.result(c.constant(arange(start, end, step, c.type("dtype").value_or(t))));
}
TENON_ATEN(sym_size) {
  const int64_t at = c.axis("self", c.integer("dim"));
  c.result(c.add("Shape", {c.in("self")}, {{"start", at}, {"end", at + 1}}));
}
TENON_ATEN(sym_numel) { c.result(c.add("Reshape", {c.add("Size", {c.in("self")}), c.whole(AtenInts{1})})); }

}  // namespace
}  // namespace tenon::formats
