#include "engine/formats/onnx/batch_norm_fold.h"

#include <algorithm>
#include <cmath>

#include "engine/formats/onnx/value_flow.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

struct Norm {
  Tensor scale, shift, mean, variance;
  double epsilon = 0;
  double factor(int64_t c) const {
    return scale.data<float>()[c] / std::sqrt(static_cast<double>(variance.data<float>()[c]) + epsilon);
  }
};

/// Four constants of f32, one number a channel; without a scale where it is another kind of norm.
Norm constant_norm(const OnnxGraph& g, const ValueFlow& flow, const OnnxNode& n, int64_t channels) {
  if (n.inputs.size() != 5 || n.integer("training_mode", 0) != 0) return {};
  Norm norm;
  norm.epsilon = n.number("epsilon", 1e-5);
  Tensor* parts[] = {&norm.scale, &norm.shift, &norm.mean, &norm.variance};
  for (size_t i = 0; i < 4; ++i) {
    const Tensor* t = flow.is_constant(n.inputs[i + 1]) ? g.initializer(n.inputs[i + 1]) : nullptr;
    if (!t || t->dtype() != DType::f32 || t->numel() != channels) return {};
    *parts[i] = contiguous(*t);
  }
  return norm;
}

void replace_initializer(OnnxGraph& g, const std::string& name, const Tensor& t) {
  for (auto& [n, value] : g.initializers)
    if (n == name) value = t;
}

/// Whether the norm is now part of the convolution.
bool folded(OnnxGraph& g, const ValueFlow& flow, FreeNames& names, OnnxNode& conv, const OnnxNode& bn) {
  const Tensor* w = flow.is_constant(conv.inputs.at(1)) ? g.initializer(conv.inputs[1]) : nullptr;
  if (!w || w->dtype() != DType::f32 || flow.readers(conv.inputs[1]).size() != 1) return false;
  const bool biased = conv.inputs.size() > 2 && !conv.inputs[2].empty();
  const Tensor* b = biased && flow.is_constant(conv.inputs[2]) ? g.initializer(conv.inputs[2]) : nullptr;
  if (biased && (!b || b->dtype() != DType::f32 || flow.readers(conv.inputs[2]).size() != 1)) return false;
  const int64_t channels = w->size(0);
  const Norm norm = constant_norm(g, flow, bn, channels);
  if (!norm.scale) return false;
  const Tensor from = contiguous(*w), before = b ? contiguous(*b) : zeros({channels});
  Tensor weight = empty(from.size()), bias = empty({channels});
  const int64_t inner = channels ? from.numel() / channels : 0;
  for (int64_t c = 0; c < channels; ++c) {
    const double factor = norm.factor(c);
    for (int64_t i = c * inner; i < (c + 1) * inner; ++i)
      weight.data<float>()[i] = static_cast<float>(from.data<float>()[i] * factor);
    const double away = static_cast<double>(before.data<float>()[c]) - norm.mean.data<float>()[c];
    bias.data<float>()[c] = static_cast<float>(away * factor + norm.shift.data<float>()[c]);
  }
  replace_initializer(g, conv.inputs[1], weight);
  if (biased) {
    replace_initializer(g, conv.inputs[2], bias);
  } else {
    conv.inputs.resize(3);
    const std::string& of = conv.inputs[1];
    conv.inputs[2] = names.take((of.ends_with(".weight") ? of.substr(0, of.size() - 7) : of) + ".bias");
    g.initializers.emplace_back(conv.inputs[2], bias);
  }
  conv.outputs[0] = bn.outputs[0];
  conv.made_of = conv.types() + " + " + bn.types();
  return true;
}

}  // namespace

void fold_batch_norms(OnnxGraph& graph) {
  const OnnxGraph before = graph;
  const ValueFlow flow(before);
  FreeNames names(before);
  std::vector<bool> gone(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const OnnxNode& bn = before.nodes[i];
    if (bn.op_type != "BatchNormalization" || !bn.domain.empty() || bn.inputs.empty()) continue;
    const int maker = flow.maker(bn.inputs[0]);
    if (maker < 0 || flow.readers(bn.inputs[0]).size() != 1 || flow.is_output(bn.inputs[0])) continue;
    OnnxNode& conv = graph.nodes[static_cast<size_t>(maker)];
    if (conv.op_type == "Conv" && conv.domain.empty()) gone[i] = folded(graph, flow, names, conv, bn);
  }
  size_t at = 0;
  std::erase_if(graph.nodes, [&](const OnnxNode&) { return gone[at++]; });
  std::erase_if(graph.initializers, [&](const auto& i) {
    const auto& readers = flow.readers(i.first);
    return !readers.empty() && !flow.is_output(i.first) &&
           std::all_of(readers.begin(), readers.end(), [&](size_t r) { return gone[r]; });
  });
}

}  // namespace tenon::formats
