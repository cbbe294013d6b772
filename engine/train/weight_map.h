#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace tenon {

class Recipe;
struct ModelSpec;
namespace nn {
class Module;
}

/// A tensor that a model may begin with, as a file has it.
struct GivenTensor {
  std::string name, dtype;  ///< as the file writes them; an outer dictionary's key stands before a '/'
  std::vector<int64_t> shape;
  Tensor tensor;        ///< undefined where there is a problem
  std::string problem;  ///< why it cannot be read: "is quantized"
};
/// A tensor of the model: a parameter or a buffer.
struct ModelTensor {
  std::string name;
  std::vector<int64_t> shape;
  bool buffer = false, frozen = false;
};
/// In the order of the model.
std::vector<ModelTensor> model_tensors(const nn::Module& module, const Recipe& recipe);
/// The same of a model that is not built. Throws Error for one that cannot be.
std::vector<ModelTensor> model_tensors(const ModelSpec& spec, const Recipe& recipe);

/// What becomes of a tensor of the model, or of one of the file.
enum class WeightState : uint8_t {
  by_name,      ///< both have the same name
  by_rule,      ///< init.map says so
  by_shape,     ///< init.match = shape: what is left of one shape, in order
  suggested,    ///< it would be by_shape; nothing is taken
  wrong_shape,  ///< the names fit, the sizes do not
  unreadable,   ///< the engine cannot have the file's tensor
  missing,      ///< the file has none for it
  left_over,    ///< of the file: the model has none for it
  left_out,     ///< of the file: init.map leaves it out
};
/// "by name", "missing": the words of the table.
const char* name(WeightState s);

struct WeightRow {
  WeightState state = WeightState::missing;
  int target = -1, source = -1;  ///< numbers in the lists that were mapped; -1: none
  bool taken() const { return state <= WeightState::by_shape; }
};
/// Which tensor of a file goes where: a row for every tensor of the model, then one for each of the file that is left.
struct WeightMap {
  std::vector<ModelTensor> model;
  std::vector<GivenTensor> given;
  std::vector<WeightRow> rows;
  std::string rule;  ///< that would pair more by name, as init.map takes it; empty: none
  int rule_pairs = 0;

  size_t count(WeightState s) const;
  size_t taken() const;
  /// "12 of 14 tensors of the model are taken (10 by name, 2 by rule); 2 missing; of the file 3 left over"
  std::string text() const;
};

/// How names are paired: the recipe's init.map and init.match.
struct WeightRules {
  std::string map;  ///< "backbone.*=features.*; head.*=": FROM=TO, the first that fits; nothing behind '=': left out
  bool by_shape = false;  ///< take what the shapes suggest
  explicit WeightRules(const Recipe& recipe);
};
/// A function of its arguments alone; looks at no value of a tensor. Throws Error (usage) for a rule that is none, and
/// where two tensors are to be one.
WeightMap map_weights(std::vector<ModelTensor> model, std::vector<GivenTensor> given, const WeightRules& rules);
/// The rules of `map` with one for this tensor of the file in front: `target` empty leaves it out.
std::string with_rule(const std::string& map, const std::string& source, const std::string& target);

}  // namespace tenon
