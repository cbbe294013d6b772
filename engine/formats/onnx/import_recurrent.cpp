// Which layers stand for ONNX's recurrent operators.
#include "engine/formats/onnx/gate_order.h"
#include "engine/formats/onnx/import_rule.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"

namespace tenon::formats::importing {
namespace {

enum RecurrentInput : size_t { kAtX, kAtW, kAtR, kAtB, kAtLengths, kAtHidden, kAtCells };

bool output_is_read(const Importer& m, size_t output) {
  const auto& all = m.node().outputs;
  return output < all.size() && !all[output].empty() && m.readers(all[output]) > 0;
}
bool begins_with_zeros(const Importer& m, size_t input) {
  const auto zero = [](const Tensor& t) { return item(cast(sum(abs(t)), DType::f64)) == 0; };
  return !m.has(input) || (!m.dynamic(input) && zero(m.in(input).tensor) && zero(m.in(input).again));
}
/// "Tanh" or "Relu" where all directions of an RNN have that one and others their usual ones, else nothing.
std::string one_activation(const Importer& m, size_t ways) {
  const auto* given = m.node().find("activations");
  const auto* names = given ? std::get_if<std::vector<std::string>>(given) : nullptr;
  if (!names || names->empty()) return "Tanh";
  const std::string& type = m.node().op_type;
  const std::vector<std::string> usual = type == "LSTM"  ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                         : type == "GRU" ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                         : std::vector<std::string>{names->front()};
  if (names->size() != usual.size() * ways) return {};
  for (size_t i = 0; i < names->size(); ++i)
    if ((*names)[i] != usual[i % usual.size()]) return {};
  return type == "RNN" ? names->front() : "Tanh";
}

/// The layer's parameters: rows of the gates in its own order.
Weights recurrent_weights(const Importer& m, int64_t ways) {
  const std::vector<int64_t> order = gates_back(onnx_gates(m.node().op_type));
  Weights all;
  for (int64_t d = 0; d < ways; ++d) {
    const std::string end = d ? "_l0_reverse" : "_l0";
    const auto part = [&](size_t input) { return select(m.in(input).tensor, 0, d); };
    all.push_back({"weight_ih" + end, gates_in_order(part(kAtW), order)});
    all.push_back({"weight_hh" + end, gates_in_order(part(kAtR), order)});
    if (!m.has(kAtB)) continue;
    const Tensor b = part(kAtB);
    all.push_back({"bias_ih" + end, gates_in_order(narrow(b, 0, 0, b.size(0) / 2), order)});
    all.push_back({"bias_hh" + end, gates_in_order(narrow(b, 0, b.size(0) / 2, b.size(0) / 2), order)});
  }
  return all;
}

/// The states behind the last step, [batch, ways * hidden], of the outputs of all steps.
Value last_of(Importer& m, const Value& steps, int64_t ways, int64_t hidden) {
  const Value last = m.add("Select", {{"dim", int64_t{0}}, {"index", int64_t{-1}}}, {steps});
  if (ways == 1) return last;
  const auto part = [&](const Value& of, int64_t d) {
    return m.add("Narrow", {{"dim", int64_t{1}}, {"start", d * hidden}, {"length", hidden}}, {of});
  };
  const Value first = m.add("Select", {{"dim", int64_t{0}}, {"index", int64_t{0}}}, {steps});
  const Value one = part(last, 0), other = part(first, 1);
  return m.add("Concat", {{"dim", int64_t{1}}}, {one, other});
}

bool recurrent(Importer& m) {
  const OnnxNode& n = m.node();
  if (n.inputs.size() > 7 && m.has(7)) return false;  // peepholes
  const bool lstm = n.op_type == "LSTM", both = n.text("direction", "forward") == "bidirectional";
  const int64_t ways = both ? 2 : 1;
  const std::string activation = one_activation(m, static_cast<size_t>(ways));
  if (!m.dynamic(kAtX) || !m.constant(kAtW) || !m.constant(kAtR) || m.dynamic(kAtB)) return false;
  if ((!both && n.text("direction", "forward") != "forward") || n.integer("layout", 0) || n.number("clip", 0) > 0 ||
      n.integer("input_forget", 0) || (activation != "Tanh" && activation != "Relu") || output_is_read(m, 2))
    return false;
  if (n.op_type == "GRU" && !n.integer("linear_before_reset", 0)) return false;
  if (m.in(kAtW).shape().n != 3 || m.in(kAtR).shape().n != 3) return false;
  const int64_t hidden = m.in(kAtR).shape()[2];
  std::vector<Value> from = {m.in(kAtX), {}, {}};
  if (!lstm) from.pop_back();
  const size_t states = lstm ? 2 : 1;
  for (size_t k = 0; k < states; ++k)
    if (!begins_with_zeros(m, kAtHidden + k)) {
      if (!m.dynamic(kAtHidden + k)) return false;
      from[1 + k] = m.in(kAtHidden + k);
    }
  if (m.has(kAtLengths)) {
    if (!m.dynamic(kAtLengths)) return false;
    from.push_back(m.in(kAtLengths));
    if (from.back().tensor.dtype() != DType::i64)
      from.back() = m.add("Cast", {{"dtype", std::string("i64")}}, {from.back()});
  }
  const bool steps = output_is_read(m, 0), last = output_is_read(m, 1);
  if (steps && last && m.has(kAtLengths)) return false;  // one layer gives the steps, or the last of each sequence
  std::vector<Attr> attrs = {{"hidden_size", hidden}, {"batch_first", false}};
  if (both) attrs.push_back({"bidirectional", true});
  if (!m.has(kAtB)) attrs.push_back({"bias", false});
  if (activation == "Relu") attrs.push_back({"nonlinearity", std::string("relu")});
  if (!steps) attrs.push_back({"output", std::string("last")});
  while (!from.back().tensor) from.pop_back();
  const Value made = m.add(n.op_type, std::move(attrs), from, recurrent_weights(m, ways));
  if (steps) {
    const Value apart = m.add("Unflatten", {{"dim", int64_t{2}}, {"unflattened_size", Ints{ways, hidden}}}, {made});
    m.result(m.add("Permute", {{"dims", Ints{0, 2, 1, 3}}}, {apart}), 0);
    m.set_in_one_row(n.outputs[0], made);
  }
  if (last) {
    const Value ends = steps ? last_of(m, made, ways, hidden) : made;
    const Value apart = m.add("Unflatten", {{"dim", int64_t{1}}, {"unflattened_size", Ints{ways, hidden}}}, {ends});
    m.result(m.add("Permute", {{"dims", Ints{1, 0, 2}}}, {apart}), 1);
    m.set_in_one_row(n.outputs[1], ends);
  }
  return true;
}
TENON_IMPORT(LSTM) { return recurrent(m); }
TENON_IMPORT(GRU) { return recurrent(m); }
TENON_IMPORT(RNN) { return recurrent(m); }

}  // namespace

bool read_in_one_row(Importer& m) {
  const OnnxNode& n = m.node();
  const Value* row = n.inputs.empty() ? nullptr : m.in_one_row(n.inputs[0]);
  if (!row || m.node().outputs.size() != 1) return false;
  const Shape& from = m.in(0).shape();
  // [steps, directions, batch, hidden] or [directions, batch, hidden], or the first with the directions further back.
  const OnnxNode* by = m.maker(n.inputs[0]);
  const bool turned = by && by->op_type == "Transpose";
  const int axis = turned ? 2 : from.n - 3;
  if (n.op_type == "Transpose" && !turned && n.integers("perm") == Ints{0, 2, 1, 3}) {
    m.result(m.add("Permute", {{"dims", Ints{0, 2, 1, 3}}}, {m.in(0)}));
    m.set_in_one_row(n.outputs[0], *row);
    return true;
  }
  if (n.op_type == "Squeeze" && from[axis] == 1 && m.list(1, "axes") == Ints{axis}) {
    m.result(*row);
    return true;
  }
  if (n.op_type == "Reshape" && turned) {
    const Ints to = m.list(1, "shape");
    const Shape& is = row->shape();
    if (to.size() != 3) return false;
    for (int i = 0; i < 3; ++i)
      if (const int64_t size = to[static_cast<size_t>(i)]; size != 0 && size != -1 && size != is[i]) return false;
    if (to[2] == 0) return false;
    m.result(*row);
    return true;
  }
  if (n.op_type == "Gather" && !turned && n.integer("axis", 0) == axis && m.constant(1) && m.in(1).shape().n == 0) {
    const int64_t hidden = from[from.n - 1], at = wrapped(m.list(1, "")[0], static_cast<int>(from[axis]));
    m.result(
        m.add("Narrow", {{"dim", int64_t{row->shape().n - 1}}, {"start", at * hidden}, {"length", hidden}}, {*row}));
    return true;
  }
  return false;
}

}  // namespace tenon::formats::importing
