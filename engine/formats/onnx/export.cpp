#include "engine/formats/onnx/export.h"

#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/tensor_bytes.h"
#include "engine/formats/onnx/flat_pools.h"
#include "engine/formats/onnx/recurrent_nodes.h"
#include "engine/ops/create.h"
#include "engine/ops/onnx_op.h"
#include "engine/ops/view.h"
#include "engine/spec/attr.h"

namespace tenon::formats {
namespace {

OnnxAttribute attribute_of(const OnnxOp::Attribute& a) {
  return {a.name, std::visit(
                      [](const auto& v) -> OnnxAttribute::Value {
                        using T = std::decay_t<decltype(v)>;
                        if constexpr (std::is_same_v<T, float>)
                          return static_cast<double>(v);
                        else if constexpr (std::is_same_v<T, std::vector<float>>)
                          return std::vector<double>(v.begin(), v.end());
                        else
                          return v;
                      },
                      a.value)};
}

OnnxAttribute attribute_of(const Attr& a) {
  return {a.name, std::visit(
                      [](const auto& v) -> OnnxAttribute::Value {
                        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, bool>)
                          return int64_t{v};
                        else
                          return v;
                      },
                      a.value)};
}

OnnxOp as_operator(const Graph::Node& n) {
  OnnxOp o;
  o.type = n.op->info.onnx;
  for (size_t i = 0; i < n.inputs.size(); ++i) o.inputs.push_back(static_cast<int>(i));
  if (n.op->onnx) n.op->onnx(n.attrs.get(), o);
  return o;
}

/// Nothing else than a trace on a longer input could tell: a node has the number of steps written into it.
class FixedLength : public Error {
 public:
  using Error::Error;
};

/// Whether two nodes are one operator, but for the sizes that a Reshape has.
bool same_operator(const OnnxOp& a, const OnnxOp& b) {
  const auto same_attribute = [](const OnnxOp::Attribute& x, const OnnxOp::Attribute& y) {
    return x.name == y.name && x.value == y.value;
  };
  const auto same_constant = [](const OnnxOp::ConstantInput& x, const OnnxOp::ConstantInput& y) {
    return x.values == y.values && x.scalar == y.scalar;
  };
  const auto same_fill = [](const OnnxOp::Fill& x, const OnnxOp::Fill& y) {
    return x.input == y.input && x.value == y.value && x.like == y.like && x.size == y.size;
  };
  return a.type == b.type && a.inputs == b.inputs && a.lists == b.lists && a.numbers == b.numbers &&
         std::ranges::equal(a.attributes, b.attributes, same_attribute) &&
         std::ranges::equal(a.fills, b.fills, same_fill) &&
         (a.type == "Reshape" || std::ranges::equal(a.constants, b.constants, same_constant));
}

class Writer {
 public:
  Writer(const Graph& g, const OnnxExport& how)
      : g_(g),
        longer_(how.longer),
        recurrent_(how.recurrence == Recurrence::nodes ? recurrent_nodes(g) : std::vector<RecurrentNodes>()) {
    if (!g.inputs.empty() && g.values[static_cast<size_t>(g.inputs[0])].meta.shape.n > 0)
      batch_ = g.values[static_cast<size_t>(g.inputs[0])].meta.shape[0];
  }

  OnnxModel write(const std::string& name) {
    OnnxModel m;
    m.graph.name = name;
    find_written();
    if (longer_) compare_lengths();
    for (size_t k = 0; k < g_.nodes.size(); ++k)
      if (written_[k]) node(m.graph, k);
    for (RecurrentNodes& r : recurrent_) put(m.graph, r);
    for (int v : g_.inputs) m.graph.inputs.push_back(declared(v));
    for (int v : g_.outputs) m.graph.outputs.push_back(declared(v));
    for (size_t v = 0; v < g_.values.size(); ++v)
      if (used_[v] && g_.values[v].constant.defined())
        m.graph.initializers.emplace_back(g_.values[v].name, contiguous(detach_value(g_.values[v].constant)));
    for (auto& c : constants_) m.graph.initializers.push_back(std::move(c));
    for (const std::string& domain : domains_) m.other_opsets.emplace_back(domain, 1);
    flatten_pools(m.graph);
    validate(m.graph, name);
    return m;
  }

 private:
  static Tensor detach_value(const Tensor& t) { return view_of(t, t.layout()); }

  const Graph::Value& value(int v) const { return g_.values[static_cast<size_t>(v)]; }
  const Shape& longer_shape(int v) const { return longer_->values[static_cast<size_t>(v)].meta.shape; }

  OnnxValue declared(int v) const {
    const Meta& m = value(v).meta;
    OnnxValue d{value(v).name, true, m.dtype, true, {}};
    for (int i = 0; i < m.shape.n; ++i)
      d.shape.push_back(i == 0 && m.shape[0] == batch_                ? OnnxDim{-1, "N"}
                        : longer_ && longer_shape(v)[i] != m.shape[i] ? OnnxDim{-1, m.shape[i] == steps_ ? "T" : ""}
                                                                      : OnnxDim{m.shape[i], ""});
    return d;
  }

  /// The nodes that are written as they are: those that lead to an output, but for what recurrent nodes stand for.
  void find_written() {
    written_.assign(g_.nodes.size(), false);
    made_.assign(g_.values.size(), false);
    std::vector<bool> wanted(g_.values.size());
    const auto want = [&](int v) {
      if (v >= 0) wanted[static_cast<size_t>(v)] = true;
    };
    for (int v : g_.outputs) want(v);
    for (int v : g_.inputs) made_[static_cast<size_t>(v)] = true;
    for (size_t k = g_.nodes.size(); k-- > 0;) {
      const auto instead = [k](const RecurrentNodes& r) { return r.instead.contains(k); };
      for (const RecurrentNodes& r : recurrent_)
        if (r.at == k) std::ranges::for_each(r.reads, want);
      if (std::ranges::any_of(recurrent_, instead)) continue;
      const Graph::Node& n = g_.nodes[k];
      written_[k] = !n.writes.empty() ||
                    std::ranges::any_of(n.outputs, [&](int v) { return v >= 0 && wanted[static_cast<size_t>(v)]; });
      if (written_[k]) std::ranges::for_each(n.inputs, want);
      for (int v : n.outputs)
        if (v >= 0) made_[static_cast<size_t>(v)] = written_[k];
    }
  }
  /// Throws FixedLength where the graph of a longer input is not this one on more steps.
  void compare_lengths() {
    const Graph& l = *longer_;
    const auto differ = [](const std::string& what) { throw FixedLength(what + " has the number of steps in it"); };
    if (l.nodes.size() != g_.nodes.size() || l.values.size() != g_.values.size() || l.inputs != g_.inputs ||
        l.outputs != g_.outputs)
      differ("the graph");
    for (int v : g_.inputs)
      for (int i = 1; i < value(v).meta.shape.n; ++i)
        if (longer_shape(v)[i] != value(v).meta.shape[i]) steps_ = value(v).meta.shape[i];
    for (size_t k = 0; k < g_.nodes.size(); ++k) {
      const Graph::Node &n = g_.nodes[k], &m = l.nodes[k];
      if (n.op != m.op || n.inputs != m.inputs) differ(n.op->info.name);
      if (!written_[k]) continue;
      if (!same_operator(as_operator(n), as_operator(m))) differ(n.op->info.name);
      for (int v : n.inputs)
        if (v >= 0 && value(v).constant && !same_constant(value(v).constant, l.values[static_cast<size_t>(v)].constant))
          differ(value(v).name);
    }
  }
  static bool same_constant(const Tensor& a, const Tensor& b) {
    if (!b || a.dtype() != b.dtype() || !(a.size() == b.size())) return false;
    if (a.storage() == b.storage() && a.offset() == b.offset()) return true;
    std::vector<char> one, other;
    return logical_bytes(a, one) == logical_bytes(b, other);
  }

  void put(OnnxGraph& out, RecurrentNodes& r) {
    for (OnnxNode& n : r.nodes) out.nodes.push_back(std::move(n));
    for (auto& c : r.constants) constants_.push_back(std::move(c));
    for (int v : r.reads) used_[static_cast<size_t>(v)] = true;
  }

  /// Sizes of a Reshape whose input may have another number of steps: a size that stays is copied (0), one that is
  /// alone in being another is what is left (-1), and where there are several, they are those of a value before it.
  void any_length(OnnxGraph& out, const Graph::Node& n, const std::string& name, std::vector<int64_t>& to,
                  const std::vector<int64_t>& longer, std::string& computed) {
    const Shape &from = value(n.inputs[0]).meta.shape, &from_longer = longer_shape(n.inputs[0]);
    std::vector<size_t> open;
    std::vector<int64_t> sizes = to;
    for (size_t i = 0; i < to.size(); ++i) {
      const int axis = static_cast<int>(i);
      const bool varies = to[i] != longer[i] || (to[i] > 0 && to[i] % batch_ == 0);
      if (!varies) continue;
      if (axis < from.n && from[axis] == to[i] && from_longer[axis] == longer[i])
        sizes[i] = 0;
      else
        open.push_back(i);
    }
    if (open.size() == 1) sizes[open[0]] = -1;
    if (open.size() > 1) computed = sizes_of(out, n, name, sizes, to, longer, open);
    to = sizes;
  }
  /// The sizes as the file's nodes compute them: those of `open` from the nearest value behind that has them.
  std::string sizes_of(OnnxGraph& out, const Graph::Node& n, const std::string& name, const std::vector<int64_t>& sizes,
                       const std::vector<int64_t>& to, const std::vector<int64_t>& longer,
                       const std::vector<size_t>& open) {
    const auto fits = [&](int v) {
      const Shape& s = value(v).meta.shape;
      return made_[static_cast<size_t>(v)] && std::ranges::all_of(open, [&](size_t i) {
               const int axis = static_cast<int>(i);
               return axis < s.n && s[axis] == to[i] && longer_shape(v)[axis] == longer[i];
             });
    };
    std::vector<int> before = {n.inputs[0]};
    size_t at = 0;
    for (; at < before.size() && !fits(before[at]); ++at)
      if (const int by = value(before[at]).producer; by >= 0)
        for (int v : g_.nodes[static_cast<size_t>(by)].inputs)
          if (v >= 0 && std::ranges::find(before, v) == before.end()) before.push_back(v);
    if (at == before.size()) throw FixedLength(name + " has the number of steps in it");
    const std::string known = name + "_known";
    out.nodes.push_back({known + "_Shape", "Shape", "", {value(before[at]).name}, {known}, {}});
    OnnxNode whole{name + "_sizes_Concat", "Concat", "", {}, {name + "_sizes"}, {{"axis", int64_t{0}}}};
    for (size_t i = 0; i < to.size(); ++i) {
      const std::string size = fmt::format("{}_size_{}", name, i);
      const bool is_open = std::ranges::find(open, i) != open.end();
      const Tensor number = empty({1}, DType::i64);
      number.data<int64_t>()[0] = is_open ? static_cast<int64_t>(i) : sizes[i];
      constants_.emplace_back(is_open ? size + "_axis" : size, number);
      if (is_open)
        out.nodes.push_back({size + "_Gather", "Gather", "", {known, size + "_axis"}, {size}, {{"axis", int64_t{0}}}});
      whole.inputs.push_back(size);
    }
    out.nodes.push_back(whole);
    return whole.outputs[0];
  }

  /// Sizes of a reshape so that the model runs at any batch size: a batch axis that stays is copied (0), one that is
  /// alone in being (a multiple of) the batch is what is left (-1). A batch of 1 tells nothing of multiples.
  void any_batch(const Shape& from, std::vector<int64_t>& to) const {
    if (to.empty() || batch_ < 0) return;
    if (to[0] == batch_ && from.n > 0 && from[0] == batch_) {
      to[0] = 0;
      return;
    }
    if (batch_ < 2 || std::count(to.begin(), to.end(), -1) > 0) return;
    auto multiple = [this](int64_t v) { return v > 0 && v % batch_ == 0; };
    if (std::count_if(to.begin(), to.end(), multiple) == 1) *std::find_if(to.begin(), to.end(), multiple) = -1;
  }

  void node(OnnxGraph& out, size_t k) {
    const Graph::Node& n = g_.nodes[k];
    OnnxOp o = as_operator(n);
    std::string where = module_path(n.module).empty() ? "" : fmt::format(" of module '{}'", module_path(n.module));
    if (!n.writes.empty())
      throw Error(fmt::format("{}{} cannot be exported to ONNX: it writes to '{}', which is there already",
                              n.op->info.name, where, value(n.writes[0].before).name),
                  "export the model in evaluation mode");
    if (!o.unsupported.empty())
      throw Error(fmt::format("{}{} cannot be exported to ONNX: {}", n.op->info.name, where, o.unsupported));
    if (o.type.empty())
      throw Error(fmt::format("{}{} cannot be exported to ONNX: opset 17 has no operator of the same meaning",
                              n.op->info.name, where));
    OnnxNode node;
    node.op_type = o.type;
    // An operator of another domain ("org.example.Wave") has the op's attributes under their own names, unless the op
    // says otherwise.
    if (const size_t dot = o.type.rfind('.'); dot != o.type.npos) {
      node.domain = o.type.substr(0, dot);
      node.op_type = o.type.substr(dot + 1);
      domains_.insert(node.domain);
      if (!n.op->onnx && n.attrs)
        for (const Attr& a : n.op->attrs.values(n.attrs.get())) node.attributes.push_back(attribute_of(a));
    }
    node.name = fmt::format("{}_{}", n.op->info.name, k);
    for (int i : o.inputs) {
      int v = n.inputs[static_cast<size_t>(i)];
      if (v >= 0) used_[static_cast<size_t>(v)] = true;
      node.inputs.push_back(v < 0 ? "" : value(v).name);
    }
    for (const OnnxOp::Fill& f : o.fills)
      if (n.inputs[static_cast<size_t>(f.input)] < 0) {
        const Meta& like = value(n.inputs[static_cast<size_t>(std::max(0, f.like))]).meta;
        constants_.emplace_back(fmt::format("{}_arg{}", node.name, f.input),
                                full(f.like < 0 ? f.size : like.shape, f.value, like.dtype));
        node.inputs[static_cast<size_t>(f.input)] = constants_.back().first;
      }
    for (int i = 0; i < o.gaps; ++i) node.inputs.emplace_back();
    for (const std::vector<float>& list : o.lists) {
      Tensor t = empty({static_cast<int64_t>(list.size())});
      std::copy(list.begin(), list.end(), t.data<float>());
      constants_.emplace_back(fmt::format("{}_arg{}", node.name, node.inputs.size()), t);
      node.inputs.push_back(constants_.back().first);
    }
    for (OnnxOp::ConstantInput& c : o.constants) {
      std::string computed;
      if (o.type == "Reshape" && longer_)
        any_length(out, n, node.name, c.values, as_operator(longer_->nodes[k]).constants.at(0).values, computed);
      else if (o.type == "Reshape")
        any_batch(value(n.inputs[0]).meta.shape, c.values);
      if (!computed.empty()) {
        node.inputs.push_back(computed);
        continue;
      }
      Shape size;
      if (!c.scalar) size.push_back(static_cast<int64_t>(c.values.size()));
      Tensor t = empty(size, DType::i64);
      for (size_t i = 0; i < c.values.size(); ++i) t.data<int64_t>()[i] = c.values[i];
      constants_.emplace_back(fmt::format("{}_arg{}", node.name, node.inputs.size()), t);
      node.inputs.push_back(constants_.back().first);
    }
    for (double v : o.numbers) {
      constants_.emplace_back(fmt::format("{}_arg{}", node.name, node.inputs.size()),
                              scalar(v, value(n.inputs[0]).meta.dtype));
      node.inputs.push_back(constants_.back().first);
    }
    while (!node.inputs.empty() && node.inputs.back().empty()) node.inputs.pop_back();
    for (const auto& a : o.attributes) node.attributes.push_back(attribute_of(a));
    // Further outputs are what an op keeps for its own gradient (indices, statistics): no other op reads them in
    // evaluation.
    for (size_t k = 1; k < n.outputs.size(); ++k)
      for (const Graph::Node& other : g_.nodes)
        for (int v : other.inputs)
          if (v >= 0 && v == n.outputs[k])
            throw Error(fmt::format("output {} of {}{} cannot be exported to ONNX", k, n.op->info.name, where));
    node.outputs.push_back(value(n.outputs[0]).name);
    out.nodes.push_back(std::move(node));
  }

  const Graph& g_;
  const Graph* longer_;
  std::vector<RecurrentNodes> recurrent_;
  std::vector<bool> written_, made_;  ///< nodes; values that a node of the file makes, or its input is
  int64_t batch_ = -1, steps_ = -1;
  std::vector<bool> used_ = std::vector<bool>(g_.values.size());
  std::vector<std::pair<std::string, Tensor>> constants_;
  std::set<std::string> domains_;  ///< beside ONNX's own
};

}  // namespace

namespace {

bool is_one_operator(const Graph::Node& n) {
  const OnnxOp o = as_operator(n);
  return !o.type.empty() && o.unsupported.empty();
}

}  // namespace

Graph in_onnx_terms(const Graph& g, Recurrence recurrence) {
  std::set<const Graph::Node*> in_terms;
  for (const Graph::Node& n : g.nodes)
    if (!is_one_operator(n) && n.op->decompose) in_terms.insert(&n);
  if (recurrence == Recurrence::nodes && !in_terms.empty())
    for (const RecurrentNodes& r : recurrent_nodes(g))
      for (size_t k : r.instead) in_terms.erase(&g.nodes[k]);
  if (in_terms.empty()) return g;
  std::vector<Tensor> inputs;
  std::vector<std::pair<std::string, Tensor>> named;
  for (int v : g.inputs)
    inputs.push_back(zeros(g.values[static_cast<size_t>(v)].meta.shape, g.values[static_cast<size_t>(v)].meta.dtype));
  for (const Graph::Value& v : g.values)
    if (v.constant) named.emplace_back(v.name, v.constant);
  // The program is run again with those terms in place.
  Graph again = trace_graph(
      [&](const std::vector<Tensor>& in) {
        const std::vector<Tensor> values =
            graph_values(g, in, [&](const Graph::Node& n, const std::vector<Tensor>& args, std::vector<Tensor>& out) {
              if (in_terms.contains(&n))
                out[0] = n.op->decompose(n.attrs.get(), args);
              else
                run_node(n, args, out);
            });
        std::vector<Tensor> results;
        for (int v : g.outputs) results.push_back(values[static_cast<size_t>(v)]);
        return results;
      },
      inputs, named);
  for (size_t i = 0; i < g.inputs.size(); ++i)
    again.values[static_cast<size_t>(again.inputs[i])].name = g.values[static_cast<size_t>(g.inputs[i])].name;
  std::set<std::string> names;
  for (Graph::Value& v : again.values)
    while (!names.insert(v.name).second) v.name += "_";
  return again;
}

OnnxModel to_onnx(const Graph& graph, const std::string& name, const OnnxExport& how) {
  const Graph g = in_onnx_terms(graph, how.recurrence);
  if (how.longer) {
    const Graph longer = in_onnx_terms(*how.longer, how.recurrence);
    try {
      return Writer(g, {how.recurrence, &longer}).write(name);
    } catch (const FixedLength&) {  // then the model serves the steps of its trace
    }
  }
  return Writer(g, {how.recurrence}).write(name);
}

}  // namespace tenon::formats
