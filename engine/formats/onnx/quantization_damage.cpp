#include "engine/formats/onnx/quantization_damage.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/formats/tensor_difference.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

/// Squares of a value and of what was added to it.
struct SignalAndNoise {
  double signal = 0, noise = 0;
  void add(const Tensor& x, const Tensor& y) {
    const TensorDifference d = tensor_difference(contiguous(x), contiguous(y));
    signal += d.square_a, noise += d.square;
  }
  double decibels() const {
    return noise > 0 ? 10 * std::log10(signal / noise) : std::numeric_limits<double>::infinity();
  }
};

}  // namespace

std::vector<double> snr_within(const OnnxModel& f32, const OnnxModel& quantized,
                               const std::vector<std::vector<std::string>>& sets, const std::vector<Tensor>& batches) {
  std::vector<std::string> values;
  std::vector<size_t> set_of;
  for (size_t i = 0; i < sets.size(); ++i)
    for (const std::string& v : sets[i]) values.push_back(v), set_of.push_back(i);
  std::vector<SignalAndNoise> sums(sets.size());
  for (const Tensor& x : batches) {
    const std::vector<Tensor> one = values_within(f32, values, x), other = values_within(quantized, values, x);
    for (size_t i = 0; i < values.size(); ++i) sums[set_of[i]].add(one[i], other[i]);
  }
  std::vector<double> out;
  for (const SignalAndNoise& s : sums) out.push_back(s.decibels());
  return out;
}

std::vector<std::vector<std::string>> layer_outputs(const Quantizer& quantizer) {
  std::vector<std::vector<std::string>> out;
  for (const WeightedLayer& layer : quantizer.layers()) {
    out.emplace_back();
    for (size_t i : layer.nodes) out.back().push_back(quantizer.nodes()[i].output);
  }
  return out;
}

std::vector<double> sensitivities(const Quantizer& quantizer, const std::vector<Tensor>& batches,
                                  const QuantProgress& progress) {
  const std::string& output = quantizer.model().graph.outputs.at(0).name;
  std::vector<Tensor> exact;
  for (const Tensor& x : batches) exact.push_back(values_within(quantizer.model(), {output}, x)[0]);
  const size_t layers = quantizer.layers().size();
  std::vector<double> out;
  for (size_t i = 0; i < layers; ++i) {
    if (progress && !progress(static_cast<int64_t>(i), static_cast<int64_t>(layers))) throw Error("cancelled");
    std::vector<bool> chosen(layers);
    chosen[i] = true;
    const OnnxModel model = quantizer.quantized(chosen);
    SignalAndNoise s;
    for (size_t b = 0; b < batches.size(); ++b) s.add(exact[b], values_within(model, {output}, batches[b])[0]);
    out.push_back(s.decibels());
  }
  return out;
}

std::vector<size_t> least_first(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  return order;
}

}  // namespace tenon::formats
