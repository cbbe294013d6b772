#include "engine/formats/torchscript/quantized.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "engine/formats/onnx/value_flow.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

constexpr int64_t kFloat = 1;  ///< of ONNX's types
constexpr std::array<std::string_view, 6> kOfIntegers = {"DynamicQuantizeLinear", "MatMulInteger", "ConvInteger",
                                                         "QLinearConv",           "QLinearMatMul", "QGemm"};

class PlainWriter {
 public:
  explicit PlainWriter(const OnnxModel& model) : from_(model.graph), names_(from_), out_(model) {
    out_.graph.nodes.clear();
    out_.graph.four_bit.clear();
  }

  OnnxModel write() {
    for (const OnnxNode& n : from_.nodes) {
      const bool known = n.domain.empty();
      if (known && std::ranges::find(kOfIntegers, n.op_type) != kOfIntegers.end())
        throw OnnxUnsupported(fmt::format("{} '{}' has no operator of PyTorch", n.op_type, n.name),
                              "int8-static, int8-weights and int4-weights can be written.");
      if (known && n.op_type == "QuantizeLinear")
        quantize(n);
      else if (known && n.op_type == "DequantizeLinear")
        dequantize(n);
      else
        out_.graph.nodes.push_back(n);
    }
    const ValueFlow flow(out_.graph);
    std::erase_if(out_.graph.initializers,
                  [&](const auto& i) { return flow.readers(i.first).empty() && !flow.is_output(i.first); });
    validate(out_.graph, "the quantized model");
    return std::move(out_);
  }

 private:
  std::string constant(const std::string& wanted, const Tensor& t) {
    std::string name = names_.take(wanted);
    out_.graph.initializers.emplace_back(name, t);
    return name;
  }
  std::string whole(const std::string& wanted, const std::vector<int64_t>& values) {
    const Tensor t = empty({static_cast<int64_t>(values.size())}, DType::i64);
    std::copy(values.begin(), values.end(), t.data<int64_t>());
    return constant(wanted, t);
  }
  std::string put(const std::string& type, std::vector<std::string> inputs, const std::string& stem,
                  std::vector<OnnxAttribute> attributes = {}, std::string output = {}) {
    if (output.empty()) output = names_.take(stem + "_" + type);
    out_.graph.nodes.push_back(
        {names_.take(stem + "_node"), type, "", std::move(inputs), {output}, std::move(attributes)});
    return output;
  }
  const Tensor& known(const OnnxNode& n, size_t input) const {
    const Tensor* t = input < n.inputs.size() ? from_.initializer(n.inputs[input]) : nullptr;
    if (!t) throw OnnxUnsupported(fmt::format("{} '{}': its input {} is no constant", n.op_type, n.name, input));
    return *t;
  }
  /// The zero point in f32; undefined where it is 0.
  Tensor zero_of(const OnnxNode& n) const {
    if (n.inputs.size() < 3 || n.inputs[2].empty()) return {};
    const Tensor z = contiguous(cast(known(n, 2), DType::f32));
    return std::any_of(z.data<float>(), z.data<float>() + z.numel(), [](float v) { return v != 0; }) ? z : Tensor();
  }
  /// One number, or one for each slice of an axis, against a tensor of so many axes.
  static Tensor along(const Tensor& t, const OnnxNode& n, int axes) {
    if (t.numel() == 1) return reshape(contiguous(t), {});
    const int64_t axis = n.integer("axis", 1);
    Shape s = Shape::filled(static_cast<int>(axes - (axis < 0 ? axis + axes : axis)), 1);
    s[0] = t.numel();
    return reshape(contiguous(t), s);
  }

  /// On the grid, in f32.
  void quantize(const OnnxNode& n) {
    const std::string& made = n.outputs[0];
    const Tensor& scale = known(n, 1);
    const bool is_signed = n.inputs.size() > 2 && !n.inputs[2].empty() && known(n, 2).dtype() == DType::i8;
    if (scale.numel() != 1 || (n.inputs.size() > 2 && itemsize(known(n, 2).dtype()) != 1))
      throw OnnxUnsupported(fmt::format("{} '{}': a grid a channel, or of more than 8 bits", n.op_type, n.name));
    std::string at = put("Div", {n.inputs[0], constant(made + "_step", along(scale, n, 1))}, made);
    at = put("Round", {at}, made);
    if (const Tensor z = zero_of(n)) at = put("Add", {at, constant(made + "_zero", along(z, n, 1))}, made);
    put("Clip",
        {at, constant(made + "_least", scalar(is_signed ? -128 : 0)),
         constant(made + "_most", scalar(is_signed ? 127 : 255))},
        made, {}, made);
    rounded_.insert(made);
  }

  void dequantize(const OnnxNode& n) {
    const std::string& made = n.outputs[0];
    if (n.integer("block_size", 0)) return dequantize_groups(n);
    const Tensor *values = from_.initializer(n.inputs[0]), zero = zero_of(n);
    const int axes = values ? values->ndim() : 1;
    std::string at = n.inputs[0];
    if (!rounded_.contains(at)) at = put("Cast", {at}, made, {{"to", kFloat}});
    if (zero) at = put("Sub", {at, constant(made + "_zero", along(zero, n, axes))}, made);
    put("Mul", {at, constant(made + "_step", along(known(n, 1), n, axes))}, made, {}, made);
  }

  /// Weights of a scale a group, as rows of whole groups.
  void dequantize_groups(const OnnxNode& n) {
    const std::string& made = n.outputs[0];
    Tensor values = known(n, 0), scale = known(n, 1), zero = zero_of(n);
    const int64_t axis = n.integer("axis", 1);
    if (values.ndim() != 2) throw OnnxUnsupported(fmt::format("{} '{}': groups of no matrix", n.op_type, n.name));
    const bool turned = axis == 0 || axis == -2;
    if (!zero) zero = zeros(scale.size());
    if (turned) values = transpose(values, 0, 1), scale = transpose(scale, 0, 1), zero = transpose(zero, 0, 1);
    const int64_t rows = values.size(0), length = values.size(1), groups = scale.size(1);
    const int64_t group =
        groups == 1 ? length + length % 2 : n.integer("block_size", 0);  // short rows are not filled up
    const bool four = from_.four_bit.contains(n.inputs[0]) && group % 2 == 0;
    const int64_t shift = four && values.dtype() == DType::i8 ? 8 : 0;  // what is stored has no sign
    Tensor whole_groups = zeros({rows, groups * group}, values.dtype());
    copy_(narrow(whole_groups, 1, 0, length), values);
    std::string at = four ? unpacked(made, whole_groups, shift, {rows, groups, group})
                          : put("Cast", {constant(made + "_values", reshape(whole_groups, {rows, groups, group}))},
                                made, {{"to", kFloat}});
    const Shape each{rows, groups, 1};
    const Tensor bytes =
        cast(reshape(contiguous(add(zero, static_cast<double>(shift))), each), four ? DType::u8 : values.dtype());
    at = put("Sub", {at, put("Cast", {constant(made + "_zero", bytes)}, made, {{"to", kFloat}})}, made);
    at = put("Mul", {at, constant(made + "_step", reshape(contiguous(scale), each))}, made);
    const bool cut = groups * group != length;
    at = put("Reshape", {at, whole(made + "_rows", {rows, groups * group})}, made, {}, cut || turned ? "" : made);
    if (cut)
      at = put("Slice", {at, whole(made + "_from", {0}), whole(made + "_to", {length}), whole(made + "_axis", {1})},
               made, {}, turned ? "" : made);
    if (turned) put("Transpose", {at}, made, {{"perm", std::vector<int64_t>{1, 0}}}, made);
  }
  /// Two values a byte on disk and in memory, told apart in f32: the upper one is how often 16 goes into the byte.
  std::string unpacked(const std::string& made, const Tensor& values, int64_t shift, const std::vector<int64_t>& to) {
    const Tensor v = contiguous(cast(values, DType::i32));
    const Tensor bytes = empty({to[0], to[1], to[2] / 2, 1}, DType::u8);
    for (int64_t i = 0; i < bytes.numel(); ++i) {
      const int64_t low = v.data<int32_t>()[2 * i] + shift, high = v.data<int32_t>()[2 * i + 1] + shift;
      bytes.data<uint8_t>()[i] = static_cast<uint8_t>((low & 15) | (high & 15) << 4);
    }
    const std::string both = put("Cast", {constant(made + "_packed", bytes)}, made, {{"to", kFloat}});
    const std::string sixteen = constant(made + "_sixteen", scalar(16)),
                      part = constant(made + "_sixteenth", scalar(1.0 / 16));
    const std::string high = put("Floor", {put("Mul", {both, part}, made)}, made);
    const std::string low = put("Sub", {both, put("Mul", {high, sixteen}, made)}, made);
    const std::string beside = put("Concat", {low, high}, made, {{"axis", int64_t{3}}});
    return put("Reshape", {beside, whole(made + "_groups", to)}, made);
  }

  const OnnxGraph& from_;
  FreeNames names_;
  OnnxModel out_;
  std::set<std::string> rounded_;  ///< values that are on a grid in f32
};

}  // namespace

OnnxModel in_plain_operators(const OnnxModel& quantized) { return PlainWriter(quantized).write(); }

}  // namespace tenon::formats
