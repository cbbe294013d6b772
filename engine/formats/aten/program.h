#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/formats/onnx/model.h"

// What torch.export.export() says of a model, in our own words; PyTorch's are in torch/_export/serde/schema.py.
namespace tenon::formats {

/// A whole number, or the name of one that is known at a run.
struct AtenInt {
  int64_t value = 0;
  std::string name = {};
};

struct AtenArgument {
  enum class Kind : uint8_t { none, tensor, tensors, integer, integers, real, reals, text, truth, type, other };
  Kind kind = Kind::none;
  std::vector<std::string> names = {};  ///< of tensors; "" is one that is left out
  std::vector<AtenInt> ints = {};       ///< of integers; the ScalarType's number
  std::vector<double> reals = {};
  std::string text = {};  ///< of others what they are: "as_graph"
  bool truth = false;
};

/// What a value is: sizes that are not numbers have their expression as name.
struct AtenTensor {
  DType dtype = DType::f32;
  bool typed = false;  ///< the engine has its type
  std::vector<OnnxDim> sizes = {};
};

struct AtenNode {
  std::string target;  ///< "aten.softmax.int", "_operator.mul"
  std::vector<std::pair<std::string, AtenArgument>> inputs;
  std::vector<std::string> outputs;  ///< tensors, each of a list, or one whole number
  bool whole = false;                ///< its output is a number
  std::string name, scope = {};      ///< the module it stands in
};

struct AtenProgram {
  enum class Holds : uint8_t { parameter, buffer, constant };
  struct Held {
    std::string name;   ///< in the graph: "p_fc_weight"
    std::string state;  ///< "fc.weight"
    Holds kind = Holds::parameter;
  };
  std::vector<Held> held;
  std::vector<std::string> inputs, outputs;
  std::vector<AtenNode> nodes;
  std::map<std::string, AtenTensor> tensors;
  std::map<std::string, std::string> numbers;  ///< expressions of the numbers that are known at a run
  std::string torch_version;
};

/// Throws OnnxUnsupported for inputs and outputs that are no tensors, and Error for what is no program.
AtenProgram read_aten_program(const nlohmann::json& program);
/// `batch` is the number that stands for the symbol "s0", where sizes are of it.
nlohmann::json aten_program_json(const AtenProgram& program, int64_t batch);
/// The files of an archive that hold its weights, or its constants, and the list of them that lies beside.
std::vector<std::pair<std::string, const AtenProgram::Held*>> aten_payloads(const AtenProgram& program, bool constants);
nlohmann::json aten_payload_list(const AtenProgram& program, bool constants);

}  // namespace tenon::formats
