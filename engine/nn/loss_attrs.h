#pragma once
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/backend.h"
#include "core/error.h"
#include "core/number.h"
#include "engine/nn/loss.h"
#include "engine/ops/criterion.h"

// What the definitions of losses share.
namespace tenon::nn {

inline AttrDef reduction_attr(std::vector<std::string> choices = {"mean", "sum", "none"}) {
  return {
      "reduction",       std::string("mean"), 0, 0, "how losses become one number; none: one value an element or row",
      std::move(choices)};
}
inline Reduction reduction(const LayerArgs& a) { return reduction_of(a.text("reduction")); }

/// Numbers separated by commas as a tensor of `like`'s dtype, [count]; undefined for an empty text.
inline Tensor weights(const LayerArgs& a, const char* attr, const Tensor& like) {
  std::string text = a.text(attr);
  if (text.empty()) return {};
  std::vector<double> values;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    const auto value = number_of(part);
    if (!value)
      throw Error(std::string(attr) + " has \"" + part + "\", which is no number",
                  "numbers separated by commas: 1, 0.5, 2");
    values.push_back(*value);
  }
  DType t = like.dtype() == DType::f64 ? DType::f64 : DType::f32;
  Tensor w = empty({static_cast<int64_t>(values.size())}, t);
  for (size_t i = 0; i < values.size(); ++i) {
    if (t == DType::f64)
      w.data<double>()[i] = values[i];
    else
      w.data<float>()[i] = static_cast<float>(values[i]);
  }
  return to_device(w, like.device());
}
inline AttrDef weights_attr(const char* name, const char* help) { return {name, std::string(), 0, 0, help}; }

}  // namespace tenon::nn
