#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor.h"

#include "core/error.h"

namespace tenon::formats {

/// A model or tensor that ONNX allows and Tenon cannot express (a type it does not have, strings, an operator it
/// lacks). Says which.
class OnnxUnsupported : public Error {
 public:
  using Error::Error;
};

/// A value of a model: a tensor, a sequence of tensors, or (neither) an optional that is empty.
struct OnnxItem {
  Tensor tensor;
  std::shared_ptr<const std::vector<Tensor>> sequence;
  OnnxItem() = default;
  OnnxItem(Tensor t) : tensor(std::move(t)) {}
  OnnxItem(std::vector<Tensor> s) : sequence(std::make_shared<const std::vector<Tensor>>(std::move(s))) {}
  bool empty() const { return !tensor && !sequence; }
};

struct OnnxGraph;
struct OnnxCall;
using OnnxOperator = std::function<std::vector<OnnxItem>(const OnnxCall&)>;

/// One attribute of a node. A graph is the body of If, Loop or Scan.
struct OnnxAttribute {
  using Value = std::variant<double, int64_t, std::string, Tensor, std::shared_ptr<OnnxGraph>, std::vector<double>,
                             std::vector<int64_t>, std::vector<std::string>>;
  std::string name;
  Value value;
};

struct OnnxNode {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;  ///< "" is an input or output left out
  std::vector<OnnxAttribute> attributes;
  OnnxOperator compiled = {};  ///< what runs in the place of the operator of that type; no file has it
  std::string made_of = {};    ///< where it is several nodes of the file in one: their types, "Conv + Relu"

  /// made_of, or its own type.
  const std::string& types() const { return made_of.empty() ? op_type : made_of; }
  const OnnxAttribute::Value* find(const std::string& attribute) const;
  int64_t integer(const std::string& attribute, int64_t fallback) const;
  double number(const std::string& attribute, double fallback) const;
  std::string text(const std::string& attribute, const std::string& fallback) const;
  std::vector<int64_t> integers(const std::string& attribute, const std::vector<int64_t>& fallback = {}) const;
};

/// A dimension with a number, with a name ("N"), or with neither (unknown): {-1, ""}.
struct OnnxDim {
  int64_t value = -1;
  std::string name;
};
/// The declared type of a value; `dtype` holds only where `typed`. Of a sequence or optional it is that of its
/// elements.
struct OnnxValue {
  enum class Form : uint8_t { tensor, sequence, optional, optional_sequence, other };
  std::string name;
  bool typed = false;
  DType dtype = DType::f32;
  bool ranked = false;
  std::vector<OnnxDim> shape;
  Form form = Form::tensor;
  std::string unsupported = {};  ///< the name of an element type that Tenon does not have
};

/// The type alone: "f32 [N, 3, 224, 224]".
std::string type_text(const OnnxValue& v);

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;  ///< every input is made before it is read
  std::vector<std::pair<std::string, Tensor>> initializers;
  /// Of those, the ones that a file holds in 4 bits an element (INT4 of i8, UINT4 of u8): an element is one byte here.
  std::set<std::string> four_bit;
  std::vector<OnnxValue> inputs, outputs, values;

  const Tensor* initializer(const std::string& name) const;
};
/// For whom names and texts are JSON: throws OnnxUnsupported where one of a node is not UTF-8.
void expect_utf8(const OnnxGraph& g);

struct OnnxModel {
  int64_t ir_version = 8;
  int64_t opset = 17;  ///< of the default domain
  std::vector<std::pair<std::string, int64_t>> other_opsets;
  std::string producer = "tenon", producer_version, doc;
  OnnxGraph graph;
};

/// The model with values of these names as its outputs, in the place of its own; whoever runs it finds their types.
OnnxModel with_outputs(OnnxModel model, const std::vector<std::string>& names);

/// Throws Error naming the file and the node or tensor that is wrong; never crashes on a bad file, never allocates more
/// than the file (with its external data) holds. Nodes out of order are sorted; a cycle, a value made twice and one
/// that nothing makes are errors.
OnnxModel load_onnx(const std::string& path);
/// `folder` is where external data lies; empty: external data is an error.
OnnxModel parse_onnx(std::string_view bytes, const std::string& name, const std::string& folder = {});
/// One file where it fits into the 2 GB a protobuf may have; the initializers beside it in "<path>.data" otherwise.
void save_onnx(const std::string& path, const OnnxModel& model);
std::string onnx_bytes(const OnnxModel& model);
/// What save_onnx() writes, in bytes.
size_t onnx_size(const OnnxModel& model);

/// A bare TensorProto: an input or output of the ONNX project's test cases.
Tensor load_onnx_tensor(const std::string& path);
/// The same where the declared type may be a sequence or an optional. Files whose writer had no bf16 hold its bits as
/// uint16: they are read as what is declared.
OnnxItem load_onnx_item(const std::string& path, const OnnxValue& declared);
void save_onnx_tensor(const std::string& path, const std::string& name, const Tensor& t);

/// Checks what load promises, and puts the nodes in an order in which every value is made before it is read.
void validate(OnnxGraph& graph, const std::string& name);

}  // namespace tenon::formats
