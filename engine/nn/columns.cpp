// Layers that take columns out of an input and change their type.
#include <fmt/format.h>

#include "core/error.h"
#include "engine/nn/functional.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"

namespace tenon::nn {
namespace {

using Made = std::shared_ptr<Module>;

int axis_of(int64_t axis, const Shape& s) {
  int at = static_cast<int>(axis < 0 ? axis + s.n : axis);
  if (at < 1 || at >= s.n)
    throw Error(
        fmt::format("dim = {}: its input has shape {}; the batch is axis 0 and stays whole", axis, to_string(s)));
  return at;
}

const bool registered_columns[] = {
    register_layer(
        {{.type = "Narrow",
          .group = "Shape",
          .help = "Some places of an axis: length of them from start on. A negative start counts from the end.",
          .attrs = {{"dim", int64_t{-1}, -7, 7, "the axis"},
                    {"start", int64_t{0}, -1e9, 1e9, "first place"},
                    {"length", int64_t{1}, 1, 1e9, "places"}}},
         [](const LayerArgs& a) -> Made {
           const Shape& s = a.inputs[0].shape;
           int dim = axis_of(a.integer("dim"), s);
           int64_t start = a.integer("start") < 0 ? a.integer("start") + s[dim] : a.integer("start"),
                   length = a.integer("length");
           if (start < 0 || start + length > s[dim])
             throw Error(fmt::format("places {} to {} of axis {}, which has {}", start, start + length, dim, s[dim]));
           return unary(fmt::format("Narrow(dim {}, {}..{})", dim, start, start + length),
                        [=](const Tensor& x) { return narrow(x, dim, start, length); });
         }}),
    register_layer({{.type = "Cast",
                     .group = "Shape",
                     .help = "The same values as elements of another type.",
                     .attrs = {{"dtype", std::string("f32"), 0, 0, "f32, f64, i64, ..."}}},
                    [](const LayerArgs& a) -> Made {
                      DType to;
                      std::string text = a.text("dtype");
                      if (!parse_dtype(text.c_str(), to))
                        throw Error("dtype \"" + text + "\" is no type of elements",
                                    "f32 for values, i64 for numbers of things");
                      return unary("Cast(" + text + ")", [to](const Tensor& x) { return cast(x, to); });
                    }}),
    register_layer(
        {{.type = "Log1p", .group = "Activation", .help = "log(1 + x): makes counts comparable.", .attrs = {}},
         [](const LayerArgs&) -> Made { return unary("Log1p", [](const Tensor& x) { return log1p(x); }); }}),
};

}  // namespace
}  // namespace tenon::nn
