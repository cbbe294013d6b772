#pragma once
#include <string>
#include <vector>

#include "engine/formats/onnx/quantization.h"

namespace tenon::formats {

// What quantization does, as the ratio of signal to noise in dB: 10 log10 of the squares of the f32 model's values over
// the squares of the differences; infinite where nothing differs.

/// The ratio of each of these sets of values of a quantized model, over all batches.
std::vector<double> snr_within(const OnnxModel& f32, const OnnxModel& quantized,
                               const std::vector<std::vector<std::string>>& sets, const std::vector<Tensor>& batches);
/// The values that each layer makes.
std::vector<std::vector<std::string>> layer_outputs(const Quantizer& quantizer);

/// Of each of the layers, the ratio of the first output of the model were it alone quantized: the lower, the more
/// sensitive.
std::vector<double> sensitivities(const Quantizer& quantizer, const std::vector<Tensor>& batches,
                                  const QuantProgress& progress = {});

/// Places of numbers from the least to the largest; those that are equal keep their order.
std::vector<size_t> least_first(const std::vector<double>& values);

}  // namespace tenon::formats
