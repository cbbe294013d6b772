#include "engine/formats/onnx/quantized_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "engine/formats/onnx/equal_constants.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

/// The opset that has 4 bits and groups, and the IR version that came with it.
constexpr int64_t kBlockedOpset = 21, kBlockedIr = 10;

/// From opset 18 on the axes of reductions are an input.
void raise_opset(OnnxModel& m) {
  if (m.opset >= kBlockedOpset) return;
  FreeNames names(m.graph);
  for (OnnxNode& n : m.graph.nodes) {
    if (!n.domain.empty() || !n.op_type.starts_with("Reduce") || !n.find("axes")) continue;
    n.inputs.resize(2);
    n.inputs[1] = names.take(n.name + "_axes");
    m.graph.initializers.emplace_back(n.inputs[1], integers(n.integers("axes")));
    std::erase_if(n.attributes, [](const OnnxAttribute& a) { return a.name == "axes"; });
  }
  m.opset = kBlockedOpset;
  m.ir_version = std::max(m.ir_version, kBlockedIr);
}

/// A value, or what a ReLU makes of it where that alone reads it; empty where it is not for the model's nodes alone.
std::string made_behind_relu(const OnnxGraph& graph, const ValueFlow& flow, std::string made) {
  if (const auto& readers = flow.readers(made); readers.size() == 1 && !flow.is_output(made))
    if (const OnnxNode& next = graph.nodes[readers[0]]; next.op_type == "Relu" && next.domain.empty())
      made = next.outputs[0];
  return flow.is_output(made) || flow.is_read_within(made) || flow.readers(made).empty() ? std::string() : made;
}
bool may_be_carried(const OnnxNode& n) {
  if (!n.domain.empty() || n.outputs.size() != 1) return false;
  return (n.op_type == "Add" && n.inputs.size() == 2) || n.op_type == "Concat" || n.op_type == "AveragePool" ||
         n.op_type == "GlobalAveragePool" || n.op_type == "ReduceMean";
}

/// An activation that is quantized where it is made.
struct Quantized {
  QuantGrid grid;
  bool everyone = false;         ///< whoever reads it reads it so; otherwise those of `by` alone
  std::set<size_t> by = {};      ///< nodes
  std::string dequantized = {};  ///< the value of that name, once it is there
};

class Rewriter {
 public:
  Rewriter(const OnnxModel& model, const std::vector<WeightedNode>& nodes, const Quantization& how,
           const std::map<std::string, QuantGrid>& grids)
      : from_(model.graph), how_(how), grids_(grids), flow_(from_), names_(from_), chosen_(from_.nodes.size()) {
    out_ = model;
    out_.graph.nodes.clear();
    for (const WeightedNode& w : nodes) chosen_[w.node] = &w;
  }

  OnnxModel rewrite() {
    if (how_.precision == Precision::int8_static) plan_activations();
    for (const OnnxValue& v : from_.inputs) put_activation(v.name);
    for (size_t i = 0; i < from_.nodes.size(); ++i) {
      OnnxNode n = from_.nodes[i];
      for (std::string& in : n.inputs) in = read_by(i, in);
      if (!chosen_[i])
        put(std::move(n));
      else if (how_.precision == Precision::int8_dynamic && chosen_[i]->integer)
        put_dynamic(n, *chosen_[i]);
      else
        put_with_weights(std::move(n), *chosen_[i]);
      for (const std::string& made : from_.nodes[i].outputs) put_activation(made);
    }
    drop_unread();
    merge_equal_constants(out_.graph);
    if (how_.precision == Precision::int4_weights) raise_opset(out_);
    validate(out_.graph, "the quantized model");
    return std::move(out_);
  }

 private:
  void put(OnnxNode n) { out_.graph.nodes.push_back(std::move(n)); }
  std::string constant(const std::string& wanted, const Tensor& t) {
    std::string name = names_.take(wanted);
    out_.graph.initializers.emplace_back(name, t);
    return name;
  }
  /// A node of one output, which is named after it.
  std::string put(const std::string& type, std::vector<std::string> inputs, const std::string& wanted,
                  std::vector<OnnxAttribute> attributes = {}, std::string output = {}) {
    if (output.empty()) output = names_.take(wanted);
    put({names_.take(wanted + "_" + type), type, "", std::move(inputs), {output}, std::move(attributes)});
    return output;
  }

  /// A quantized node's input is made integers at its root, and told again on the same grid where the node reads it:
  /// what passes numbers on between them changes none.
  void read_on_grid(size_t node, const std::string& read) {
    const std::string root = flow_.root(read);
    size_t reader = node;
    for (std::string at = read; at != root; at = from_.nodes[reader].inputs[0])
      reader = static_cast<size_t>(flow_.maker(at));
    quantized_.try_emplace(root, Quantized{grids_.at(root)}).first->second.by.insert(reader);
    quantized_.try_emplace(read, Quantized{grids_.at(root)}).first->second.by.insert(node);
  }
  void plan_activations() {
    std::set<std::string> whole, read;
    for (size_t i = 0; i < chosen_.size(); ++i) {
      if (!chosen_[i] || !chosen_[i]->integer) continue;
      read_on_grid(i, from_.nodes[i].inputs[0]);
      read.insert(flow_.root(from_.nodes[i].inputs[0]));
      if (const std::string made = quantized_output(from_, flow_, *chosen_[i]); grids_.contains(made)) {
        quantized_.try_emplace(made, Quantized{grids_.at(made)}).first->second.everyone = true;
        whole.insert(made);
      }
    }
    for (const CarriedNode& c : carried_nodes(from_, flow_, whole, read)) {
      const std::vector<std::string>& in = from_.nodes[c.node].inputs;
      // Grids that training found are of some values alone.
      const auto known = [&](const std::string& v) { return quantized_.contains(flow_.root(v)); };
      if (!grids_.contains(c.made) || !std::ranges::all_of(in, known)) continue;
      for (const std::string& v : in) read_on_grid(c.node, v);
      quantized_.try_emplace(c.made, Quantized{grids_.at(c.made)}).first->second.everyone = true;
    }
  }
  std::string read_by(size_t node, const std::string& value) const {
    const auto at = quantized_.find(value);
    if (at == quantized_.end() || !(at->second.everyone || at->second.by.contains(node))) return value;
    return at->second.dequantized;
  }
  void put_activation(const std::string& value) {
    const auto at = quantized_.find(value);
    if (at == quantized_.end()) return;
    const QuantGrid& g = at->second.grid;
    constexpr int32_t kWhole = 255;  // beyond it u8 is cut off anyway
    const std::string read = g.hi == kWhole ? value
                                            : put("Clip",
                                                  {value, constant(value + "_least", scalar(g.value(g.lo))),
                                                   constant(value + "_most", scalar(g.value(g.hi)))},
                                                  value + "_clipped");
    const std::string scale = constant(value + "_scale", scalar(g.scale)),
                      zero = constant(value + "_zero_point", scalar(g.zero, DType::u8));
    const std::string q = put("QuantizeLinear", {read, scale, zero}, value + "_quantized");
    at->second.dequantized = put("DequantizeLinear", {q, scale, zero}, value + "_dequantized");
  }

  /// A weight as the node reads it: its integers behind a DequantizeLinear.
  std::string put_weight(const std::string& name, const WeightedNode& w) {
    if (const auto done = weights_.find(name); done != weights_.end()) return done->second;
    const Tensor& t = *from_.initializer(name);
    const bool grouped = quantized_as(w, how_.precision) == Precision::int4_weights;
    return weights_[name] = grouped ? put_groups(name, t, w) : put_channels(name, t, w);
  }
  std::string put_channels(const std::string& name, const Tensor& t, const WeightedNode& w) {
    const int axis = how_.per_channel ? w.channel_axis : -1;
    const QuantizedWeight q = quantize_channels(t, axis, how_.trained ? how_.trained->weight_bits : 8);
    std::vector<std::string> in{constant(name + "_quantized", q.values), constant(name + "_scale", q.scale)};
    // Integer kernels of runtimes look for a zero point.
    if (how_.precision == Precision::int8_static && w.integer)
      in.push_back(constant(name + "_zero_point", zeros(q.scale.size(), DType::i8)));
    scales_[name] = q.scale;
    std::vector<OnnxAttribute> attributes;
    if (axis >= 0) attributes.push_back({"axis", int64_t{axis}});
    return put("DequantizeLinear", std::move(in), name + "_dequantized", std::move(attributes));
  }
  /// As a matrix: groups lie along the inputs of each output.
  std::string put_groups(const std::string& name, const Tensor& t, const WeightedNode& w) {
    const bool matrix = t.ndim() == 2;
    int64_t rows = 1;
    for (int i = 0; i < w.row_axes; ++i) rows *= t.size(i);
    const int axis = matrix ? 1 - w.channel_axis : 1;
    const QuantizedWeight q =
        quantize_groups(matrix ? t : reshape(contiguous(t), {rows, t.numel() / rows}), axis, how_.group);
    std::vector<std::string> in{constant(name + "_quantized", q.values), constant(name + "_scale", q.scale),
                                constant(name + "_zero_point", q.zero)};
    out_.graph.four_bit.insert(in[0]);
    out_.graph.four_bit.insert(in[2]);
    const std::string flat = put("DequantizeLinear", std::move(in), name + "_dequantized",
                                 {{"axis", int64_t{axis}}, {"block_size", how_.group}});
    if (matrix) return flat;
    const std::string shape =
        constant(name + "_shape", integers(std::vector<int64_t>(t.size().begin(), t.size().end())));
    return put("Reshape", {flat, shape}, name + "_reshaped");
  }

  /// The node itself, on weights (and biases) that were integers.
  void put_with_weights(OnnxNode n, const WeightedNode& w) {
    const OnnxNode& before = from_.nodes[w.node];
    const bool grid = how_.precision == Precision::int8_static && w.integer;
    std::string bias;
    if (grid && before.inputs.size() > 2 && !before.inputs[2].empty() && flow_.is_constant(before.inputs[2]))
      bias = before.inputs[2];
    for (size_t i : w.inputs) n.inputs[i] = put_weight(before.inputs[i], w);
    if (!bias.empty()) n.inputs[2] = put_bias(bias, before.inputs[w.inputs[0]], before.inputs[0], n.inputs[2]);
    put(std::move(n));
  }
  /// In i32 on the scale of the products, where it fits: `otherwise` where it does not.
  std::string put_bias(const std::string& bias, const std::string& weight, const std::string& input,
                       const std::string& otherwise) {
    const Tensor b = contiguous(*from_.initializer(bias)), scale = contiguous(scales_.at(weight));
    if (b.dtype() != DType::f32 || b.ndim() != 1) return otherwise;
    const float s = quantized_.at(input).grid.scale;
    const bool one = scale.numel() == 1 && scale.ndim() == 0;
    if (!one && scale.numel() != b.numel()) return otherwise;
    Tensor q = empty(b.size(), DType::i32), product = empty(scale.size());
    for (int64_t c = 0; c < scale.numel(); ++c) product.data<float>()[c] = scale.data<float>()[c] * s;
    for (int64_t c = 0; c < b.numel(); ++c) {
      const double steps = std::nearbyint(static_cast<double>(b.data<float>()[c]) / product.data<float>()[one ? 0 : c]);
      if (!(std::abs(steps) < 0x1p31)) return otherwise;
      q.data<int32_t>()[c] = static_cast<int32_t>(steps);
    }
    std::vector<OnnxAttribute> attributes;
    if (!one) attributes.push_back({"axis", int64_t{0}});
    return put("DequantizeLinear", {constant(bias + "_quantized", q), constant(bias + "_scale", product)},
               bias + "_dequantized", std::move(attributes));
  }

  /// Names of integers, their scales and their zero point.
  struct Dynamic {
    std::string values, scale, zero;
  };
  const Dynamic& dynamic(const std::string& value) {
    const auto [at, fresh] = dynamic_.try_emplace(value);
    if (!fresh) return at->second;
    at->second = {names_.take(value + "_quantized"), names_.take(value + "_scale"), names_.take(value + "_zero_point")};
    put({names_.take(value + "_DynamicQuantizeLinear"),
         "DynamicQuantizeLinear",
         "",
         {value},
         {at->second.values, at->second.scale, at->second.zero},
         {}});
    return at->second;
  }
  /// A weight whose integers are multiplied; of a matrix product as its right side.
  const Dynamic& integer_weight(const OnnxNode& n, const WeightedNode& w) {
    const std::string& name = n.inputs[1];
    const auto [at, fresh] = integer_weights_.try_emplace(name);
    if (!fresh) return at->second;
    Tensor t = *from_.initializer(name);
    const bool conv = n.op_type == "Conv";
    if (!conv && w.channel_axis == 0) t = contiguous(transpose(t, 0, 1));
    const QuantizedWeight q = quantize_channels(t, !how_.per_channel ? -1 : conv ? w.channel_axis : 1);
    // ONNX Runtime convolves u8 with u8 alone. It multiplies u8 with i8, too, but without VNNI adds pairs of those
    // products in 16 bits, which saturate; of u8 with u8 its sums are exact on every processor.
    const Tensor shifted = cast(add(cast(q.values, DType::i32), 128), DType::u8);
    at->second = {constant(name + "_quantized", shifted),
                  constant(name + "_scale", conv && q.scale.ndim() ? along_channels(q.scale, t.ndim()) : q.scale),
                  constant(name + "_zero_point", scalar(128, DType::u8))};
    return at->second;
  }
  /// Integers times integers, and what they stand for.
  void put_dynamic(const OnnxNode& n, const WeightedNode& w) {
    const bool conv = n.op_type == "Conv";
    const Dynamic &x = dynamic(n.inputs[0]), &weight = integer_weight(n, w);
    std::vector<std::string> in{x.values, weight.values, x.zero, weight.zero};
    const std::string& made = n.outputs[0];
    const std::string sums = put(conv ? "ConvInteger" : "MatMulInteger", std::move(in), made + "_sums",
                                 conv ? n.attributes : std::vector<OnnxAttribute>());
    const std::string numbers = put("Cast", {sums}, made + "_numbers", {{"to", int64_t{1}}});
    const std::string by = put("Mul", {x.scale, weight.scale}, made + "_scale");
    const bool biased = n.inputs.size() > 2 && !n.inputs[2].empty();
    const std::string product = put("Mul", {numbers, by}, made + "_product", {}, biased ? "" : made);
    if (!biased) return;
    std::string bias = n.inputs[2];
    if (conv) {
      const int ndim = from_.initializer(n.inputs[1])->ndim();
      const Tensor* b = flow_.is_constant(bias) ? from_.initializer(bias) : nullptr;
      bias = b ? constant(bias + "_channels", along_channels(*b, ndim))
               : put("Reshape", {bias, constant(bias + "_shape", channels_shape(ndim))}, bias + "_channels");
    }
    put("Add", {product, bias}, made + "_biased", {}, made);
  }
  /// Of a number a channel against [N, C, ...]: as many axes as a weight has, the batch left out.
  static Tensor along_channels(const Tensor& t, int ndim) {
    Shape s = Shape::filled(ndim - 1, 1);
    s[0] = t.numel();
    return reshape(contiguous(t), s);
  }
  static Tensor channels_shape(int ndim) {
    std::vector<int64_t> s(static_cast<size_t>(ndim - 1), 1);
    s[0] = -1;
    return integers(s);
  }

  void drop_unread() {
    const ValueFlow now(out_.graph);
    std::erase_if(out_.graph.initializers, [&](const auto& i) {
      return now.readers(i.first).empty() && !now.is_output(i.first) && !flow_.readers(i.first).empty();
    });
  }

  const OnnxGraph& from_;
  const Quantization& how_;
  const std::map<std::string, QuantGrid>& grids_;
  ValueFlow flow_;
  FreeNames names_;
  std::vector<const WeightedNode*> chosen_;  ///< by node; null: it stays
  std::map<std::string, Quantized> quantized_;
  std::map<std::string, Dynamic> dynamic_, integer_weights_;
  std::map<std::string, std::string> weights_;  ///< dequantized, by name
  std::map<std::string, Tensor> scales_;        ///< of weights
  OnnxModel out_;
};

}  // namespace

std::string quantized_output(const OnnxGraph& graph, const ValueFlow& flow, const WeightedNode& node) {
  return node.op == "Conv" ? made_behind_relu(graph, flow, node.output) : std::string();
}

std::vector<CarriedNode> carried_nodes(const OnnxGraph& graph, const ValueFlow& flow, std::set<std::string> made,
                                       std::set<std::string> read) {
  std::vector<CarriedNode> found, wanted;
  made.insert(read.begin(), read.end());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const OnnxNode& n = graph.nodes[i];
    if (!may_be_carried(n) || !std::ranges::all_of(n.inputs, [&](const std::string& in) {
          return !in.empty() && !flow.is_constant(in) && made.contains(flow.root(in));
        }))
      continue;
    const std::string what = made_behind_relu(graph, flow, n.outputs[0]);
    if (!what.empty() && made.insert(what).second)
      found.push_back({i, what});
    else if (!what.empty() && read.contains(what))
      found.push_back({i, what});
  }
  for (size_t k = found.size(); k-- > 0;) {
    if (!read.contains(found[k].made)) continue;
    for (const std::string& in : graph.nodes[found[k].node].inputs) read.insert(flow.root(in));
    wanted.insert(wanted.begin(), found[k]);
  }
  return wanted;
}

OnnxModel quantized_graph(const OnnxModel& model, const std::vector<WeightedNode>& nodes, const Quantization& how,
                          const std::map<std::string, QuantGrid>& grids) {
  return Rewriter(model, nodes, how, grids).rewrite();
}

}  // namespace tenon::formats
