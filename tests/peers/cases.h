#pragma once
#include <nlohmann/json.hpp>

#include "core/tensor.h"
#include "engine/spec/model_spec.h"

// What the comparisons of layers and losses share: cases as JSON, tensors of random numbers that depend on the case
// alone.
namespace tenon::peers {

/// tests/peers/<file>
nlohmann::json read_cases(const char* file);
/// The case's "layer" (or "loss") and "attrs".
LayerSpec spec_of(const nlohmann::json& c);
Tensor random(const Shape& size, uint64_t stream, double scale = 1);
/// A size, or {"shape", "dtype", "below", "values"}, or null.
Tensor input_of(const nlohmann::json& j, uint64_t stream);
nlohmann::json to_json(const Tensor& t);
/// Largest difference, relative to 1 + the largest value.
double apart(const Tensor& a, const Tensor& b);

}  // namespace tenon::peers
