#pragma once
#include "core/error.h"
#include "core/pool.h"
#include "engine/formats/onnx/import.h"
#include "engine/formats/onnx/run.h"
#include "engine/ops/create.h"

namespace tenon {

/// Runs a model that takes small inputs, on ones: operators meet every attribute and shape that a file can hold. Sizes
/// and the number of nodes are bounded, so that a model which asks for 2^31 elements or loops for ever is an error.
inline void run_on_ones(const formats::OnnxModel& model) {
  using Form = formats::OnnxValue::Form;
  std::vector<formats::OnnxItem> inputs;
  for (const formats::OnnxValue& v : model.graph.inputs) {
    Shape shape;
    int64_t count = 1;
    if (v.shape.size() > static_cast<size_t>(kMaxDims)) return;
    for (const formats::OnnxDim& d : v.shape) {
      const int64_t n = d.value < 0 ? 1 : d.value;
      if (n > 4096 || (count *= n > 0 ? n : 1) > 4096) return;
      shape.push_back(n);
    }
    const Tensor t = ones(shape, v.dtype);
    if (v.form == Form::sequence || v.form == Form::optional_sequence)
      inputs.push_back(std::vector<Tensor>{t, t});
    else
      inputs.push_back(t);
  }
  formats::run_onnx_items(model, inputs, {.tensor_bytes = 1 << 20, .nodes = 500});
}

/// As layers of the builder.
inline void import_small(const formats::OnnxModel& model) {
  if (model.graph.nodes.size() > 200) return;
  const AllocationLimit bound(1 << 20);
  formats::import_model(model, "input", {});
}

}  // namespace tenon
