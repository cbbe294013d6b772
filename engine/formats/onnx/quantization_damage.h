#pragma once
#include <vector>

#include "engine/formats/onnx/quantization.h"

namespace tenon::formats {

/// What quantization does to one node, as the ratio of signal to noise in dB: 10 log10 of the squares of the f32
/// model's values over the squares of the differences; infinite where nothing differs.
struct NodeDamage {
  double snr = 0;  ///< of the node's own output, in the model as it was quantized
  double alone =
      0;  ///< of the model's output, were this the only node that is quantized: the lower, the more sensitive
};

/// The signal-to-noise ratio of each of these values of a quantized model, over all batches.
std::vector<double> snr_within(const OnnxModel& f32, const OnnxModel& quantized, const std::vector<std::string>& values,
                               const std::vector<Tensor>& batches);

/// Of each of the nodes, that of the first output of the model were it alone quantized.
std::vector<double> sensitivities(const Quantizer& quantizer, const std::vector<Tensor>& batches,
                                  const QuantProgress& progress = {});

/// Places of numbers from the least to the largest; those that are equal keep their order.
std::vector<size_t> least_first(const std::vector<double>& values);

}  // namespace tenon::formats
