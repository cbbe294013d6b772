#pragma once
#include <string>
#include <variant>
#include <vector>

#include "core/dtype.h"
#include "core/layout.h"

namespace tenon {

/// One ONNX operator as an op's definition describes it; the exporter knows nothing of single ops.
struct OnnxOp {
  using Value = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>>;
  struct Attribute {
    std::string name;
    Value value;
  };
  struct ConstantInput {
    std::vector<int64_t> values;
    bool scalar = false;
  };  ///< an i64 tensor that follows the op's own inputs

  std::string type;  ///< preset from OpInfo::onnx
  std::vector<Attribute> attributes;
  std::vector<ConstantInput> constants;
  int gaps = 0;                           ///< inputs left out between the op's own and those that follow
  std::vector<std::vector<float>> lists;  ///< f32 tensors of one axis that follow the op's own inputs
  std::vector<double>
      numbers;  ///< tensors without axes, of the first input's dtype, that follow the op's own inputs and the constants
  std::vector<int> inputs;  ///< which of the op's inputs, in ONNX order; preset to all
  /// An input that ONNX wants where ours is absent: `value` in the size of input `like`, or (like < 0) in `size` and
  /// the first input's dtype.
  struct Fill {
    int input;
    double value;
    int like;
    Dims size = {};
  };
  std::vector<Fill> fills;
  std::string unsupported;  ///< why the op cannot be exported with these attributes, empty where it can

  void set(std::string name, Value v) { attributes.push_back({std::move(name), std::move(v)}); }
  void set(std::string name, const Dims& d) { set(std::move(name), std::vector<int64_t>(d.begin(), d.end())); }
  void set_type(std::string name, DType t);  ///< as ONNX's number of a dtype
  void add_input(const Dims& d) { constants.push_back({std::vector<int64_t>(d.begin(), d.end())}); }
};
/// ONNX's TensorProto.DataType of a dtype.
int onnx_data_type(DType t);

}  // namespace tenon
