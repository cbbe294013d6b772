#include "engine/formats/onnx/fuse_nodes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "engine/formats/onnx/fused_nodes.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/onnx/value_flow.h"
#include "engine/op/op.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

const OpDef& op_named(const char* name) {
  const OpDef* op = all_ops().find(name);
  if (!op) throw Error(std::string("there is no op ") + name);
  return *op;
}

/// The nodes of a chain that grows: which values it has made, and what else its nodes read.
class Chain {
 public:
  Chain(const OnnxGraph& g, const ValueFlow& flow, const KnownSizes& sizes, std::string value, int channel,
        int64_t period)
      : g_(g), flow_(flow), sizes_(sizes), channel_(channel), period_(period) {
    if (const auto at = sizes.find(value); at != sizes.end()) meta_ = at->second;
    made_[value] = PointwiseChain::kValue;
    value_ = std::move(value);
  }

  const PointwiseChain& steps() const { return steps_; }
  const std::vector<std::string>& beside() const { return beside_; }
  int channel() const { return repeats_ ? channel_ : -1; }
  bool has_made(const std::string& name) const { return made_.contains(name); }

  /// Whether the node is part of the chain now.
  bool take(const OnnxNode& n) {
    if (n.compiled || n.outputs.size() != 1 || !(n.domain.empty() || n.domain == "ai.onnx")) return false;
    const Chain before = *this;
    if (const auto result = steps_of(n)) {
      made_[n.outputs[0]] = *result;
      return true;
    }
    *this = before;
    return false;
  }

  Chain& operator=(const Chain& o) {
    made_ = o.made_, beside_ = o.beside_, steps_ = o.steps_, channel_ = o.channel_, period_ = o.period_,
    repeats_ = o.repeats_, count_ = o.count_;
    return *this;
  }
  Chain(const Chain&) = default;

 private:
  using Operand = PointwiseChain::Operand;

  const Tensor* constant(const std::string& name) const {
    if (name.empty() || !flow_.is_constant(name)) return nullptr;
    const Tensor* t = g_.initializer(name);
    return t && t->dtype() == DType::f32 ? t : nullptr;
  }
  std::optional<Operand> step(const OpDef& op, const std::vector<Operand>& operands) {
    if (!op.quick || op.arity != static_cast<int>(operands.size()) || operands.size() > 2 ||
        ++count_ > PointwiseChain::kMostSteps)
      return {};
    return steps_.step(op, operands);
  }

  /// Numbers along one axis, `from_last` of the value.
  std::optional<Operand> along(const Tensor& t, int from_last) {
    if (channel_ >= 0 && channel_ != from_last) return {};
    if (from_last != 0 && from_last != 2) return {};
    if (period_ > 0
            ? t.numel() != period_
            : !meta_ || meta_->shape.n <= from_last || meta_->shape[meta_->shape.n - 1 - from_last] != t.numel())
      return {};
    if (from_last == 2 && meta_ && meta_->shape.n != 4) return {};
    channel_ = from_last, period_ = t.numel(), repeats_ = true;
    const Tensor values = contiguous(t);
    return steps_.repeated(values.data<float>(), values.numel());
  }
  std::optional<Operand> of_constant(const Tensor& t) {
    const int most = meta_ ? meta_->shape.n : channel_ == 2 ? 4 : 2;
    if (t.ndim() > most) return {};
    if (t.numel() == 1) return steps_.number(item_of(t));
    int axis = -1;
    for (int i = 0; i < t.ndim(); ++i) {
      if (t.size(i) == 1) continue;
      if (axis >= 0) return {};
      axis = i;
    }
    return axis < 0 ? std::nullopt : along(t, t.ndim() - 1 - axis);
  }
  static float item_of(const Tensor& t) { return *contiguous(t).data<float>(); }

  std::optional<Operand> operand(const std::string& name) {
    if (name.empty()) return {};
    if (const auto at = made_.find(name); at != made_.end()) return at->second;
    if (const Tensor* t = constant(name)) {
      if (meta_ && t->size() == meta_->shape && t->numel() > 1) return beside_of(name);
      return of_constant(*t);
    }
    if (flow_.is_constant(name)) return {};
    const auto size = sizes_.find(name);
    if (size != sizes_.end() && size->second.dtype != DType::f32) return {};
    if (size != sizes_.end() && meta_ && !(size->second.shape == meta_->shape)) return {};
    if ((size != sizes_.end()) != meta_.has_value()) return {};
    return beside_of(name);
  }
  Operand beside_of(const std::string& name) {
    beside_.push_back(name);
    return made_[name] = steps_.beside();
  }

  std::optional<Operand> steps_of(const OnnxNode& n) {
    // Of whole numbers Div has rules of its own; here are none.
    if (const OpDef* op = n.op_type == "Div" ? &op_named("div") : onnx_pointwise(n)) {
      std::vector<Operand> operands;
      for (const std::string& name : n.inputs) {
        const auto o = operand(name);
        if (!o) return {};
        operands.push_back(*o);
      }
      return step(*op, operands);
    }
    if (n.op_type == "Clip") return clip(n);
    if (n.op_type == "HardSigmoid") return hard_sigmoid(n);
    if (n.op_type == "BatchNormalization") return batch_norm(n);
    return {};
  }

  std::optional<Operand> chained(std::optional<Operand> x, const char* op, std::optional<Operand> y) {
    return x && y ? step(op_named(op), {*x, *y}) : std::nullopt;
  }
  std::optional<Operand> clip(const OnnxNode& n) {
    auto x = n.inputs.empty() ? std::nullopt : operand(n.inputs[0]);
    for (size_t i = 1; i < std::min<size_t>(3, n.inputs.size()); ++i) {
      if (n.inputs[i].empty()) continue;
      const Tensor* bound = constant(n.inputs[i]);
      if (!bound || bound->numel() != 1) return {};
      x = chained(x, i == 1 ? "maximum" : "minimum", steps_.number(item_of(*bound)));
    }
    if (n.find("min")) x = chained(x, "maximum", steps_.number(static_cast<float>(n.number("min", 0))));
    if (n.find("max")) x = chained(x, "minimum", steps_.number(static_cast<float>(n.number("max", 0))));
    return x == PointwiseChain::kValue ? std::nullopt : x;
  }
  std::optional<Operand> hard_sigmoid(const OnnxNode& n) {
    auto x = chained(operand(n.inputs.at(0)), "mul", steps_.number(static_cast<float>(n.number("alpha", 0.2))));
    x = chained(x, "add", steps_.number(static_cast<float>(n.number("beta", 0.5))));
    return chained(chained(x, "maximum", steps_.number(0)), "minimum", steps_.number(1));
  }
  /// x * factor + shift a channel.
  std::optional<Operand> batch_norm(const OnnxNode& n) {
    if (n.inputs.size() != 5 || n.integer("training_mode", 0) != 0 || !meta_ || meta_->shape.n != 4) return {};
    std::vector<Tensor> p;
    for (size_t i = 1; i < 5; ++i) {
      const Tensor* t = constant(n.inputs[i]);
      if (!t || t->numel() != meta_->shape[1]) return {};
      p.push_back(contiguous(*t));
    }
    const int64_t channels = meta_->shape[1];
    Tensor factor = empty({channels}), shift = empty({channels});
    for (int64_t c = 0; c < channels; ++c) {
      const double f =
          p[0].data<float>()[c] / std::sqrt(static_cast<double>(p[3].data<float>()[c]) + n.number("epsilon", 1e-5));
      factor.data<float>()[c] = static_cast<float>(f);
      shift.data<float>()[c] = static_cast<float>(p[1].data<float>()[c] - p[2].data<float>()[c] * f);
    }
    return chained(chained(operand(n.inputs[0]), "mul", along(factor, 2)), "add", along(shift, 2));
  }

  const OnnxGraph& g_;
  const ValueFlow& flow_;
  const KnownSizes& sizes_;
  std::string value_;
  std::optional<Meta> meta_;
  std::map<std::string, Operand> made_;
  std::vector<std::string> beside_;
  PointwiseChain steps_;
  int channel_;
  int64_t period_;
  bool repeats_ = false;
  int count_ = 0;
};

class Fusing {
 public:
  Fusing(OnnxModel& model, const KnownSizes& sizes)
      : model_(model), before_(model.graph), flow_(before_), sizes_(sizes), becomes_(before_.nodes.size()) {}

  void run() {
    for (size_t i = 0; i < before_.nodes.size(); ++i) {
      if (gone_.contains(i) || before_.nodes[i].compiled) continue;
      if (!product(i) && !recurrent(i) && !shuffle(i) && !single(i)) pointwise(i);
    }
    std::vector<OnnxNode>& nodes = model_.graph.nodes;
    nodes.clear();
    for (size_t i = 0; i < before_.nodes.size(); ++i)
      if (becomes_[i])
        nodes.push_back(std::move(*becomes_[i]));
      else if (!gone_.contains(i))
        nodes.push_back(before_.nodes[i]);
    drop_weights();
  }

 private:
  const Tensor* constant(const OnnxNode& n, size_t input) const {
    if (input >= n.inputs.size() || n.inputs[input].empty() || !flow_.is_constant(n.inputs[input])) return nullptr;
    const Tensor* t = before_.initializer(n.inputs[input]);
    return t && t->dtype() == DType::f32 && t->numel() > 0 ? t : nullptr;
  }
  static bool has(const OnnxNode& n, size_t input) { return input < n.inputs.size() && !n.inputs[input].empty(); }

  /// Follows the nodes that a value goes through, as far as one value leaves them; what they are, in their order.
  std::vector<size_t> followed(Chain& chain, std::vector<size_t> nodes, const std::string& value) {
    std::set<std::string> inside{value};
    std::vector<size_t> best = nodes;
    for (const size_t i : nodes) inside.insert(before_.nodes[i].outputs[0]);
    Chain at_best = chain;
    for (;;) {
      size_t next = before_.nodes.size();
      for (const std::string& v : inside) {
        if (!starts_inside_ && v == value) continue;
        for (const size_t r : flow_.readers(v))
          if (std::find(nodes.begin(), nodes.end(), r) == nodes.end()) next = std::min(next, r);
      }
      if (next >= before_.nodes.size() || gone_.contains(next) || becomes_[next] || !chain.take(before_.nodes[next]))
        break;
      nodes.push_back(next);
      inside.insert(before_.nodes[next].outputs[0]);
      if (open_values(nodes, inside, value) == std::vector{before_.nodes[next].outputs[0]})
        best = nodes, at_best = chain;
    }
    chain = at_best;
    return best;
  }
  std::vector<std::string> open_values(const std::vector<size_t>& nodes, const std::set<std::string>& inside,
                                       const std::string& value) const {
    std::vector<std::string> open;
    for (const std::string& v : inside) {
      if (!starts_inside_ && v == value) continue;
      bool leaves = flow_.is_output(v) || flow_.is_read_within(v) || flow_.readers(v).empty();
      for (const size_t r : flow_.readers(v))
        leaves = leaves || std::find(nodes.begin(), nodes.end(), r) == nodes.end();
      if (leaves) open.push_back(v);
    }
    return open;
  }

  /// The nodes as one, in the place of the last: all that it reads is there by then.
  std::pair<OnnxNode, FusedNodes> joined(const std::vector<size_t>& nodes, const Chain& chain,
                                         const std::string& reads) {
    FusedNodes f;
    OnnxNode n = before_.nodes[nodes[0]];
    n.attributes.clear();
    n.inputs = {reads};
    n.inputs.insert(n.inputs.end(), chain.beside().begin(), chain.beside().end());
    for (const size_t i : nodes) {
      f.nodes.push_back(before_.nodes[i]);
      if (i != nodes[0]) n.made_of = n.types() + " + " + before_.nodes[i].types();
      for (const std::string& name : before_.nodes[i].inputs)
        if (const Tensor* t = flow_.is_constant(name) ? before_.initializer(name) : nullptr) f.constants[name] = *t;
    }
    n.outputs = before_.nodes[nodes.back()].outputs;
    f.chain = chain.steps();
    f.channel = chain.channel();
    return {std::move(n), std::move(f)};
  }
  void becomes(const std::vector<size_t>& nodes, OnnxNode n) {
    for (const size_t i : nodes) gone_.insert(i);
    becomes_[nodes.back()] = std::move(n);
  }

  bool product(size_t i) {
    const OnnxNode& n = before_.nodes[i];
    if (!n.domain.empty() || n.outputs.size() != 1 || n.inputs.size() < 2 || flow_.is_constant(n.inputs[0]))
      return false;
    const bool up = n.op_type == "ConvTranspose", conv = n.op_type == "Conv" || up, gemm = n.op_type == "Gemm";
    const Tensor *w = constant(n, 1), *b = constant(n, 2);
    if (!(conv || gemm || n.op_type == "MatMul") || !w || (has(n, 2) && !b)) return false;
    if (up ? !upsamples(n, *w) : conv ? !conv_fits(n, *w, b) : w->ndim() != 2) return false;
    const bool turned = gemm && n.integer("transB", 0) != 0;
    const int64_t wide = w->size((conv && !up) || turned ? 0 : 1);
    if (gemm && (n.integer("transA", 0) != 0 || n.number("alpha", 1) != 1 || n.number("beta", 1) != 1)) return false;
    if (b && !(b->numel() == wide && (b->ndim() == 1 || (b->ndim() == 2 && b->size(1) == wide)))) return false;
    Chain chain(before_, flow_, sizes_, n.outputs[0], conv ? 2 : 0, wide);
    starts_inside_ = true;
    const std::vector<size_t> nodes = followed(chain, {i}, n.outputs[0]);
    auto [node, fused] = joined(nodes, chain, n.inputs[0]);
    const Tensor bias = b ? reshape(contiguous(*b), {wide}) : Tensor();
    node.compiled = up     ? fused_upsampling(std::move(fused), *w, bias)
                    : conv ? fused_conv(std::move(fused), *w, bias)
                           : fused_product(std::move(fused), *w, turned, bias);
    becomes(nodes, std::move(node));
    return true;
  }
  static bool upsamples(const OnnxNode& n, const Tensor& w) {
    if (w.ndim() != 4 || n.integer("group", 1) != 1 || n.find("output_shape") ||
        n.text("auto_pad", "NOTSET") != "NOTSET")
      return false;
    auto none_but = [&](const char* name, int64_t value) {
      const auto v = n.integers(name);
      return std::all_of(v.begin(), v.end(), [&](int64_t x) { return x == value; });
    };
    return n.integers("strides") == std::vector<int64_t>{w.size(2), w.size(3)} && none_but("pads", 0) &&
           none_but("output_padding", 0) && none_but("dilations", 1);
  }
  static bool conv_fits(const OnnxNode& n, const Tensor& w, const Tensor* b) {
    const int64_t groups = n.integer("group", 1);
    return w.ndim() == 4 && groups >= 1 && w.size(0) % groups == 0 && (!b || b->ndim() == 1) &&
           n.integers("strides", {1, 1}).size() == 2 && n.integers("dilations", {1, 1}).size() == 2 &&
           std::ranges::min(n.integers("strides", {1, 1})) > 0 && std::ranges::min(n.integers("dilations", {1, 1})) > 0;
  }

  bool recurrent(size_t i) {
    const OnnxNode& n = before_.nodes[i];
    const bool lstm = n.op_type == "LSTM";
    if ((!lstm && n.op_type != "GRU" && n.op_type != "RNN") || !n.domain.empty() || n.inputs.size() < 3 ||
        flow_.is_constant(n.inputs[0]))
      return false;
    constexpr size_t kBias = 3, kLengths = 4, kHidden = 5, kCell = 6, kPeepholes = 7;
    const Tensor *w = constant(n, 1), *r = constant(n, 2), *b = constant(n, kBias);
    if (!w || !r || (has(n, kBias) && !b) || has(n, kLengths) || has(n, kPeepholes)) return false;
    const Tensor bias = b ? *b : Tensor();
    if (!fuses_recurrent(n, *w, *r, bias)) return false;
    FusedNodes f{.nodes = {n}};
    for (const std::string& name : n.inputs)
      if (const Tensor* t = flow_.is_constant(name) ? before_.initializer(name) : nullptr) f.constants[name] = *t;
    OnnxNode node = n;
    node.inputs = {n.inputs[0], has(n, kHidden) ? n.inputs[kHidden] : ""};
    if (lstm) node.inputs.push_back(has(n, kCell) ? n.inputs[kCell] : "");
    node.compiled = fused_recurrent(std::move(f), *w, *r, bias);
    becomes({i}, std::move(node));
    return true;
  }

  /// A norm is one node that pays; of others it takes two.
  void pointwise(size_t i) {
    const OnnxNode& n = before_.nodes[i];
    if (n.outputs.size() != 1 || n.inputs.empty()) return;
    std::string value;
    for (const std::string& name : n.inputs)
      if (value.empty() && !name.empty() && !flow_.is_constant(name)) value = name;
    const auto size = sizes_.find(value);
    if (value.empty() || size == sizes_.end() || size->second.dtype != DType::f32) return;
    Chain chain(before_, flow_, sizes_, value, -1, 0);
    if (!chain.take(n)) return;
    starts_inside_ = false;
    const std::vector<size_t> nodes = followed(chain, {i}, value);
    if (nodes.size() < 2 && n.op_type != "BatchNormalization") return;
    auto [node, fused] = joined(nodes, chain, value);
    node.compiled = fused_pointwise(std::move(fused));
    becomes(nodes, std::move(node));
  }

  /// [n, c, h, w] -> [n, g, c / g, h, w] -> [n, c / g, g, h, w] -> [n, c, h, w]
  bool shuffle(size_t i) {
    const OnnxNode& n = before_.nodes[i];
    const int turn = next_of(i, "Reshape", "Transpose"),
              back = turn < 0 ? -1 : next_of(static_cast<size_t>(turn), "Transpose", "Reshape");
    if (back < 0) return false;
    const OnnxNode &t = before_.nodes[static_cast<size_t>(turn)], &r = before_.nodes[static_cast<size_t>(back)];
    const auto from = sizes_.find(n.inputs[0]), wide = sizes_.find(n.outputs[0]), to = sizes_.find(r.outputs[0]);
    if (from == sizes_.end() || wide == sizes_.end() || to == sizes_.end() || from->second.dtype != DType::f32)
      return false;
    const Shape &a = from->second.shape, &w = wide->second.shape;
    if (a.n != 4 || !(to->second.shape == a) || t.integers("perm") != std::vector<int64_t>{0, 2, 1, 3, 4} || w.n != 5 ||
        w[0] != a[0] || w[1] * w[2] != a[1] || w[3] != a[2] || w[4] != a[3])
      return false;
    const std::vector<size_t> nodes{i, static_cast<size_t>(turn), static_cast<size_t>(back)};
    for (const size_t k : {nodes[0], nodes[2]})
      if (before_.nodes[k].inputs.size() < 2 || !flow_.is_constant(before_.nodes[k].inputs[1])) return false;
    auto [node, fused] = joined(nodes, Chain(before_, flow_, sizes_, n.inputs[0], -1, 0), n.inputs[0]);
    node.compiled = shuffle_of_channels(std::move(fused), w[1]);
    becomes(nodes, std::move(node));
    return true;
  }
  /// The one node that reads what a node of that type makes; -1 where it is none of the other type.
  int next_of(size_t i, const char* type, const char* next) const {
    const OnnxNode& n = before_.nodes[i];
    if (n.op_type != type || !n.domain.empty() || n.outputs.size() != 1 || flow_.is_output(n.outputs[0]) ||
        flow_.is_read_within(n.outputs[0]) || flow_.readers(n.outputs[0]).size() != 1)
      return -1;
    const size_t r = flow_.readers(n.outputs[0])[0];
    const OnnxNode& reader = before_.nodes[r];
    return reader.op_type == next && reader.domain.empty() && reader.inputs[0] == n.outputs[0] && !gone_.contains(r) &&
                   reader.outputs.size() == 1
               ? static_cast<int>(r)
               : -1;
  }

  /// Nodes that become another form of themselves.
  bool single(size_t i) {
    OnnxNode n = before_.nodes[i];
    if (!n.domain.empty() || n.inputs.empty()) return false;
    const bool one = n.outputs.size() == 1 || std::all_of(n.outputs.begin() + 1, n.outputs.end(),
                                                          [](const std::string& o) { return o.empty(); });
    if (!one) return false;
    if (n.op_type == "MaxPool")
      n.compiled = max_pool_of_channels(before_.nodes[i]);
    else if (n.op_type == "AveragePool")
      n.compiled = average_pool_of_channels(before_.nodes[i]);
    else if (n.op_type == "GlobalAveragePool")
      n.compiled = image_means(before_.nodes[i], true);
    else if (n.op_type == "Concat" && n.integer("axis", 0) == 1)
      n.compiled = join_of_channels(before_.nodes[i]);
    else if (n.op_type == "ReduceMean" && reduces_images(n))
      n.compiled = image_means(before_.nodes[i], n.integer("keepdims", 1) != 0), n.inputs.resize(1);
    else if (n.op_type == "LayerNormalization" && normalises_rows(n))
      n.compiled = row_norm(before_.nodes[i], *constant(n, 1), has(n, 2) ? *constant(n, 2) : Tensor()),
      n.inputs.resize(1);
    else
      return false;
    becomes({i}, std::move(n));
    return true;
  }
  bool reduces_images(const OnnxNode& n) const {
    const auto size = sizes_.find(n.inputs[0]);
    return n.inputs.size() == 1 && size != sizes_.end() && size->second.shape.n == 4 &&
           (n.integers("axes") == std::vector<int64_t>{2, 3} || n.integers("axes") == std::vector<int64_t>{-1, -2} ||
            n.integers("axes") == std::vector<int64_t>{-2, -1});
  }
  bool normalises_rows(const OnnxNode& n) const {
    const Tensor *scale = constant(n, 1), *shift = constant(n, 2);
    const auto size = sizes_.find(n.inputs[0]);
    if (!scale || scale->ndim() != 1 || (has(n, 2) && (!shift || !(shift->size() == scale->size())))) return false;
    const int64_t axis = n.integer("axis", -1);
    return axis == -1 || (size != sizes_.end() && axis == size->second.shape.n - 1);
  }

  /// Weights that fused nodes hold themselves.
  void drop_weights() {
    const ValueFlow flow(model_.graph);
    std::set<std::string> inputs;
    for (const OnnxValue& v : model_.graph.inputs) inputs.insert(v.name);
    std::erase_if(model_.graph.initializers, [&](const auto& i) {
      return flow.readers(i.first).empty() && !flow.is_output(i.first) && !inputs.contains(i.first);
    });
  }

  OnnxModel& model_;
  const OnnxGraph before_;
  const ValueFlow flow_;
  const KnownSizes& sizes_;
  std::vector<std::optional<OnnxNode>> becomes_;
  std::set<size_t> gone_;
  bool starts_inside_ = true;  ///< whether the chain's value is made by its first node
};

}  // namespace

void fuse_nodes(OnnxModel& model, const KnownSizes& sizes) { Fusing(model, sizes).run(); }

}  // namespace tenon::formats
