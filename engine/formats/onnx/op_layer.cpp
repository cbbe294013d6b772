#include "engine/formats/onnx/op_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/backend.h"
#include "core/error.h"
#include "core/state.h"
#include "engine/formats/onnx/run.h"
#include "engine/nn/init.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"

namespace tenon::formats {

using nlohmann::json;
using Input = OnnxOpLayer::Input;

namespace {

json json_of(const OnnxAttribute::Value& value) {
  if (const auto* v = std::get_if<double>(&value)) return {{"f", *v}};
  if (const auto* v = std::get_if<int64_t>(&value)) return {{"i", *v}};
  if (const auto* v = std::get_if<std::string>(&value)) return {{"s", *v}};
  if (const auto* v = std::get_if<std::vector<double>>(&value)) return {{"floats", *v}};
  if (const auto* v = std::get_if<std::vector<int64_t>>(&value)) return {{"ints", *v}};
  if (const auto* v = std::get_if<std::vector<std::string>>(&value)) return {{"strings", *v}};
  throw OnnxUnsupported("an attribute that is a tensor or a graph");
}

OnnxAttribute::Value value_of(const json& j) {
  if (j.contains("f")) return j["f"].get<double>();
  if (j.contains("i")) return j["i"].get<int64_t>();
  if (j.contains("s")) return j["s"].get<std::string>();
  if (j.contains("floats")) return j["floats"].get<std::vector<double>>();
  if (j.contains("ints")) return j["ints"].get<std::vector<int64_t>>();
  return j.at("strings").get<std::vector<std::string>>();
}

DType parsed_dtype(const json& j) {
  DType t;
  if (!parse_dtype(j.get<std::string>().c_str(), t))
    throw Error("\"" + j.get<std::string>() + "\" is no type of elements");
  return t;
}

std::vector<int64_t> sizes_of(const json& j) {
  auto sizes = j.get<std::vector<int64_t>>();
  for (int64_t n : sizes)
    if (n < 0 || n > (int64_t{1} << 40)) throw Error(fmt::format("a size of {}", n));
  return sizes;
}

json json_of(const Input& in) {
  if (in.kind == Input::Kind::none) return nullptr;
  if (in.kind == Input::Kind::wire) return "wire";
  json j = {{"dtype", name(in.value.dtype())},
            {"shape", std::vector<int64_t>(in.value.size().begin(), in.value.size().end())}};
  if (in.kind == Input::Kind::parameter) return {{"parameter", j}};
  if (is_floating(in.value.dtype())) {
    const Tensor t = contiguous(cast(in.value, DType::f64));
    j["values"] = json::array();
    // JSON has no number that is not finite.
    for (int64_t i = 0; i < t.numel(); ++i)
      j["values"].push_back(std::isfinite(t.data<double>()[i]) ? json(t.data<double>()[i])
                                                               : json(fmt::format("{}", t.data<double>()[i])));
  } else {
    const Tensor t = contiguous(cast(in.value, DType::i64));
    j["values"] = std::vector<int64_t>(t.data<int64_t>(), t.data<int64_t>() + t.numel());
  }
  return {{"constant", j}};
}

/// "nan", "inf" or "-inf".
double not_finite(const std::string& word) {
  for (const double v : {double{NAN}, double{INFINITY}, -double{INFINITY}})
    if (fmt::format("{}", v) == word) return v;
  throw Error("\"" + word + "\" is no number");
}

Input input_of(const json& j) {
  if (j.is_null()) return {};
  if (j == "wire") return {Input::Kind::wire};
  if (j.contains("parameter")) {
    const json& p = j["parameter"];
    return {Input::Kind::parameter,
            empty(Shape(sizes_of(p.at("shape"))), parsed_dtype(p.at("dtype")), {DeviceType::meta})};
  }
  const json &c = j.at("constant"), &values = c.at("values");
  const Shape shape(sizes_of(c.at("shape")));
  const DType t = parsed_dtype(c.at("dtype"));
  if (static_cast<int64_t>(values.size()) != shape.product())
    throw Error(fmt::format("{} values for a constant of size {}", values.size(), to_string(shape)));
  Tensor x = empty(shape, is_floating(t) ? DType::f64 : DType::i64);
  for (size_t i = 0; i < values.size(); ++i)
    if (is_floating(t))
      x.data<double>()[i] = values[i].is_string() ? not_finite(values[i].get<std::string>()) : values[i].get<double>();
    else
      x.data<int64_t>()[i] = values[i].get<int64_t>();
  return {Input::Kind::constant, cast(x, t)};
}

class OnnxOp : public nn::Module {
 public:
  OnnxOp(OnnxOpLayer layer, Device device) : layer_(std::move(layer)), values_(layer_.inputs.size()) {
    for (size_t i = 0; i < values_.size(); ++i) {
      const Input& in = layer_.inputs[i];
      if (in.kind == Input::Kind::parameter) {
        CategoryScope parameters(Category::parameter);
        values_[i] = empty(in.value.size(), in.value.dtype(), device);
        add_parameter(OnnxOpLayer::parameter_name(i), values_[i]);
      } else if (in.kind == Input::Kind::constant) {
        // Whole numbers are sizes and places, which the host reads.
        values_[i] =
            is_floating(in.value.dtype()) && device.type != DeviceType::meta ? to_device(in.value, device) : in.value;
      }
    }
  }
  std::string describe() const override { return fmt::format("OnnxOp({})", layer_.node.op_type); }

 protected:
  using Module::forward;
  Tensor forward(std::span<const Tensor> in) override {
    std::vector<Tensor> all = values_;
    size_t wire = 0;
    for (size_t i = 0; i < all.size(); ++i)
      if (layer_.inputs[i].kind == Input::Kind::wire) {
        if (wire >= in.size() || !in[wire]) throw Error(fmt::format("nothing is wired to input {} of it", wire));
        all[i] = in[wire++];
      }
    std::vector<Tensor> out = run_onnx_node(layer_.node, all, layer_.opset);
    if (layer_.output >= out.size() || !out[layer_.output])
      throw Error(fmt::format("{} has no output {}", layer_.node.op_type, layer_.output));
    return out[layer_.output];
  }
  void reset(uint64_t seed) override {
    for (size_t i = 0; i < values_.size(); ++i)
      if (layer_.inputs[i].kind == Input::Kind::parameter)
        nn::init_normal(values_[i], 0, 0.02, seed, path() + "." + OnnxOpLayer::parameter_name(i));
  }

 private:
  OnnxOpLayer layer_;
  std::vector<Tensor> values_;  ///< by input; undefined where a wire ends
};

const bool registered =
    register_layer({{.type = "OnnxOp",
                     .group = "Imported",
                     .help = "One ONNX operator, of a model that was imported: what has no layer of its own.",
                     .inputs = OnnxOpLayer::kWires,
                     .attrs = {{"node", std::string(R"({"op":"Relu","inputs":["wire"]})"), 0, 0,
                                "the operator and what it is told, as JSON"}},
                     .optional = OnnxOpLayer::kWires - 1},
                    [](const LayerArgs& a) -> std::shared_ptr<nn::Module> {
                      OnnxOpLayer layer = OnnxOpLayer::parse(a.text("node"));
                      if (!may_be_layer(layer.node))
                        throw Error(fmt::format("the operator {} cannot be a layer", layer.node.op_type));
                      return std::make_shared<OnnxOp>(std::move(layer), a.device);
                    }});

}  // namespace

std::string OnnxOpLayer::parameter_name(size_t input) { return fmt::format("input{}", input); }

std::string OnnxOpLayer::text() const {
  json j = {{"op", node.op_type}, {"opset", opset}, {"inputs", json::array()}};
  if (!node.domain.empty()) j["domain"] = node.domain;
  if (node.outputs.size() > 1) j["outputs"] = node.outputs.size();
  if (output) j["output"] = output;
  for (const OnnxAttribute& a : node.attributes) j["attributes"][a.name] = json_of(a.value);
  for (const Input& in : inputs) j["inputs"].push_back(json_of(in));
  return j.dump();
}

OnnxOpLayer OnnxOpLayer::parse(const std::string& text) {
  try {
    const json j = json::parse(text);
    OnnxOpLayer l;
    l.node.op_type = j.at("op").get<std::string>();
    l.node.domain = j.value("domain", "");
    l.opset = j.value("opset", int64_t{17});
    l.output = j.value("output", size_t{0});
    for (const json& in : j.at("inputs")) l.inputs.push_back(input_of(in));
    const size_t outputs = std::max<size_t>(j.value("outputs", size_t{1}), l.output + 1);
    if (l.inputs.size() > 1000 || outputs > 1000) throw Error("more than a thousand inputs or outputs");
    if (j.contains("attributes"))
      for (const auto& [name, value] : j["attributes"].items()) l.node.attributes.push_back({name, value_of(value)});
    for (size_t i = 0; i < l.inputs.size(); ++i)
      l.node.inputs.push_back(l.inputs[i].kind == Input::Kind::none ? "" : parameter_name(i));
    for (size_t i = 0; i < outputs; ++i) l.node.outputs.push_back(fmt::format("output{}", i));
    return l;
  } catch (const std::exception& e) {
    throw Error(std::string("its attribute \"node\" is no operator: ") + e.what());
  }
}

bool may_be_layer(const OnnxNode& node) {
  static constexpr std::string_view kByShapes[] = {"Abs",
                                                   "Acos",
                                                   "Acosh",
                                                   "Add",
                                                   "And",
                                                   "ArgMax",
                                                   "ArgMin",
                                                   "Asin",
                                                   "Asinh",
                                                   "Atan",
                                                   "Atanh",
                                                   "AveragePool",
                                                   "BatchNormalization",
                                                   "Cast",
                                                   "Ceil",
                                                   "Celu",
                                                   "Clip",
                                                   "Concat",
                                                   "Conv",
                                                   "ConvTranspose",
                                                   "Cos",
                                                   "Cosh",
                                                   "CumSum",
                                                   "DepthToSpace",
                                                   "Div",
                                                   "Einsum",
                                                   "Elu",
                                                   "Equal",
                                                   "Erf",
                                                   "Exp",
                                                   "Expand",
                                                   "Flatten",
                                                   "Floor",
                                                   "GRU",
                                                   "Gather",
                                                   "GatherElements",
                                                   "Gelu",
                                                   "Gemm",
                                                   "GlobalAveragePool",
                                                   "GlobalMaxPool",
                                                   "Greater",
                                                   "GreaterOrEqual",
                                                   "GroupNormalization",
                                                   "HardSigmoid",
                                                   "HardSwish",
                                                   "Identity",
                                                   "InstanceNormalization",
                                                   "LRN",
                                                   "LSTM",
                                                   "LayerNormalization",
                                                   "LeakyRelu",
                                                   "Less",
                                                   "LessOrEqual",
                                                   "Log",
                                                   "LogSoftmax",
                                                   "LpNormalization",
                                                   "MatMul",
                                                   "Max",
                                                   "MaxPool",
                                                   "Mean",
                                                   "MeanVarianceNormalization",
                                                   "Min",
                                                   "Mish",
                                                   "Mod",
                                                   "Mul",
                                                   "Neg",
                                                   "Not",
                                                   "Or",
                                                   "PRelu",
                                                   "RMSNormalization",
                                                   "Pad",
                                                   "Pow",
                                                   "Reciprocal",
                                                   "ReduceL1",
                                                   "ReduceL2",
                                                   "ReduceLogSum",
                                                   "ReduceLogSumExp",
                                                   "ReduceMax",
                                                   "ReduceMean",
                                                   "ReduceMin",
                                                   "ReduceProd",
                                                   "ReduceSum",
                                                   "ReduceSumSquare",
                                                   "Relu",
                                                   "Reshape",
                                                   "Round",
                                                   "Selu",
                                                   "Sigmoid",
                                                   "Sign",
                                                   "Shrink",
                                                   "Sin",
                                                   "Sinh",
                                                   "Slice",
                                                   "Softmax",
                                                   "Softplus",
                                                   "Softsign",
                                                   "SpaceToDepth",
                                                   "Split",
                                                   "Sqrt",
                                                   "Squeeze",
                                                   "Sub",
                                                   "Sum",
                                                   "Tan",
                                                   "Tanh",
                                                   "ThresholdedRelu",
                                                   "Tile",
                                                   "Transpose",
                                                   "Trilu",
                                                   "Unsqueeze",
                                                   "Where",
                                                   "Xor"};
  return (node.domain.empty() || node.domain == "ai.onnx") &&
         std::find(std::begin(kByShapes), std::end(kByShapes), node.op_type) != std::end(kByShapes);
}

}  // namespace tenon::formats
