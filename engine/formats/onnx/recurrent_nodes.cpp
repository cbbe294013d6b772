#include "engine/formats/onnx/recurrent_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/state.h"
#include "engine/formats/onnx/gate_order.h"
#include "engine/kernels/rnn.h"
#include "engine/ops/create.h"
#include "engine/ops/join.h"
#include "engine/ops/view.h"
#include "engine/spec/attr.h"

namespace tenon::formats {
namespace {

using kernels::Cell;

/// Inputs of rnn_sequence.
enum SequenceInput { kOfGates, kOfHidden, kOfCells, kOfWeight, kOfBias, kOfLengths };

int64_t attr_of(const Graph::Node& n, const std::string& name) {
  for (const Attr& a : n.op->attrs.values(n.attrs.get()))
    if (a.name == name) {
      if (const bool* flag = std::get_if<bool>(&a.value)) return *flag;
      return std::get<int64_t>(a.value);
    }
  return -1;
}
bool is_op(const Graph::Node* n, const char* name) { return n && n->op->info.name == std::string_view(name); }
/// Whether it has its input's elements in their order.
bool keeps_order(const Graph::Node* n) {
  return is_op(n, "view") || is_op(n, "copy") || is_op(n, "squeeze") || is_op(n, "unsqueeze");
}

/// One rnn_sequence, and the product that makes its gates.
struct RecurrentWay {
  size_t node;
  Cell cell;
  bool reverse;
  int x;          ///< [steps, batch, features], or (one_step) [batch, features]
  bool one_step;  ///< the only one
  std::string weight_name;
  Tensor w, r, w_bias, r_bias;  ///< as the layers have them; a bias may be undefined
};

class RecurrentFinder {
 public:
  explicit RecurrentFinder(const Graph& g) : g_(g), readers_(g.values.size()) {
    for (size_t k = 0; k < g.nodes.size(); ++k)
      for (int v : g.nodes[k].inputs)
        if (v >= 0) readers_[static_cast<size_t>(v)].push_back(k);
  }

  std::vector<RecurrentNodes> all() const {
    std::vector<RecurrentWay> found;
    for (size_t k = 0; k < g_.nodes.size(); ++k)
      if (auto d = direction(k)) found.push_back(std::move(*d));
    std::vector<RecurrentNodes> layers;
    std::vector<bool> done(found.size());
    for (size_t i = 0; i < found.size(); ++i) {
      if (done[i]) continue;
      std::vector<const RecurrentWay*> ways = {&found[i]};
      for (size_t k = i + 1; k < found.size() && ways.size() == 1; ++k)
        if (!done[k] && other_way(found[i], found[k])) {
          ways.push_back(&found[k]);
          done[k] = true;
        }
      layers.push_back(written(ways));
    }
    return layers;
  }

 private:
  const Graph::Value& value(int v) const { return g_.values[static_cast<size_t>(v)]; }
  const Shape& shape(int v) const { return value(v).meta.shape; }
  const Graph::Node* maker(int v) const {
    const int at = value(v).producer;
    return at < 0 ? nullptr : &g_.nodes[static_cast<size_t>(at)];
  }
  bool is_output(int v) const { return std::find(g_.outputs.begin(), g_.outputs.end(), v) != g_.outputs.end(); }
  bool is_read(int v) const { return v >= 0 && (is_output(v) || !readers_[static_cast<size_t>(v)].empty()); }

  /// A value that depends on constants alone; undefined where it does not.
  Tensor constant(int v) const {
    if (v < 0) return {};
    if (value(v).constant) return value(v).constant;
    const Graph::Node* n = maker(v);
    if (!n || !n->writes.empty() || n->inputs.empty()) return {};
    std::vector<Tensor> in, out(static_cast<size_t>(n->op->info.outputs));
    for (int i : n->inputs) {
      in.push_back(constant(i));
      if (i >= 0 && !in.back()) return {};
    }
    run_node(*n, in, out);
    return out[static_cast<size_t>(std::find(n->outputs.begin(), n->outputs.end(), v) - n->outputs.begin())];
  }

  /// The value behind a product's rows that has steps and batch in axes of their own; -1 where there is none.
  int sequence_behind(int rows, const Shape& wanted) const {
    int at = rows;
    for (const Graph::Node* n = maker(at); !(shape(at) == wanted) && keeps_order(n); n = maker(at)) at = n->inputs[0];
    if (!(shape(at) == wanted)) return -1;
    for (const Graph::Node* n = maker(at); is_op(n, "copy"); n = maker(at)) at = n->inputs[0];
    return at;
  }

  std::optional<RecurrentWay> direction(size_t k) const {
    const Graph::Node& n = g_.nodes[k];
    if (!is_op(&n, "rnn_sequence") || is_read(n.outputs[1]) || is_read(n.outputs[2])) return {};
    const Graph::Node* product = maker(n.inputs[kOfGates]);
    while (keeps_order(product)) product = maker(product->inputs[0]);
    if (!is_op(product, "linear")) return {};
    RecurrentWay d{.node = k,
                   .cell = static_cast<Cell>(attr_of(n, "cell")),
                   .reverse = attr_of(n, "reverse") != 0,
                   .x = -1,
                   .one_step = false,
                   .weight_name = value(product->inputs[1]).name,
                   .w = constant(product->inputs[1]),
                   .r = constant(n.inputs[kOfWeight]),
                   .w_bias = constant(product->inputs[2]),
                   .r_bias = constant(n.inputs[kOfBias])};
    if (!d.w || !d.r || (product->inputs[2] >= 0 && !d.w_bias) || (n.inputs[kOfBias] >= 0 && !d.r_bias)) return {};
    const Shape &gates = shape(n.inputs[kOfGates]), &rows = shape(product->inputs[0]);
    d.x = sequence_behind(product->inputs[0], {gates[0], gates[1], d.w.size(1)});
    if (d.x < 0 && gates[0] == 1 && rows == Shape{gates[1], d.w.size(1)}) {
      d.x = product->inputs[0];
      d.one_step = true;
    }
    return d.x < 0 ? std::nullopt : std::optional(std::move(d));
  }

  /// Whether two directions are one layer's.
  bool other_way(const RecurrentWay& a, const RecurrentWay& b) const {
    const std::vector<int>&one = g_.nodes[a.node].inputs, &other = g_.nodes[b.node].inputs;
    return !a.reverse && b.reverse && a.x == b.x && a.one_step == b.one_step && a.cell == b.cell &&
           one[kOfLengths] == other[kOfLengths] && a.r.size() == b.r.size() && a.w.size() == b.w.size() &&
           a.w.dtype() == b.w.dtype() && (one[kOfHidden] < 0) == (other[kOfHidden] < 0) &&
           (one[kOfCells] < 0) == (other[kOfCells] < 0) && g_.nodes[a.node].module == g_.nodes[b.node].module;
  }

  /// The node that reads the state behind the last step of a direction, as slice and squeeze; -1: `reader` is none.
  int last_state(size_t reader, const RecurrentWay& d) const {
    const Graph::Node& n = g_.nodes[reader];
    const Graph::Node& sequence = g_.nodes[d.node];
    if (!is_op(&n, "slice") || sequence.inputs[kOfLengths] >= 0) return -1;
    const int64_t last = d.reverse ? 0 : shape(sequence.outputs[0])[0] - 1;
    if (attr_of(n, "axis") != 0 || attr_of(n, "start") != last || attr_of(n, "end") != last + 1) return -1;
    const auto& next = readers_[static_cast<size_t>(n.outputs[0])];
    if (is_output(n.outputs[0]) || next.size() != 1) return -1;
    const Graph::Node& squeezed = g_.nodes[next[0]];
    return is_op(&squeezed, "squeeze") && attr_of(squeezed, "axis") == 0 ? static_cast<int>(next[0]) : -1;
  }

  RecurrentNodes written(const std::vector<const RecurrentWay*>& ways) const;

  const Graph& g_;
  std::vector<std::vector<size_t>> readers_;  ///< nodes, of each value
  friend class RecurrentWriter;
};

/// The nodes of one layer.
class RecurrentWriter {
 public:
  RecurrentWriter(const RecurrentFinder& graph, const std::vector<const RecurrentWay*>& ways)
      : in_(graph), ways_(ways), sequence_(graph.g_.nodes[ways.back()->node]) {
    stem_ = graph.value(graph.g_.nodes[ways[0]->node].outputs[0]).name;
    out_.at = ways.back()->node;
    for (const RecurrentWay* d : ways) out_.instead.insert(d->node);
  }

  RecurrentNodes write() {
    const RecurrentWay& one = *ways_[0];
    const bool both = ways_.size() == 2;
    OnnxNode node;
    node.op_type = one.cell == Cell::lstm ? "LSTM" : one.cell == Cell::gru ? "GRU" : "RNN";
    // The part behind the last slash is none of the layer's name when the file is read into layers.
    const std::string path = module_path(sequence_.module);
    node.name = (path.empty() ? stem_ : path) + "/" + node.op_type + "_" + stem_;
    node.inputs.push_back(one.one_step ? put("Unsqueeze", {read(one.x), whole({0})}, stem_ + "_x") : read(one.x));
    put_weights(node);
    node.inputs.push_back(lengths());
    node.inputs.push_back(state(kOfHidden));
    if (one.cell == Cell::lstm) node.inputs.push_back(state(kOfCells));
    while (node.inputs.back().empty()) node.inputs.pop_back();
    node.attributes.push_back({"hidden_size", one.r.size(1)});
    if (both || one.reverse) node.attributes.push_back({"direction", std::string(both ? "bidirectional" : "reverse")});
    if (one.cell == Cell::gru) node.attributes.push_back({"linear_before_reset", int64_t{1}});
    if (one.cell == Cell::relu)
      node.attributes.push_back({"activations", std::vector<std::string>(ways_.size(), "Relu")});
    read_results();
    node.outputs = {steps_ ? stem_ + "_steps" : ""};
    if (last_) node.outputs.push_back(stem_ + "_last");
    out_.nodes.push_back(std::move(node));
    return std::move(out_);
  }

 private:
  std::string read(int v) {
    out_.reads.push_back(v);
    return in_.value(v).name;
  }
  std::string constant(const std::string& name, const Tensor& t) {
    out_.constants.emplace_back(name, t);
    return name;
  }
  std::string whole(const std::vector<int64_t>& values) {
    const Tensor t = empty({static_cast<int64_t>(values.size())}, DType::i64);
    std::copy(values.begin(), values.end(), t.data<int64_t>());
    return constant(fmt::format("{}_whole_{}", stem_, out_.constants.size()), t);
  }
  std::string put(const std::string& type, std::vector<std::string> inputs, const std::string& output,
                  std::vector<OnnxAttribute> attributes = {}) {
    out_.nodes.push_back({output + "_" + type, type, "", std::move(inputs), {output}, std::move(attributes)});
    return output;
  }

  void put_weights(OnnxNode& node) {
    const std::vector<int64_t>& order = onnx_gates(node.op_type);
    std::vector<Tensor> w, r, b;
    bool biased = false;
    for (const RecurrentWay* d : ways_) biased = biased || d->w_bias || d->r_bias;
    for (const RecurrentWay* d : ways_) {
      const auto bias = [&](const Tensor& t) { return t ? t : zeros({d->w.size(0)}, d->w.dtype()); };
      w.push_back(gates_in_order(d->w, order));
      r.push_back(gates_in_order(d->r, order));
      if (biased) b.push_back(cat({gates_in_order(bias(d->w_bias), order), gates_in_order(bias(d->r_bias), order)}, 0));
    }
    node.inputs.push_back(constant(weight_name("W"), stack(w, 0)));
    node.inputs.push_back(constant(weight_name("R"), stack(r, 0)));
    node.inputs.push_back(biased ? constant(weight_name("B"), stack(b, 0)) : "");
  }
  /// "lstm.W_l0": beside the parameters in the module's name, which are others.
  std::string weight_name(const std::string& letter) const {
    const std::string &given = ways_[0]->weight_name, usual = "weight_ih";
    const size_t at = given.rfind(usual);
    if (at == given.npos) return stem_ + "_" + letter;
    return given.substr(0, at) + letter + given.substr(at + usual.size());
  }
  std::string lengths() {
    if (sequence_.inputs[kOfLengths] < 0) return {};
    constexpr int64_t kInt32 = 6;
    return put("Cast", {read(sequence_.inputs[kOfLengths])}, stem_ + "_lengths", {{"to", kInt32}});
  }
  std::string state(int which) {
    std::vector<std::string> parts;
    for (const RecurrentWay* d : ways_) {
      const int v = in_.g_.nodes[d->node].inputs[static_cast<size_t>(which)];
      if (v < 0) return {};
      parts.push_back(
          put("Unsqueeze", {read(v), whole({0})}, fmt::format("{}_begin_{}_{}", stem_, which, parts.size())));
    }
    return parts.size() == 1 ? parts[0]
                             : put("Concat", parts, fmt::format("{}_begin_{}", stem_, which), {{"axis", int64_t{0}}});
  }

  /// [steps, directions, batch, hidden] and [directions, batch, hidden], as the graph's nodes read them.
  void read_results() {
    join_directions();
    for (size_t d = 0; d < ways_.size(); ++d) {
      const int y = in_.g_.nodes[ways_[d]->node].outputs[0];
      bool all = in_.is_output(y);
      for (size_t reader : in_.readers_[static_cast<size_t>(y)]) {
        if (out_.instead.contains(reader)) continue;
        const int last = in_.last_state(reader, *ways_[d]);
        all = all || last < 0;
        if (last < 0) continue;
        last_ = true;
        out_.instead.insert({reader, static_cast<size_t>(last)});
        take_direction("last", d, 0, in_.value(in_.g_.nodes[static_cast<size_t>(last)].outputs[0]).name);
      }
      if (all) take_direction("steps", d, 1, in_.value(y).name);
      steps_ = steps_ || all;
    }
  }
  void take_direction(const std::string& of, size_t d, int64_t axis, const std::string& as) {
    const std::string from = stem_ + "_" + of;
    if (ways_.size() == 1) {
      put("Squeeze", {from, whole({axis})}, as);
      return;
    }
    const std::string index = constant(as + "_direction", scalar(static_cast<double>(d), DType::i64));
    put("Gather", {from, index}, as, {{"axis", axis}});
  }
  /// Outputs of both directions beside each other.
  void join_directions() {
    if (ways_.size() != 2) return;
    const int one = in_.g_.nodes[ways_[0]->node].outputs[0], other = in_.g_.nodes[ways_[1]->node].outputs[0];
    for (size_t reader : in_.readers_[static_cast<size_t>(one)]) {
      const Graph::Node& n = in_.g_.nodes[reader];
      if (!is_op(&n, "cat") || n.inputs != std::vector<int>{one, other} || attr_of(n, "axis") != 2) continue;
      steps_ = true;
      const std::string& as = in_.value(n.outputs[0]).name;
      const std::string beside =
          put("Transpose", {stem_ + "_steps"}, as + "_beside", {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
      put("Reshape", {beside, whole({0, 0, -1})}, as);
      out_.instead.insert(reader);
    }
  }

  const RecurrentFinder& in_;
  const std::vector<const RecurrentWay*>& ways_;
  const Graph::Node& sequence_;
  RecurrentNodes out_;
  std::string stem_;
  bool steps_ = false, last_ = false;  ///< which outputs of the node are read
};

RecurrentNodes RecurrentFinder::written(const std::vector<const RecurrentWay*>& ways) const {
  return RecurrentWriter(*this, ways).write();
}

}  // namespace

std::vector<RecurrentNodes> recurrent_nodes(const Graph& graph) { return RecurrentFinder(graph).all(); }

}  // namespace tenon::formats
