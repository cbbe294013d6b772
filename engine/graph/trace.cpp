#include <fmt/format.h>
#include <unordered_map>

#include "core/error.h"
#include "engine/graph/graph.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"

namespace tenon {
namespace {

class Tracer : public OpObserver {
 public:
  explicit Tracer(Graph& g) : g_(g) {}

  int add(const Tensor& t, const std::string& name, bool constant) {
    if (auto it = known_.find(t.impl()); it != known_.end()) return it->second;
    if (const int v = same_elements(t); v >= 0) {
      held_.push_back(t);
      return known_[t.impl()] = v;
    }
    known_[t.impl()] = static_cast<int>(g_.values.size());
    make_value(t, name.empty() ? fmt::format("constant_{}", g_.values.size()) : name, constant);
    return known_[t.impl()];
  }

  void before(const Call& call) override {
    if (running_)
      throw Error(fmt::format("{} runs inside the kernel of {}, which a graph cannot show", call.op->info.name,
                              running_->info.name),
                  "write it as ops that follow each other");
    running_ = call.op;
  }
  void after(const Call& call, int64_t, int64_t) override {
    running_ = nullptr;
    Graph::Node n;
    n.op = call.op;
    n.module = t_state.origin.module;
    if (call.attrs) n.attrs = call.op->attrs.copy_of(call.attrs);
    for (int i = 0; i < call.inputs; ++i) n.inputs.push_back(call.in[i].defined() ? add(call.in[i], "", true) : -1);
    for (int k = 0; k < call.outputs; ++k) n.outputs.push_back(call.out[k].defined() ? made(call.out[k], n) : -1);
    for (int i = 0; i < call.inputs; ++i)
      if ((call.op->writes >> i & 1u) && call.in[i].defined()) made(call.in[i], n);
    g_.nodes.push_back(std::move(n));
  }
  int find(const Tensor& t) const {
    auto it = known_.find(t.impl());
    return it == known_.end() ? -1 : it->second;
  }

 private:
  /// The value that another handle to the same elements has (detach() is no op), -1 where there is none.
  int same_elements(const Tensor& t) const {
    if (!t.storage() || !memories_.count(t.storage())) return -1;
    for (size_t i = held_.size(); i-- > 0;) {
      const Tensor& h = held_[i];
      if (h.storage() == t.storage() && h.offset() == t.offset() && h.size() == t.size() && h.stride() == t.stride() &&
          h.dtype() == t.dtype())
        return find(h);
    }
    return -1;
  }

  void make_value(const Tensor& t, std::string name, bool constant) {
    held_.push_back(t);  // its address stays its own while the trace lasts
    int memory = -1;
    if (t.storage()) memory = memories_.try_emplace(t.storage(), static_cast<int>(memories_.size())).first->second;
    g_.values.push_back({std::move(name), t.meta(), -1, memory, constant ? t : Tensor()});
  }

  /// What the node that is being made gives the tensor; where it was known before, that is a write.
  int made(const Tensor& t, Graph::Node& n) {
    const int before = find(t), v = static_cast<int>(g_.values.size());
    known_[t.impl()] = v;
    make_value(t, fmt::format("{}_{}", n.op->info.name, g_.nodes.size()), false);
    g_.values.back().producer = static_cast<int>(g_.nodes.size());
    if (before >= 0) n.writes.push_back({before, v});
    return v;
  }

  Graph& g_;
  const OpDef* running_ = nullptr;
  std::unordered_map<const TensorImpl*, int> known_;
  std::unordered_map<const Storage*, int> memories_;
  std::vector<Tensor> held_;
};

/// The nodes that lead to an output or to a write that is seen: of memory that an output, an input, a constant or a
/// wanted node's input lies in.
std::vector<bool> wanted_nodes(const Graph& g) {
  std::vector<bool> node(g.nodes.size()), value(g.values.size()), memory(g.values.size());
  auto want = [&](int v) {
    if (v < 0) return;
    value[static_cast<size_t>(v)] = true;
    if (int m = g.values[static_cast<size_t>(v)].memory; m >= 0) memory[static_cast<size_t>(m)] = true;
  };
  for (int v : g.outputs) want(v);
  for (size_t v = 0; v < g.values.size(); ++v)
    if (g.values[v].producer < 0 && g.values[v].memory >= 0) memory[static_cast<size_t>(g.values[v].memory)] = true;
  for (bool grown = true; grown;) {
    grown = false;
    for (size_t k = g.nodes.size(); k-- > 0;) {
      const Graph::Node& n = g.nodes[k];
      bool seen = false;
      for (int v : n.outputs) seen |= v >= 0 && value[static_cast<size_t>(v)];
      for (const Graph::Write& w : n.writes)
        if (int m = g.values[static_cast<size_t>(w.after)].memory; m >= 0) seen |= memory[static_cast<size_t>(m)];
      if (!seen || node[k]) continue;
      node[k] = grown = true;
      for (int v : n.inputs) want(v);
    }
  }
  return node;
}

// Keeps the wanted nodes and the values they touch.
Graph pruned(const Graph& g) {
  const std::vector<bool> wanted = wanted_nodes(g);
  Graph out;
  std::vector<int> map(g.values.size(), -1);
  auto keep = [&](int v) {
    if (v < 0) return -1;
    int& m = map[static_cast<size_t>(v)];
    if (m < 0) {
      m = static_cast<int>(out.values.size());
      out.values.push_back(g.values[static_cast<size_t>(v)]);
      out.values.back().producer = -1;
    }
    return m;
  };
  auto keep_made = [&](int v) {
    v = keep(v);
    if (v >= 0) out.values[static_cast<size_t>(v)].producer = static_cast<int>(out.nodes.size());
    return v;
  };
  for (int v : g.inputs) out.inputs.push_back(keep(v));
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    if (!wanted[k]) continue;
    Graph::Node n = g.nodes[k];
    for (int& v : n.inputs) v = keep(v);
    for (int& v : n.outputs) v = keep_made(v);
    for (Graph::Write& w : n.writes) w = {keep(w.before), keep_made(w.after)};
    out.nodes.push_back(std::move(n));
  }
  for (int v : g.outputs) out.outputs.push_back(keep(v));
  return out;
}

}  // namespace

Graph trace_graph(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                  const std::vector<Tensor>& inputs, const std::vector<std::pair<std::string, Tensor>>& named) {
  Graph g;
  Tracer tracer(g);
  for (size_t i = 0; i < inputs.size(); ++i)
    g.inputs.push_back(tracer.add(inputs[i], inputs.size() == 1 ? "input" : fmt::format("input_{}", i), false));
  for (const auto& [name, t] : named) tracer.add(t, name, true);
  std::vector<Tensor> results;
  {
    NoGrad off;
    ObserveScope observe(tracer);
    results = f(inputs);
  }
  for (const Tensor& t : results) {
    int v = tracer.find(t);
    if (v < 0) throw Error("the traced function returned a tensor that no op made");
    g.outputs.push_back(v);
  }
  return pruned(g);
}

void run_node(const Graph::Node& node, const std::vector<Tensor>& in, std::vector<Tensor>& out) {
  dispatch(*node.op, node.attrs.get(), in.data(), static_cast<int>(in.size()), out.data());
}

std::vector<Tensor> graph_values(const Graph& graph, const std::vector<Tensor>& inputs, const NodeRunner& run) {
  if (inputs.size() != graph.inputs.size())
    throw Error(fmt::format("{} inputs were given, the graph has {}", inputs.size(), graph.inputs.size()));
  std::vector<Tensor> values(graph.values.size());
  for (size_t v = 0; v < values.size(); ++v) values[v] = graph.values[v].constant;
  for (size_t i = 0; i < inputs.size(); ++i) values[static_cast<size_t>(graph.inputs[i])] = inputs[i];
  for (const Graph::Node& n : graph.nodes) {
    const ModuleScope module(n.module);
    std::vector<Tensor> args, out(static_cast<size_t>(n.op->info.outputs));
    for (int v : n.inputs) args.push_back(v < 0 ? Tensor() : values[static_cast<size_t>(v)]);
    run(n, args, out);
    for (size_t k = 0; k < n.outputs.size(); ++k)
      if (n.outputs[k] >= 0) values[static_cast<size_t>(n.outputs[k])] = out[k];
  }
  return values;
}

Graph trace_graph(nn::Module& module, const Meta& input) {
  std::vector<std::pair<std::string, Tensor>> named;
  for (const auto& p : module.parameters()) named.emplace_back(p.name, p.tensor);
  for (const auto& b : module.buffers()) named.emplace_back(b.name, b.tensor);
  bool training = module.training();
  module.train(false);
  struct Restore {
    nn::Module& m;
    bool on;
    ~Restore() { m.train(on); }
  } restore{module, training};
  // Zeros: whatever the memory held would be no token of an embedding.
  return trace_graph([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{module(in[0])}; },
                     {zeros(input.shape, input.dtype)}, named);
}

}  // namespace tenon
