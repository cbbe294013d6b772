#include "engine/formats/onnx/export.h"

#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "core/error.h"
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

class Writer {
 public:
  explicit Writer(const Graph& g) : g_(g) {
    if (!g.inputs.empty() && g.values[static_cast<size_t>(g.inputs[0])].meta.shape.n > 0)
      batch_ = g.values[static_cast<size_t>(g.inputs[0])].meta.shape[0];
  }

  OnnxModel write(const std::string& name) {
    OnnxModel m;
    m.graph.name = name;
    for (const Graph::Node& n : g_.nodes) node(m.graph, n);
    for (int v : g_.inputs) m.graph.inputs.push_back(declared(v));
    for (int v : g_.outputs) m.graph.outputs.push_back(declared(v));
    for (size_t v = 0; v < g_.values.size(); ++v)
      if (used_[v] && g_.values[v].constant.defined())
        m.graph.initializers.emplace_back(g_.values[v].name, contiguous(detach_value(g_.values[v].constant)));
    for (auto& c : constants_) m.graph.initializers.push_back(std::move(c));
    for (const std::string& domain : domains_) m.other_opsets.emplace_back(domain, 1);
    validate(m.graph, name);
    return m;
  }

 private:
  static Tensor detach_value(const Tensor& t) { return view_of(t, t.layout()); }

  const Graph::Value& value(int v) const { return g_.values[static_cast<size_t>(v)]; }

  OnnxValue declared(int v) const {
    const Meta& m = value(v).meta;
    OnnxValue d{value(v).name, true, m.dtype, true, {}};
    for (int i = 0; i < m.shape.n; ++i)
      d.shape.push_back(i == 0 && m.shape[0] == batch_ ? OnnxDim{-1, "N"} : OnnxDim{m.shape[i], ""});
    return d;
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

  void node(OnnxGraph& out, const Graph::Node& n) {
    OnnxOp o;
    o.type = n.op->info.onnx;
    for (size_t i = 0; i < n.inputs.size(); ++i) o.inputs.push_back(static_cast<int>(i));
    if (n.op->onnx) n.op->onnx(n.attrs.get(), o);
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
    node.name = fmt::format("{}_{}", n.op->info.name, out.nodes.size());
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
      if (o.type == "Reshape") any_batch(value(n.inputs[0]).meta.shape, c.values);
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
  int64_t batch_ = -1;
  std::vector<bool> used_ = std::vector<bool>(g_.values.size());
  std::vector<std::pair<std::string, Tensor>> constants_;
  std::set<std::string> domains_;  ///< beside ONNX's own
};

}  // namespace

namespace {

bool is_one_operator(const Graph::Node& n) {
  OnnxOp o;
  o.type = n.op->info.onnx;
  if (n.op->onnx) n.op->onnx(n.attrs.get(), o);
  return !o.type.empty() && o.unsupported.empty();
}

}  // namespace

Graph in_onnx_terms(const Graph& g) {
  bool any = false;
  for (const Graph::Node& n : g.nodes) any |= !is_one_operator(n) && n.op->decompose;
  if (!any) return g;
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
            graph_values(g, in, [](const Graph::Node& n, const std::vector<Tensor>& args, std::vector<Tensor>& out) {
              if (n.op->decompose && !is_one_operator(n))
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

OnnxModel to_onnx(const Graph& graph, const std::string& name) {
  const Graph g = in_onnx_terms(graph);
  return Writer(g).write(name);
}

}  // namespace tenon::formats
