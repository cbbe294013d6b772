// Operators of PyTorch over sequences: attention, recurrent layers.
#include <cmath>
#include <limits>

#include "engine/formats/aten/rule.h"
#include "engine/formats/onnx/gate_order.h"
#include "engine/ops/create.h"
#include "engine/ops/join.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

/// 0 where a place may be looked at, minus infinity where it is still to come.
Tensor causal_mask(int64_t queries, int64_t keys) {
  Tensor t = zeros({queries, keys});
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t k = i + 1; k < keys; ++k) t.data<float>()[i * keys + k] = -std::numeric_limits<float>::infinity();
  return t;
}
TENON_ATEN(scaled_dot_product_attention) {
  constexpr int64_t kLongest = 1 << 13;
  const int64_t n = c.rank("query");
  if (c.number("dropout_p") > 0) c.refuse("it was exported in training mode: call model.eval() first");
  if (c.truth("enable_gqa")) c.refuse("its heads share keys");
  if (n < 2 || c.rank("key") != n) c.refuse(fmt::format("its query has {} axes", n));
  const DType t = c.dtype("query");
  const double scale = c.has("scale") ? c.number("scale") : 1 / std::sqrt(static_cast<double>(c.size("query", n - 1)));
  AtenInts turned;
  for (int64_t i = 0; i < n; ++i) turned.push_back(i < n - 2 ? i : 2 * n - 3 - i);
  std::string y = c.add("MatMul", {c.in("query"), c.add("Transpose", {c.in("key")}, {{"perm", turned}})});
  y = c.add("Mul", {y, c.scalar_of(scale, t)});
  if (c.truth("is_causal")) {
    const int64_t queries = c.size("query", n - 2), keys = c.size("key", n - 2);
    if (queries > kLongest || keys > kLongest) c.refuse("its sequences are too long");
    y = c.add("Add", {y, c.cast_to(c.constant(causal_mask(queries, keys)), DType::f32, t)});
  }
  if (c.has("attn_mask")) {
    if (c.dtype("attn_mask") == DType::boolean)
      y = c.add("Where", {c.in("attn_mask"), y, c.scalar_of(-std::numeric_limits<double>::infinity(), t)});
    else
      y = c.add("Add", {y, c.in("attn_mask")});
  }
  c.result(c.add("MatMul", {c.add("Softmax", {y}, {{"axis", int64_t{-1}}}), c.in("value")}));
}

/// Layers of any number, of one direction or two.
void recurrent(AtenCall& c, const char* type) {
  const std::vector<int64_t>& order = onnx_gates(type);
  const bool cells = order.size() == 4, biases = c.truth("has_biases"), both = c.truth("bidirectional");
  const bool first = c.truth("batch_first");
  const int64_t layers = c.integer("num_layers"), ways = both ? 2 : 1;
  if (c.rank("input") != 3) c.refuse("its input has no axis of samples");
  if (c.truth("train") && c.number("dropout") > 0)
    c.refuse("it was exported in training mode: call model.eval() first");
  const std::vector<std::string> weights = c.in_list("params");
  const auto each = static_cast<size_t>(biases ? 4 : 2);
  if (layers < 1 || layers > 64 || weights.size() != each * static_cast<size_t>(layers * ways))
    c.refuse("its weights are not those of its layers");
  std::vector<std::string> states = cells ? c.in_list("hx") : std::vector<std::string>{c.in("hx")};
  if (states.size() != (cells ? 2u : 1u)) throw Error("its states are not those of its cells");
  // Cells begin with zeros where nothing is said.
  const std::vector<std::string> begun = c.tensor_names("hx");
  for (size_t k = 0; k < states.size(); ++k)
    if (c.filled(begun.at(k)) == 0.0) states[k].clear();
  std::string x = first ? c.add("Transpose", {c.in("input")}, {{"perm", AtenInts{1, 0, 2}}}) : c.in("input");
  std::vector<std::vector<std::string>> ends(states.size());
  int64_t hidden = 0;
  for (int64_t l = 0; l < layers; ++l) {
    std::vector<Tensor> parts[3];
    for (int64_t d = 0; d < ways; ++d) {
      std::vector<Tensor> bias;
      for (size_t k = 0; k < each; ++k) {
        const Tensor w = c.constant_of(weights[static_cast<size_t>(l * ways + d) * each + k]);
        if (!w || !is_floating(w.dtype()) || w.ndim() != (k < 2 ? 2 : 1))
          c.refuse("its weights are no matrices of the file");
        const Tensor ordered = gates_in_order(w, order);
        if (k < 2)
          parts[k].push_back(unsqueeze(ordered, 0));
        else
          bias.push_back(ordered);
      }
      hidden = parts[1].back().size(2);
      if (biases) parts[2].push_back(unsqueeze(cat(bias, 0), 0));
    }
    std::vector<std::string> in = {x, c.constant(cat(parts[0], 0)), c.constant(cat(parts[1], 0)),
                                   biases ? c.constant(cat(parts[2], 0)) : "", ""};
    for (const std::string& s : states)
      in.push_back(s.empty() ? s
                             : c.add("Slice", {s, c.whole(AtenInts{l * ways}), c.whole(AtenInts{(l + 1) * ways}),
                                               c.whole(AtenInts{0})}));
    std::vector<OnnxAttribute> how = {{"hidden_size", hidden},
                                      {"direction", std::string(both ? "bidirectional" : "forward")}};
    if (!cells) how.push_back({"linear_before_reset", int64_t{1}});
    const auto out = c.adds(type, in, how, 1 + states.size());
    for (size_t k = 0; k < states.size(); ++k) ends[k].push_back(out[1 + k]);
    // [time, ways, batch, hidden] -> [time, batch, ways * hidden]
    const std::string beside = c.add("Transpose", {out[0]}, {{"perm", AtenInts{0, 2, 1, 3}}});
    x = c.add("Reshape", {beside, c.whole(AtenInts{0, 0, ways * hidden})});
  }
  c.result(first ? c.add("Transpose", {x}, {{"perm", AtenInts{1, 0, 2}}}) : x, 0);
  for (size_t k = 0; k < ends.size(); ++k)
    c.result(ends[k].size() == 1 ? ends[k][0] : c.add("Concat", ends[k], {{"axis", int64_t{0}}}), k + 1);
}
TENON_ATEN(lstm) { recurrent(c, "LSTM"); }
TENON_ATEN(gru) { recurrent(c, "GRU"); }

}  // namespace
}  // namespace tenon::formats
