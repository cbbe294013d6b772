#include "engine/formats/onnx/fold_constants.h"

#include <algorithm>
#include <unordered_set>

#include "core/error.h"
#include "core/pool.h"
#include "core/state.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/onnx/value_flow.h"
#include "engine/ops/create.h"

namespace tenon::formats {
namespace {

/// Of the results that are kept: more would cost more memory than computing it again costs time.
constexpr size_t kMostBytes = size_t{64} << 20;

bool is_declared(const OnnxValue& v) {
  return v.form == OnnxValue::Form::tensor && v.typed && v.ranked && v.unsupported.empty() &&
         v.shape.size() <= kMaxDims &&
         std::all_of(v.shape.begin(), v.shape.end(), [](const OnnxDim& d) { return d.value >= 0; });
}

Shape declared_shape(const OnnxValue& v) {
  Shape s;
  for (const OnnxDim& d : v.shape) s.push_back(d.value);
  return s;
}

class Folding {
 public:
  explicit Folding(OnnxModel& model) : model_(model), g_(model.graph) {}

  KnownSizes run() {
    for (const auto& [name, t] : g_.initializers) known_[name] = t;
    for (const OnnxValue& v : g_.inputs) {
      known_.erase(v.name);
      if (is_declared(v)) known_[v.name] = empty(declared_shape(v), v.dtype, Device{DeviceType::meta});
    }
    const OnnxGraph before = g_;
    const ValueFlow flow(before);
    g_.nodes.clear();
    for (const OnnxNode& n : before.nodes) {
      OnnxNode node = n;
      rename(node, flow);
      if (passed(node, flow) || computed(node)) continue;
      g_.nodes.push_back(std::move(node));
    }
    drop_unread();
    KnownSizes sizes;
    for (const auto& [name, t] : known_) sizes[name] = t.meta();
    return sizes;
  }

 private:
  /// Names that bodies read stay what they are: a body is not rewritten.
  void rename(OnnxNode& n, const ValueFlow&) const {
    for (std::string& name : n.inputs)
      if (const auto at = same_.find(name); at != same_.end()) name = at->second;
  }
  bool passed(const OnnxNode& n, const ValueFlow& flow) {
    if (n.op_type != "Identity" || !n.domain.empty() || n.inputs.size() != 1 || n.outputs.size() != 1 || n.compiled)
      return false;
    if (flow.is_output(n.outputs[0]) || flow.is_read_within(n.outputs[0])) return false;
    same_[n.outputs[0]] = n.inputs[0];
    return true;
  }
  /// Runs a node as far as its inputs are known; true where it is needed no more.
  bool computed(const OnnxNode& n) {
    if (n.compiled) return false;
    std::vector<Tensor> in;
    for (const std::string& name : n.inputs) {
      const auto at = known_.find(name);
      if (!name.empty() && at == known_.end()) return false;
      in.push_back(name.empty() ? Tensor() : at->second);
    }
    int64_t opset = model_.opset;
    for (const auto& [domain, version] : model_.other_opsets)
      if (!n.domain.empty() && domain == n.domain) opset = version;
    std::vector<Tensor> out;
    try {
      out = run_onnx_node(n, in, opset);
    } catch (const Error&) {
      return false;  // it is told where it runs
    }
    // An operator that fills memory of its own from an input without memory has made nothing.
    const bool sizes_alone = n.domain.empty() && (n.op_type == "Shape" || n.op_type == "Size");
    bool all = sizes_alone || std::none_of(in.begin(), in.end(), [](const Tensor& t) { return t && t.is_meta(); });
    for (size_t k = 0; k < n.outputs.size(); ++k) {
      if (n.outputs[k].empty()) continue;
      if (k >= out.size() || !out[k]) return false;
      all = all && !out[k].is_meta() && out[k].nbytes() <= kMostBytes;
    }
    for (size_t k = 0; k < n.outputs.size(); ++k) {
      if (n.outputs[k].empty()) continue;
      known_[n.outputs[k]] = out[k];
      if (all) g_.initializers.emplace_back(n.outputs[k], out[k]);
      if (!all && !out[k].is_meta()) known_[n.outputs[k]] = empty(out[k].size(), out[k].dtype(), {DeviceType::meta});
    }
    return all;
  }

  void drop_unread() {
    std::unordered_set<std::string> inputs;
    for (const OnnxValue& v : g_.inputs) inputs.insert(v.name);
    for (bool any = true; any;) {
      const ValueFlow flow(g_);
      any = std::erase_if(g_.nodes, [&](const OnnxNode& n) {
              return std::all_of(n.outputs.begin(), n.outputs.end(), [&](const std::string& name) {
                return name.empty() || (flow.readers(name).empty() && !flow.is_output(name));
              });
            }) > 0;
    }
    const ValueFlow flow(g_);
    std::erase_if(g_.initializers, [&](const auto& i) {
      return flow.readers(i.first).empty() && !flow.is_output(i.first) && !inputs.contains(i.first);
    });
  }

  OnnxModel& model_;
  OnnxGraph& g_;
  std::unordered_map<std::string, Tensor> known_;  ///< constants; without memory where the size alone is known
  std::unordered_map<std::string, std::string> same_;
};

}  // namespace

KnownSizes fold_constants(OnnxModel& model) {
  const NoGrad off;
  // A model from an unknown source can want any size; what wants so much is told where it runs.
  const AllocationLimit bound(size_t{1} << 30);
  return Folding(model).run();
}

bool as_declared(const OnnxModel& model, const std::vector<OnnxItem>& inputs) {
  size_t next = 0;
  for (const OnnxValue& v : model.graph.inputs) {
    if (model.graph.initializer(v.name) && inputs.size() < model.graph.inputs.size()) continue;
    if (next >= inputs.size()) return false;
    const Tensor& t = inputs[next++].tensor;
    if (is_declared(v) && (!t || t.dtype() != v.dtype || !(t.size() == declared_shape(v)))) return false;
  }
  return next == inputs.size();
}

}  // namespace tenon::formats
