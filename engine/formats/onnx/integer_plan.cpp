#include "engine/formats/onnx/integer_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "engine/formats/onnx/integer_nodes.h"
#include "engine/formats/onnx/value_flow.h"
#include "engine/kernels/int8_conv.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

/// Sums of more products of u8 and i8 could leave 32 bits.
constexpr int64_t kMostProducts = (int64_t{1} << 31) / (255 * 128) - 1;

bool is_weighted(const OnnxNode& n) {
  return n.domain.empty() && (n.op_type == "Conv" || n.op_type == "Gemm" || n.op_type == "MatMul");
}

class IntegerPlanner {
 public:
  explicit IntegerPlanner(const OnnxModel& model) : model_(model), g_(model.graph), flow_(g_) {}

  IntegerPlan plan() {
    IntegerPlan p{.model = model_};
    std::vector<OnnxNode>& made = p.model.graph.nodes;
    made.clear();
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      if (gone_.contains(i)) continue;
      std::optional<OnnxNode> n = integer_layer(i);
      p.integer += n.has_value();
      if (!n && (n = integer_sum_of(i))) ++p.sums;
      if (!n && (n = integer_join_of(i))) ++p.joins;
      if (!n && (n = integer_average_of(i))) ++p.averages;
      if (!n) n = passed_on(i);
      if (!n) n = between(i);
      made.push_back(n ? std::move(*n) : g_.nodes[i]);
    }
    if (p.integer == 0) {
      p.model = model_;
      p.sums = p.joins = p.averages = 0;
      return p;
    }
    drop_unread(p.model.graph);
    return p;
  }

 private:
  struct Integers {
    std::string name;
    U8Grid grid;
  };

  const Tensor* constant(const OnnxNode& n, size_t input) const {
    if (input >= n.inputs.size() || n.inputs[input].empty() || !flow_.is_constant(n.inputs[input])) return nullptr;
    return g_.initializer(n.inputs[input]);
  }
  const OnnxNode* made_by(const std::string& value, const char* type) const {
    const int at = flow_.maker(value);
    if (at < 0) return nullptr;
    const OnnxNode& n = g_.nodes[static_cast<size_t>(at)];
    return n.domain.empty() && n.op_type == type ? &n : nullptr;
  }
  /// One grid for the whole of a u8 tensor.
  std::optional<U8Grid> grid_of(const OnnxNode& n) const {
    const Tensor *scale = constant(n, 1), *zero = constant(n, 2);
    if (!scale || scale->numel() != 1 || scale->dtype() != DType::f32 || !zero || zero->numel() != 1 ||
        zero->dtype() != DType::u8)
      return {};
    const U8Grid g{*scale->data<float>(), *zero->data<uint8_t>()};
    return g.scale > 0 && std::isfinite(g.scale) ? std::optional(g) : std::nullopt;
  }
  /// The integers behind a value that DequantizeLinear makes.
  std::optional<Integers> integers_of(const std::string& value) const {
    const OnnxNode* n = made_by(value, "DequantizeLinear");
    if (!n || flow_.is_constant(n->inputs[0])) return {};
    const auto grid = grid_of(*n);
    return grid ? std::optional(Integers{n->inputs[0], *grid}) : std::nullopt;
  }
  /// The one node that reads a value which nobody else sees; -1: there is none.
  int sole_reader(const std::string& value) const {
    const auto& readers = flow_.readers(value);
    const bool sole = readers.size() == 1 && !flow_.is_output(value) && !flow_.is_read_within(value);
    return sole ? static_cast<int>(readers[0]) : -1;
  }
  int sole_reader(const std::string& value, const char* type) const {
    const int at = sole_reader(value);
    if (at < 0) return -1;
    const OnnxNode& n = g_.nodes[static_cast<size_t>(at)];
    return n.domain.empty() && n.op_type == type && n.inputs[0] == value ? at : -1;
  }

  /// i8 round 0, a scale for all of it or for each slice of `axis`.
  struct Weights {
    Tensor values;
    std::vector<float> scales;
  };
  /// The constant that a DequantizeLinear makes a weight of; null where there is none.
  const Tensor* weight_values(const std::string& value) const {
    const OnnxNode* n = made_by(value, "DequantizeLinear");
    return n ? constant(*n, 0) : nullptr;
  }
  std::optional<Weights> weights_of(const std::string& value, int axis, int axes) const {
    const OnnxNode* n = made_by(value, "DequantizeLinear");
    const Tensor *w = weight_values(value), *scale = n ? constant(*n, 1) : nullptr;
    if (!w || !scale || w->dtype() != DType::i8 || scale->dtype() != DType::f32 || w->ndim() != axes ||
        n->integer("block_size", 0) != 0)
      return {};
    if (n->inputs.size() > 2 && !n->inputs[2].empty()) {
      const Tensor* zero = constant(*n, 2);
      if (!zero || zero->dtype() != DType::i8) return {};
      const Tensor z = contiguous(*zero);
      if (std::any_of(z.data<int8_t>(), z.data<int8_t>() + z.numel(), [](int8_t v) { return v != 0; })) return {};
    }
    const int64_t channels = w->size(axis);
    const bool one = scale->numel() == 1;
    if (!one && (scale->numel() != channels || wrapped_axis(*n, axes) != axis)) return {};
    const Tensor s = contiguous(*scale);
    Weights out{*w, {}};
    for (int64_t c = 0; c < channels; ++c) out.scales.push_back(s.data<float>()[one ? 0 : c]);
    if (std::any_of(out.scales.begin(), out.scales.end(), [](float v) { return !(v > 0 && std::isfinite(v)); }))
      return {};
    return out;
  }
  static int64_t wrapped_axis(const OnnxNode& n, int axes) {
    const int64_t axis = n.integer("axis", 1);
    return axis < 0 ? axis + axes : axis;
  }

  /// Input 2 of a node, one number a channel, in sums; nothing where it is no constant of that kind.
  std::optional<std::vector<int32_t>> bias_of(const OnnxNode& n, float from, const std::vector<float>& scales) const {
    std::vector<int32_t> sums(scales.size());
    if (n.inputs.size() < 3 || n.inputs[2].empty()) return sums;
    const OnnxNode* dq = made_by(n.inputs[2], "DequantizeLinear");
    const Tensor *plain = constant(n, 2), *q = dq ? constant(*dq, 0) : nullptr, *by = dq ? constant(*dq, 1) : nullptr;
    if (plain ? plain->dtype() != DType::f32
              : !q || !by || q->dtype() != DType::i32 || by->dtype() != DType::f32 || dq->inputs.size() > 2)
      return {};
    const Tensor values = contiguous(plain ? *plain : *q), step = by ? contiguous(*by) : Tensor();
    const auto count = static_cast<int64_t>(scales.size());
    if (values.ndim() != 1 || values.numel() != count || (!plain && step.numel() != 1 && step.numel() != count))
      return {};
    for (int64_t c = 0; c < count; ++c) {
      const double value =
          plain ? values.data<float>()[c]
                : static_cast<double>(values.data<int32_t>()[c]) * step.data<float>()[step.numel() == 1 ? 0 : c];
      const double sum = std::nearbyint(value / (static_cast<double>(from) * scales[static_cast<size_t>(c)]));
      constexpr double kMostBias = 0x1p30;  // what the zero point adds is below as much
      if (!(std::abs(sum) < kMostBias)) return {};
      sums[static_cast<size_t>(c)] = static_cast<int32_t>(sum);
    }
    return sums;
  }

  /// Of a node with weights, what it multiplies; nothing where that is not u8 by i8.
  std::optional<IntegerLayer> layer_of(const OnnxNode& n) const {
    const bool conv = n.op_type == "Conv", turned = n.op_type == "Gemm" && n.integer("transB", 0) != 0;
    const int axis = conv || turned ? 0 : 1;
    const auto x = n.inputs.size() > 1 ? integers_of(n.inputs[0]) : std::nullopt;
    const Tensor* values = conv && x ? weight_values(n.inputs[1]) : nullptr;
    const int axes = !conv ? 2 : values && values->ndim() == 3 ? 3 : 4;  // of a line, or of a picture
    const auto w = x ? weights_of(n.inputs[1], axis, axes) : std::nullopt;
    if (!w || w->values.numel() == 0 || w->values.numel() / w->values.size(axis) > kMostProducts / 2) return {};
    if (n.op_type == "Gemm" && (n.integer("transA", 0) != 0 || n.number("alpha", 1) != 1 || n.number("beta", 1) != 1))
      return {};
    if (conv) {
      const auto pads = n.integers("pads");
      const auto groups = n.integer("group", 1);
      if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p < 0; }) || groups < 1 ||
          w->values.size(0) % groups != 0)
        return {};
      const auto spatial = static_cast<size_t>(axes - 2);
      for (const char* moves : {"strides", "dilations"})
        if (n.integers(moves, std::vector<int64_t>(spatial, 1)).size() != spatial) return {};
    }
    const auto bias = bias_of(n, x->grid.scale, w->scales);
    if (!bias) return {};
    return IntegerLayer{axis == 0 ? w->values : transpose(w->values, 0, 1), w->scales, *bias, x->grid, {}, false};
  }

  std::optional<OnnxNode> integer_layer(size_t at) {
    if (!is_weighted(g_.nodes[at])) return {};
    OnnxNode n = g_.nodes[at];
    std::optional<IntegerLayer> layer = layer_of(n);
    if (!layer) return {};
    if (const int relu = sole_reader(n.outputs[0], "Relu"); relu >= 0) take_in(n, relu), layer->relu = true;
    if (const int q = sole_reader(n.outputs[0], "QuantizeLinear"); q >= 0)
      if ((layer->to = grid_of(g_.nodes[static_cast<size_t>(q)]))) take_in(n, q);
    n.inputs = {integers_of(n.inputs[0])->name};
    n.compiled = n.op_type == "Conv" ? integer_conv(n, *layer) : integer_product(*layer);
    return n;
  }
  /// A sum of two values of grids, behind a ReLU or not, that goes to a grid.
  std::optional<OnnxNode> integer_sum_of(size_t at) {
    OnnxNode n = g_.nodes[at];
    if (!n.domain.empty() || n.op_type != "Add" || n.inputs.size() != 2) return {};
    const auto a = integers_of(n.inputs[0]), b = integers_of(n.inputs[1]);
    if (!a || !b) return {};
    const int relu = sole_reader(n.outputs[0], "Relu");
    const std::string& sum = relu < 0 ? n.outputs[0] : g_.nodes[static_cast<size_t>(relu)].outputs[0];
    const int q = sole_reader(sum, "QuantizeLinear");
    const auto to = q < 0 ? std::nullopt : grid_of(g_.nodes[static_cast<size_t>(q)]);
    if (!to) return {};
    if (relu >= 0) take_in(n, relu);
    take_in(n, q);
    n.inputs = {a->name, b->name};
    n.compiled = integer_sum({a->grid, b->grid, *to, relu >= 0});
    return n;
  }
  /// The grid that a value goes to, and nowhere else; `by` is the node that quantizes it.
  std::optional<U8Grid> rounded_to(const std::string& value, int& by) const {
    by = sole_reader(value, "QuantizeLinear");
    return by < 0 ? std::nullopt : grid_of(g_.nodes[static_cast<size_t>(by)]);
  }
  std::optional<OnnxNode> integer_join_of(size_t at) {
    OnnxNode n = g_.nodes[at];
    if (!n.domain.empty() || n.op_type != "Concat" || n.inputs.empty()) return {};
    std::vector<U8Grid> from;
    for (std::string& in : n.inputs) {
      const auto x = integers_of(in);
      if (!x) return {};
      from.push_back(x->grid);
      in = x->name;
    }
    int q = -1;
    const auto to = rounded_to(n.outputs[0], q);
    if (!to) return {};
    take_in(n, q);
    n.compiled = integer_join(from, *to);
    return n;
  }
  /// What an average is of, where all of its windows, or the axes behind the channels of a line or a picture, are.
  std::optional<AveragedOver> averaged_over(const OnnxNode& n, int& axes) const {
    if (!n.domain.empty()) return {};
    if (n.op_type == "AveragePool")
      return pools_u8(n) && !n.integer("ceil_mode", 0) ? std::optional(AveragedOver::windows) : std::nullopt;
    // The grid is of a value that a convolution made, or what follows one: its axes are as many as that one's.
    axes = spatial_axes(n.inputs[0]);
    if (axes < 1 || axes > 2) return {};
    if (n.op_type == "GlobalAveragePool") return AveragedOver::all;
    const auto of = n.integers("axes");
    const bool all = axes == 1 ? of == std::vector<int64_t>{2} : of == std::vector<int64_t>{2, 3};
    if (n.op_type != "ReduceMean" || n.inputs.size() > 1 || !all) return {};
    return n.integer("keepdims", 1) ? AveragedOver::all : AveragedOver::all_and_drops_them;
  }
  /// Axes behind the channels of a value that comes from a convolution; 0 where that is not seen.
  int spatial_axes(const std::string& value) const {
    std::string at = value;
    for (int by = flow_.maker(at); by >= 0; by = flow_.maker(at)) {
      const OnnxNode& n = g_.nodes[static_cast<size_t>(by)];
      if (n.domain.empty() && n.op_type == "Conv") {
        const Tensor* w = n.inputs.size() > 1 ? weight_values(n.inputs[1]) : nullptr;
        return w ? w->ndim() - 2 : 0;
      }
      const bool keeps = n.domain.empty() &&
                         (n.op_type == "Relu" || n.op_type == "QuantizeLinear" || n.op_type == "Add" ||
                          n.op_type == "DequantizeLinear" || n.op_type == "MaxPool" || n.op_type == "AveragePool" ||
                          n.op_type == "Concat" || n.op_type == "Identity" || n.op_type == "Clip");
      if (!keeps || n.inputs.empty()) return 0;
      at = n.inputs[0];
    }
    return 0;
  }
  std::optional<OnnxNode> integer_average_of(size_t at) {
    OnnxNode n = g_.nodes[at];
    if (n.inputs.empty()) return {};
    const auto x = integers_of(n.inputs[0]);
    int axes = 0, q = -1;
    const auto over = x ? averaged_over(n, axes) : std::nullopt;
    const auto to = over ? rounded_to(n.outputs[0], q) : std::nullopt;
    if (!to) return {};
    take_in(n, q);
    n.inputs = {x->name};
    n.compiled = integer_average(x->grid, *to, *over, axes);
    return n;
  }
  /// A node behind it becomes part of it.
  void take_in(OnnxNode& n, int behind) {
    gone_.insert(static_cast<size_t>(behind));
    const OnnxNode& b = g_.nodes[static_cast<size_t>(behind)];
    n.made_of = n.types() + " + " + b.types();
    n.outputs = {b.outputs[0]};
  }

  /// Whether a node can pass on u8 as it does numbers.
  bool passes_u8(size_t at) const {
    const OnnxNode& n = g_.nodes[at];
    if (!flow_.passes_on(at)) return false;
    return n.op_type != "MaxPool" || pools_u8(n);
  }
  /// Over a line, a picture, or a volume's slices one by one.
  static bool pools_u8(const OnnxNode& n) {
    const auto pads = n.integers("pads"), kernel = n.integers("kernel_shape");
    if (kernel.empty() || kernel.size() > 3 || std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p < 0; }))
      return false;
    if (kernel.size() < 3) return true;
    const auto stride = n.integers("strides", {1, 1, 1});
    const bool unpadded = pads.empty() || (pads.size() == 6 && pads[0] == 0 && pads[3] == 0);
    return kernel[0] == 1 && stride.at(0) == 1 && unpadded && n.text("auto_pad", "NOTSET") == "NOTSET";
  }
  /// Whether a value goes, through nodes that pass it on, to nothing but a QuantizeLinear of that grid.
  bool ends_in(const U8Grid& grid, const std::string& value) const {
    const int next = sole_reader(value);
    if (next < 0) return false;
    const OnnxNode& n = g_.nodes[static_cast<size_t>(next)];
    if (n.inputs[0] != value) return false;
    if (n.domain.empty() && n.op_type == "QuantizeLinear") return grid_of(n) == grid;
    return passes_u8(static_cast<size_t>(next)) && ends_in(grid, n.outputs[0]);
  }
  /// What passes numbers on from a grid to the same grid passes on the integers.
  std::optional<OnnxNode> passed_on(size_t at) {
    OnnxNode n = g_.nodes[at];
    if (!passes_u8(at)) return {};
    auto x = integers_of(n.inputs[0]);
    if (const auto before = carried_.find(n.inputs[0]); before != carried_.end()) x = {n.inputs[0], before->second};
    if (!x || !ends_in(x->grid, n.outputs[0])) return {};
    if (n.op_type == "MaxPool") n.compiled = integer_max_pool();
    n.inputs[0] = x->name;
    if (const int q = sole_reader(n.outputs[0], "QuantizeLinear"); q >= 0)
      take_in(n, q);
    else
      carried_.emplace(n.outputs[0], x->grid);
    return n;
  }

  /// Into and out of integers, in one go.
  std::optional<OnnxNode> between(size_t at) const {
    OnnxNode n = g_.nodes[at];
    const bool to = n.op_type == "QuantizeLinear", from = n.op_type == "DequantizeLinear";
    if (!n.domain.empty() || !(to || from) || flow_.is_constant(n.inputs[0])) return {};
    const auto grid = grid_of(n);
    if (!grid) return {};
    n.compiled = to ? to_u8(*grid) : from_u8(*grid);
    n.inputs.resize(1);
    return n;
  }

  /// What only dequantized for a node that reads the integers now, and constants that nobody reads.
  static void drop_unread(OnnxGraph& g) {
    for (bool any = true; any;) {
      const ValueFlow flow(g);
      any = std::erase_if(g.nodes, [&](const OnnxNode& n) {
              return n.op_type == "DequantizeLinear" && flow.readers(n.outputs[0]).empty() &&
                     !flow.is_output(n.outputs[0]);
            }) > 0;
    }
    const ValueFlow flow(g);
    std::unordered_set<std::string> inputs;
    for (const OnnxValue& v : g.inputs) inputs.insert(v.name);
    std::erase_if(g.initializers, [&](const auto& i) {
      return flow.readers(i.first).empty() && !flow.is_output(i.first) && !inputs.contains(i.first);
    });
  }

  const OnnxModel& model_;
  const OnnxGraph& g_;
  ValueFlow flow_;
  std::set<size_t> gone_;                  ///< nodes that became part of others
  std::map<std::string, U8Grid> carried_;  ///< values that were f32 and are u8 now
};

}  // namespace

std::string IntegerPlan::text() const {
  if (integer) {
    std::string others;
    for (const auto& [count, what] : {std::pair(sums, "sum"), {joins, "join"}, {averages, "average"}})
      if (count)
        others += fmt::format("{}{} {}{}", others.empty() ? " and " : ", ", count, what, count == 1 ? "" : "s");
    return fmt::format("integer nodes: {} of {}{}", integer, weighted, others);
  }
  return fmt::format("integer nodes: none of {}, {}", weighted, why);
}

IntegerPlan integer_plan(const OnnxModel& model) {
  const auto weighted = std::count_if(model.graph.nodes.begin(), model.graph.nodes.end(), is_weighted);
  IntegerPlan p;
  if (kernels::has_exact_int8())
    p = IntegerPlanner(model).plan();
  else
    p.model = model;
  p.weighted = weighted;
  if (!kernels::has_exact_int8())
    p.why = "the processor has no VNNI";
  else if (weighted == 0)
    p.why = "the model has neither convolutions nor matrix products";
  else if (p.integer == 0)
    p.why = "none reads u8 activations and i8 weights through DequantizeLinear";
  return p;
}

}  // namespace tenon::formats
