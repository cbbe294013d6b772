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
    auto [it, fresh] = known_.try_emplace(t.impl(), static_cast<int>(g_.values.size()));
    if (fresh) {
      held_.push_back(t);  // its address stays its own while the trace lasts
      g_.values.push_back(
          {name.empty() ? fmt::format("constant_{}", g_.values.size()) : name, t.meta(), -1, constant ? t : Tensor()});
    }
    return it->second;
  }

  void before(const Call&) override { ++depth_; }
  void after(const Call& call, int64_t, int64_t) override {
    if (--depth_ > 0) return;  // part of another op
    Graph::Node n;
    n.op = call.op;
    n.module = t_state.origin.module;
    if (call.attrs) n.attrs = call.op->attrs.copy_of(call.attrs);
    for (int i = 0; i < call.inputs; ++i) n.inputs.push_back(call.in[i].defined() ? add(call.in[i], "", true) : -1);
    for (int k = 0; k < call.outputs; ++k) {
      if (!call.out[k].defined()) {
        n.outputs.push_back(-1);
        continue;
      }
      auto it = known_.find(call.out[k].impl());
      if (it != known_.end())
        throw Error(fmt::format("{} writes into '{}' while the model is traced", call.op->info.name,
                                g_.values[static_cast<size_t>(it->second)].name),
                    "trace the model in evaluation mode; in-place updates have no place in an op graph");
      int v = add(call.out[k], fmt::format("{}_{}", call.op->info.name, g_.nodes.size()), false);
      g_.values[static_cast<size_t>(v)].producer = static_cast<int>(g_.nodes.size());
      n.outputs.push_back(v);
    }
    g_.nodes.push_back(std::move(n));
  }
  int find(const Tensor& t) const {
    auto it = known_.find(t.impl());
    return it == known_.end() ? -1 : it->second;
  }

 private:
  Graph& g_;
  int depth_ = 0;
  std::unordered_map<const TensorImpl*, int> known_;
  std::vector<Tensor> held_;
};

// Keeps the nodes that lead to an output and the values they touch.
Graph pruned(const Graph& g) {
  std::vector<bool> wanted(g.nodes.size());
  std::vector<int> stack(g.outputs);
  while (!stack.empty()) {
    int v = stack.back();
    stack.pop_back();
    int p = v < 0 ? -1 : g.values[static_cast<size_t>(v)].producer;
    if (p < 0 || wanted[static_cast<size_t>(p)]) continue;
    wanted[static_cast<size_t>(p)] = true;
    for (int i : g.nodes[static_cast<size_t>(p)].inputs) stack.push_back(i);
  }
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
  for (int v : g.inputs) out.inputs.push_back(keep(v));
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    if (!wanted[k]) continue;
    Graph::Node n = g.nodes[k];
    for (int& v : n.inputs) v = keep(v);
    for (int& v : n.outputs) {
      v = keep(v);
      if (v >= 0) out.values[static_cast<size_t>(v)].producer = static_cast<int>(out.nodes.size());
    }
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
