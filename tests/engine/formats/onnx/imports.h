#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/state.h"
#include "engine/formats/onnx/import.h"
#include "engine/formats/onnx/run.h"
#include "engine/model/graph_module.h"
#include "engine/nn/state_dict.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"
#include "tests/engine/normal_values.h"

// What tests of importing write models with, and look at the result by.
namespace tenon::formats::testing_import {

using Ints = std::vector<int64_t>;

inline Tensor noise(const Shape& size, uint64_t seed) { return testing_values::normal_values(size, seed, 0); }
inline Tensor whole(const Ints& list) {
  Tensor t = empty({static_cast<int64_t>(list.size())}, DType::i64);
  std::copy(list.begin(), list.end(), t.data<int64_t>());
  return t;
}

/// An ONNX model written line by line: each node's first output is named, and is the last one's default input.
struct Written {
  OnnxModel m;
  explicit Written(Ints sample, bool whole_numbers = false, OnnxDim batch = {-1, "N"}) {
    OnnxValue x{"x", true, whole_numbers ? DType::i64 : DType::f32, true, {batch}};
    for (int64_t n : sample) x.shape.push_back({n, ""});
    m.graph.inputs = {x};
  }
  Written& put(const std::string& out, const std::string& op, std::vector<std::string> in,
               std::vector<OnnxAttribute> attributes = {}, const std::string& name = {}) {
    m.graph.nodes.push_back({name, op, "", std::move(in), {out}, std::move(attributes)});
    return *this;
  }
  Written& constant(const std::string& name, const Tensor& t) {
    m.graph.initializers.emplace_back(name, t);
    return *this;
  }
  const OnnxModel& out(const std::string& name) {
    m.graph.outputs = {{name, true, DType::f32, false, {}}};
    return m;
  }
};

inline std::vector<std::string> types(const ImportedModel& in) {
  std::vector<std::string> list;
  for (const LayerSpec& l : in.model.layers)
    if (l.type != "Input" && l.type != "Output") list.push_back(l.type);
  return list;
}
using Types = std::vector<std::string>;

inline std::shared_ptr<GraphModule> built(const ImportedModel& in) {
  auto module = std::make_shared<GraphModule>(in.model);
  module->initialize(7);
  nn::load_state_dict(*module, in.weights);
  module->eval();
  return module;
}

inline double distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(to_string(a.size()), to_string(b.size()));
  if (!(a.size() == b.size())) return INFINITY;
  return item(amax(abs(sub(contiguous(a), contiguous(b)))));
}

/// The layers give what the model gives.
inline ImportedModel imported(const OnnxModel& m, const Tensor& x, double within = 1e-5) {
  NoGrad off;
  const ImportedModel in = import_model(m, "model");
  EXPECT_LE(distance((*built(in))(x), run_onnx(m, {x})[0]), within);
  return in;
}

}  // namespace tenon::formats::testing_import
