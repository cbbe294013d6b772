#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/formats/named_tensors.h"
#include "engine/formats/onnx/run.h"

// What a model is run with: a value for each of its inputs, from a file or made up.
namespace tenon::formats {

/// Where the values of an input come from.
struct OnnxFeed {
  enum class From : uint8_t { seed, zeros, ones, file };
  From from = From::seed;
  uint64_t seed = 0;
  std::vector<int64_t> shape = {};  ///< of what is made up; a file has its own
  std::string file = {};
};

/// The inputs that a run has to be given, in order: those that no initializer has a value for.
std::vector<OnnxValue> wanted_inputs(const OnnxModel& model);
/// Of one name; throws Error (usage) with the near names where there is none.
const OnnxValue& find_input(const std::vector<OnnxValue>& inputs, const std::string& name);

/// Sizes from a text: "2, 3, 8, 8", "2x3x8x8" or "[2, 3, 8, 8]"; none of an empty one. Throws Error (usage).
std::vector<int64_t> parse_sizes(const std::string& text);
/// The shape of an input from such a text. Throws Error (usage) naming the input where that is no shape, or not one
/// that the model declares for it.
std::vector<int64_t> input_shape(const OnnxValue& input, const std::string& text);
/// The declared one, sizes that the model leaves open being 1.
std::vector<int64_t> least_shape(const OnnxValue& input);

/// "seed", "seed:3", "zeros" or "ones". Throws Error (usage) where it is none of them.
OnnxFeed parse_feed(const std::string& text);
/// From a seed: normal numbers, whole numbers from 0 to 9, or truth values; a function of the seed and the input's name
/// alone. From a file: .npy and .pb hold one tensor; of .npz, safetensors, ONNX and PyTorch files it is the tensor of
/// the input's name, or the only one. Throws Error naming the input and what does not fit.
Tensor fed(const OnnxValue& input, const OnnxFeed& feed);
/// One feed an input of wanted_inputs(). Throws Error too where two inputs disagree about a size of one name.
std::vector<OnnxItem> fed(const std::vector<OnnxValue>& inputs, const std::vector<OnnxFeed>& feeds);

/// The outputs of a run by their names; of a sequence its tensors, "y[0]", "y[1]"; what is empty is left out.
NamedTensors named_outputs(const OnnxModel& model, const std::vector<OnnxItem>& outputs);
/// As .npz or .safetensors, by the end of the path; .npy where there is one tensor. Throws Error (usage) where the end
/// is none of these.
void save_outputs(const std::string& path, const NamedTensors& outputs);

}  // namespace tenon::formats
