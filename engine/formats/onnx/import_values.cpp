// Which layers stand for ONNX's products and sums, and for what moves elements about.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "engine/formats/onnx/import_rule.h"
#include "engine/ops/join.h"

namespace tenon::formats::importing {
namespace {

// Products, sums, and the activations that exporters write as several nodes.

TENON_IMPORT(Gemm) {
  if (!m.dynamic(0) || !m.constant(1) || m.dynamic(2) || m.node().integer("transA", 0)) return false;
  if (m.node().number("alpha", 1) != 1 || m.node().number("beta", 1) != 1) return false;
  const Tensor& b = m.in(1).tensor;
  const Tensor w = m.node().integer("transB", 0) ? b : contiguous(transpose(b, 0, 1));
  Weights weights = {{"weight", w}};
  if (m.has(2)) {
    if (m.in(2).tensor.numel() != w.size(0)) return false;
    weights.push_back({"bias", flat(m.in(2).tensor)});
  }
  m.result(m.add("Linear", {{"out_features", w.size(0)}, {"bias", m.has(2)}}, {m.in(0)}, std::move(weights)));
  return true;
}
TENON_IMPORT(MatMul) {
  if (m.dynamic(0) && m.dynamic(1)) {
    m.result(m.add("MatMul", {}, {m.in(0), m.in(1)}));
    return true;
  }
  if (!m.dynamic(0) || m.in(1).tensor.ndim() != 2) return false;
  const Tensor w = contiguous(transpose(m.in(1).tensor, 0, 1));
  m.result(m.add("Linear", {{"out_features", w.size(0)}, {"bias", false}}, {m.in(0)}, {{"weight", w}}));
  return true;
}

/// Of a node with two inputs: the other one's place where input `i` is a constant number near x.
std::optional<std::string> beside_number(const Importer& m, const OnnxNode* n, const char* type, double x) {
  if (!n || n->op_type != type || n->inputs.size() != 2) return {};
  for (size_t i = 0; i < 2; ++i)
    if (near(m.number_of(n->inputs, i), x)) return n->inputs[1 - i];
  return {};
}

/// x where `value` is 1 + erf(x / sqrt(2)).
std::optional<std::string> one_plus_erf(const Importer& m, const std::string& value) {
  const auto erf = beside_number(m, m.maker(value), "Add", 1);
  const OnnxNode* n = erf ? m.maker(*erf) : nullptr;
  if (!n || n->op_type != "Erf" || n->inputs.empty()) return {};
  const OnnxNode* scaled = m.maker(n->inputs[0]);
  if (const auto x = beside_number(m, scaled, "Mul", 1 / std::sqrt(2.0))) return x;
  if (scaled && scaled->op_type == "Div" && scaled->inputs.size() == 2 &&
      near(m.number_of(scaled->inputs, 1), std::sqrt(2.0)))
    return scaled->inputs[0];
  return {};
}
/// x where the product of `factors` is GELU(x): a half, x, and 1 + erf(x / sqrt(2)), in any order.
std::optional<std::string> gelu_of(const Importer& m, const OnnxNode& last) {
  std::vector<std::string> factors;
  int halves = 0;
  std::function<void(const OnnxNode&, int)> collect = [&](const OnnxNode& n, int depth) {
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const OnnxNode* from = m.maker(n.inputs[i]);
      if (near(m.number_of(n.inputs, i), 0.5))
        ++halves;
      else if (depth < 2 && from && from->op_type == "Mul" && (beside_number(m, from, "Mul", 0.5) || factors.empty()))
        collect(*from, depth + 1);
      else
        factors.push_back(n.inputs[i]);
    }
  };
  collect(last, 0);
  if (halves != 1 || factors.size() != 2) return {};
  for (int i = 0; i < 2; ++i)
    if (const auto x = one_plus_erf(m, factors[static_cast<size_t>(i)]); x && *x == factors[static_cast<size_t>(1 - i)])
      return x;
  return {};
}

/// A layer that is `type` of the value named; false where that is not the result of a layer.
bool activation_layer(Importer& m, const char* type, const std::string& of) {
  const Value* x = m.find(of);
  if (!x || !x->dynamic()) return false;
  m.result(m.add(type, {}, {*x}));
  return true;
}

TENON_IMPORT(Mul) {
  const std::vector<std::string>& in = m.node().inputs;
  if (in.size() != 2) return false;
  for (size_t i = 0; i < 2; ++i)
    if (const OnnxNode* n = m.maker(in[i]); n && !n->inputs.empty() && n->inputs[0] == in[1 - i]) {
      if (n->op_type == "Sigmoid") return activation_layer(m, "SiLU", in[1 - i]);
      if (n->op_type == "HardSigmoid" && near(n->number("alpha", 0.2), 1.0 / 6) && near(n->number("beta", 0.5), 0.5))
        return activation_layer(m, "Hardswish", in[1 - i]);
    }
  if (const auto x = gelu_of(m, m.node())) return activation_layer(m, "GELU", *x);
  if (!m.dynamic(0) || !m.dynamic(1)) return false;
  m.result(m.add("Mul", {}, {m.in(0), m.in(1)}));
  return true;
}
TENON_IMPORT(Sub) {
  if (!m.dynamic(0) || !m.dynamic(1)) return false;
  m.result(m.add("Sub", {}, {m.in(0), m.in(1)}));
  return true;
}
TENON_IMPORT(Add) {
  if (m.dynamic(0) && m.dynamic(1)) {
    m.result(m.add("Add", {}, {m.in(0), m.in(1)}));
    return true;
  }
  const size_t at = m.dynamic(0) ? 0 : 1;
  const Value &x = m.in(at), &c = m.in(1 - at);
  const Shape& s = x.shape();
  // The bias of a product that was written apart from it.
  LayerSpec* product = m.made_layer(x.layer);
  if (product->type == "Linear" && c.shape().n > 0 && c.tensor.numel() == s[s.n - 1] &&
      c.shape()[c.shape().n - 1] == s[s.n - 1] && m.readers(m.node().inputs[at]) == 1)
    for (Attr& a : product->attrs)
      if (a.name == "bias" && a.value == AttrValue(false)) {
        a.value = true;
        m.give(product->name, {"bias", flat(c.tensor)});
        m.result(x);
        return true;
      }
  if (s.n != 3 || c.tensor.numel() != s[1] * s[2] || c.shape().n < 2) return false;
  m.result(m.add("LearnedPositions", {{"max_length", s[1]}}, {x},
                 {{"weight", reshape(contiguous(c.tensor), {s[1], s[2]})}}));
  return true;
}

// What moves elements about.

TENON_IMPORT(Identity) { return as_it_is(m); }
TENON_IMPORT(Cast) {
  const int64_t to = m.node().integer("to", 1);
  const bool floats = to == 1 || to == 10 || to == 11 || to == 16;
  if (floats && is_floating(m.in(0).tensor.dtype())) {
    if (to == 10 || to == 16) m.widen();
    return as_it_is(m);
  }
  if (to == 1) return one_layer(m, "Cast", {{"dtype", std::string("f32")}});
  if (to == 7)
    return m.in(0).tensor.dtype() == DType::i64 ? as_it_is(m) : one_layer(m, "Cast", {{"dtype", std::string("i64")}});
  return false;
}
/// The node's first input with other sizes behind the batch.
bool reshaped(Importer& m, const Shape& to) {
  const Shape& from = m.in(0).shape();
  if (from == to) return as_it_is(m);
  if (from.n < 1 || to.n < 1 || from[0] != m.batch() || to[0] != m.batch()) return false;
  if (to.n == 2 && from.n > 2) return one_layer(m, "Flatten");
  return one_layer(m, "Reshape", {{"shape", Ints(to.begin() + 1, to.end())}});
}
TENON_IMPORT(Flatten) {
  return wrapped(m.node().integer("axis", 1), m.in(0).shape().n) == 1 && one_layer(m, "Flatten");
}
TENON_IMPORT(Reshape) {
  if (read_in_one_row(m)) return true;
  if (!m.dynamic(0)) return false;
  const Shape& from = m.in(0).shape();
  Ints to = m.sizes_of_any_batch();
  int64_t known = 1;
  for (int64_t n : to)
    if (n > 0) known *= n;
  for (int64_t& n : to)
    if (n == -1) n = from.product() / std::max<int64_t>(known, 1);
  return reshaped(m, Shape(to));
}
TENON_IMPORT(Squeeze) {
  if (read_in_one_row(m)) return true;
  const Shape& from = m.in(0).shape();
  Ints axes = m.list(1, "axes");
  Shape to;
  for (int i = 0; i < from.n; ++i) {
    const bool named = std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return wrapped(a, from.n) == i; });
    if (!(named || (axes.empty() && from[i] == 1 && i > 0))) to.push_back(from[i]);
  }
  return m.dynamic(0) && reshaped(m, to);
}
TENON_IMPORT(Unsqueeze) {
  const Shape& from = m.in(0).shape();
  const Ints axes = m.list(1, "axes");
  const int n = from.n + static_cast<int>(axes.size());
  Shape to;
  for (int i = 0, at = 0; i < n; ++i) {
    const bool one = std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return wrapped(a, n) == i; });
    to.push_back(one ? 1 : from[at++]);
  }
  return m.dynamic(0) && reshaped(m, to);
}
TENON_IMPORT(Transpose) {
  if (read_in_one_row(m)) return true;
  Ints perm = m.node().integers("perm");
  if (perm.empty())
    for (int i = m.in(0).shape().n; i-- > 0;) perm.push_back(i);
  return one_layer(m, "Permute", {{"dims", perm}});
}
TENON_IMPORT(Concat) {
  const int axes = m.in(m.dynamic(0) ? 0 : 1).shape().n;
  const int64_t axis = wrapped(m.node().integer("axis", 0), axes);
  const size_t count = m.node().inputs.size();
  if (axis == 0) return false;
  // A class token: the same rows before every sample.
  if (count == 2 && !m.dynamic(0) && m.dynamic(1) && axes == 3 && axis == 1) {
    const Tensor one = m.row_of_samples(0);
    if (!one) return false;
    m.result(m.add("LearnedTokens", {{"count", one.size(1)}}, {m.in(1)},
                   {{"weight", reshape(one, {one.size(1), one.size(2)})}}));
    return true;
  }
  std::vector<Value> parts;
  for (size_t i = 0; i < count; ++i) {
    if (!m.dynamic(i)) return false;
    parts.push_back(m.in(i));
  }
  if (parts.size() == 1) return as_it_is(m);
  constexpr size_t kAtOnce = 4;  // inputs of the layer
  while (parts.size() > 1) {
    const size_t some = std::min(kAtOnce, parts.size());
    const Value joined = m.add("Concat", {{"dim", axis}}, {parts.begin(), parts.begin() + static_cast<int64_t>(some)});
    parts.erase(parts.begin(), parts.begin() + static_cast<int64_t>(some));
    parts.insert(parts.begin(), joined);
  }
  m.result(parts[0]);
  return true;
}
TENON_IMPORT(Slice) {
  const Shape& s = m.in(0).shape();
  const Ints starts = m.list(1, "starts"), ends = m.list(2, "ends");
  Ints axes = m.list(3, "axes");
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t step : m.list(4, "steps"))
    if (step != 1) return false;
  if (starts.size() != ends.size() || starts.size() != axes.size() || !m.dynamic(0)) return false;
  Value x = m.in(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = wrapped(axes[i], s.n), n = s[static_cast<int>(axis)];
    const auto place = [n](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + n : at, 0, n); };
    const int64_t from = place(starts[i]), to = place(ends[i]);
    if (axis == 0 || to <= from) return false;
    if (to - from < n) x = m.add("Narrow", {{"dim", axis}, {"start", from}, {"length", to - from}}, {x});
  }
  m.result(x);
  return true;
}
TENON_IMPORT(Split) {
  const Shape& s = m.in(0).shape();
  const int64_t axis = wrapped(m.node().integer("axis", 0), s.n), n = s[static_cast<int>(axis)];
  const int64_t parts = static_cast<int64_t>(m.node().outputs.size());
  Ints sizes = m.list(1, "split");
  if (sizes.empty()) {
    const int64_t each = (n + parts - 1) / parts;
    for (int64_t at = 0; at < n; at += each) sizes.push_back(std::min(each, n - at));
  }
  if (axis == 0 || static_cast<int64_t>(sizes.size()) != parts) return false;
  int64_t at = 0;
  for (size_t k = 0; k < sizes.size(); ++k) {
    m.result(m.add("Narrow", {{"dim", axis}, {"start", at}, {"length", sizes[k]}}, {m.in(0)}), k);
    at += sizes[k];
  }
  return true;
}
TENON_IMPORT(Gather) {
  if (read_in_one_row(m)) return true;
  const int64_t axis = m.node().integer("axis", 0);
  if (m.constant(0) && m.dynamic(1) && axis == 0 && m.in(0).shape().n == 2 && is_floating(m.in(0).tensor.dtype())) {
    const Tensor& table = m.in(0).tensor;
    m.result(m.add("Embedding", {{"num_embeddings", table.size(0)}, {"embedding_dim", table.size(1)}}, {m.in(1)},
                   {{"weight", table}}));
    return true;
  }
  if (!m.dynamic(0) || !m.constant(1) || m.in(1).shape().n != 0) return false;
  const int64_t at = wrapped(axis, m.in(0).shape().n);
  return at > 0 && one_layer(m, "Select", {{"dim", at}, {"index", m.list(1, "")[0]}});
}
TENON_IMPORT(ReduceMean) {
  const Shape& s = m.in(0).shape();
  Ints dims = m.list(1, "axes");
  for (int64_t& d : dims) d = wrapped(d, s.n);
  if (dims.empty() || std::count(dims.begin(), dims.end(), 0)) return false;
  return one_layer(m, "Mean", {{"dims", dims}, {"keepdim", m.node().integer("keepdims", 1) != 0}});
}

}  // namespace
}  // namespace tenon::formats::importing
