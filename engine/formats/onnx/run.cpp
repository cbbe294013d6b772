#include "engine/formats/onnx/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/pool.h"
#include "engine/formats/onnx/operator.h"
#include "engine/op/op.h"
#include "engine/ops/view.h"
#include "engine/spec/attr.h"

namespace tenon::formats {

/// The values of one graph while it runs, inside those of the graph around it.
class OnnxScope {
 public:
  struct Run {
    const OnnxModel& model;
    const OnnxLimits& limits;
    int64_t nodes = 0, at = 0;  ///< run so far; the place of the model's own node that is at work
    bool random = false;
    std::unordered_map<const OnnxGraph*, std::vector<std::vector<std::string>>> last_reads = {};
  };
  OnnxScope(Run& run, const OnnxGraph& graph, const OnnxScope* outer) : run_(run), graph_(graph), outer_(outer) {}

  std::vector<OnnxItem> execute(const std::vector<OnnxItem>& inputs) {
    for (const auto& [name, t] : graph_.initializers) values_[name] = OnnxItem(t);
    size_t next = 0;
    for (const OnnxValue& v : graph_.inputs) {
      if (values_.count(v.name) && inputs.size() < graph_.inputs.size())
        continue;  // an initializer is the default of this input
      if (next >= inputs.size())
        throw Error(
            fmt::format("the model needs a value for its input '{}', only {} were given", v.name, inputs.size()));
      values_[v.name] = inputs[next++];
    }
    if (next < inputs.size()) throw Error(fmt::format("{} inputs were given, the model has {}", inputs.size(), next));
    const auto& done = last_reads();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!outer_) run_.at = static_cast<int64_t>(i);
      step(graph_.nodes[i]);
      for (const std::string& name : done[i]) values_.erase(name);
    }
    std::vector<OnnxItem> results;
    for (const OnnxValue& v : graph_.outputs) results.push_back(find(v.name));
    return results;
  }
  std::vector<OnnxItem> body(const OnnxGraph& graph, const std::vector<OnnxItem>& inputs) {
    return OnnxScope(run_, graph, this).execute(inputs);
  }
  void draws_random() { run_.random = true; }

 private:
  const OnnxItem& find(const std::string& name) const {
    for (const OnnxScope* s = this; s; s = s->outer_)
      if (auto it = s->values_.find(name); it != s->values_.end()) return it->second;
    throw Error(fmt::format("nothing has made \"{}\"", name));
  }
  void step(const OnnxNode& n);
  const std::vector<std::vector<std::string>>& last_reads();

  Run& run_;
  const OnnxGraph& graph_;
  const OnnxScope* outer_;
  std::unordered_map<std::string, OnnxItem> values_;
};

namespace {

struct OnnxDef {
  std::string name;
  OnnxOperator run;
};
Registry<OnnxDef>& operators() {
  static auto& all = *new Registry<OnnxDef>("ONNX operator");
  return all;
}

// A pointwise op without attributes means the same in ONNX: one table for both directions, the registry's own.
const OpDef* pointwise_op(const std::string& type) {
  using Table = std::unordered_map<std::string, const OpDef*>;
  static auto& cache = *new MadeOfRegistries<Table>([] {
    Table t;
    for (const OpDef& op : all_ops())
      if (op.info.kind == OpKind::pointwise && *op.info.onnx && !op.onnx) t.emplace(op.info.onnx, &op);
    return t;
  });
  const Table& table = cache.get();
  auto it = table.find(type);
  return it == table.end() ? nullptr : it->second;
}

/// An op of another domain, by the full name in its OpInfo: what a plug-in exports runs again without an entry here.
const OpDef* domain_op(const std::string& type) {
  using Table = std::unordered_map<std::string, const OpDef*>;
  static auto& cache = *new MadeOfRegistries<Table>([] {
    Table t;
    for (const OpDef& op : all_ops())
      if (std::strchr(op.info.onnx, '.')) t.emplace(op.info.onnx, &op);
    return t;
  });
  const Table& table = cache.get();
  auto it = table.find(type);
  return it == table.end() ? nullptr : it->second;
}

std::vector<OnnxItem> run_domain_op(const OpDef& op, const OnnxCall& call) {
  std::vector<Attr> values;
  for (const OnnxAttribute& a : call.node.attributes) {
    if (const auto* i = std::get_if<int64_t>(&a.value)) values.push_back({a.name, *i});
    if (const auto* x = std::get_if<double>(&a.value)) values.push_back({a.name, *x});
    if (const auto* s = std::get_if<std::string>(&a.value)) values.push_back({a.name, *s});
    if (const auto* l = std::get_if<std::vector<int64_t>>(&a.value)) values.push_back({a.name, *l});
  }
  if (op.arity >= 0 && static_cast<int>(call.in.size()) > op.arity)
    throw Error(fmt::format("{} inputs were given; it takes {}", call.in.size(), op.arity));
  std::vector<Tensor> in = call.in, out(static_cast<size_t>(op.info.outputs));
  if (op.arity >= 0) in.resize(static_cast<size_t>(op.arity));
  dispatch(op, op.attrs.make(values, op.info.name).get(), in.data(), static_cast<int>(in.size()), out.data());
  return {out.begin(), out.end()};
}

std::string label(const OnnxNode& n) { return n.name.empty() ? n.op_type : fmt::format("{} '{}'", n.op_type, n.name); }
std::string full_type(const OnnxNode& n) {
  return n.domain.empty() || n.domain == "ai.onnx" ? n.op_type : n.domain + "." + n.op_type;
}

std::vector<OnnxItem> run_node(const OnnxCall& call) {
  const OnnxNode& n = call.node;
  if (n.compiled) return n.compiled(call);
  if (const OnnxDef* def = operators().find(full_type(n))) return def->run(call);
  if (const OpDef* op = domain_op(full_type(n))) return run_domain_op(*op, call);
  const OpDef* op = pointwise_op(n.op_type);
  // Max and Min take any number of operands, the others exactly theirs: fold from the left.
  std::vector<Tensor> in = call.in;
  bool folds = n.op_type == "Max" || n.op_type == "Min";
  bool missing = std::any_of(in.begin(), in.end(), [](const Tensor& t) { return !t.defined(); });
  if (missing || (folds ? in.empty() : static_cast<int>(in.size()) != op->arity))
    throw Error(fmt::format("{} inputs were given; it takes {}, none of them empty", in.size(),
                            folds ? "one or more" : std::to_string(op->arity)));
  NoAttrs none;
  while (in.size() > 2 && folds) {
    Tensor out;
    dispatch(*op, &none, in.data(), 2, &out);
    in.erase(in.begin());
    in[0] = out;
  }
  if (in.size() == 1 && folds) return {in[0]};
  Tensor out;
  dispatch(*op, &none, in.data(), static_cast<int>(in.size()), &out);
  return {out};
}

/// Whatever goes wrong is told of the node.
std::vector<OnnxItem> run_labelled(const OnnxCall& call) {
  try {
    return run_node(call);
  } catch (const OnnxUnsupported& e) {
    if (e.message().starts_with(label(call.node))) throw;
    throw OnnxUnsupported(fmt::format("{}: {}", label(call.node), e.message()), e.hint());
  } catch (const Error& e) {
    if (e.message().starts_with("in " + label(call.node))) throw;  // of one of several nodes that run as one
    throw e.in(label(call.node));
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  throw Error(fmt::format("{}: out of memory", label(call.node)));
}

/// A view takes no memory, but whoever reads it takes the time of its size.
void check_size(const OnnxNode& n, const Tensor& t, size_t bytes) {
  if (t && t.numel() > static_cast<int64_t>(std::min<size_t>(bytes, INT64_MAX) / itemsize(t.dtype())))
    throw Error(fmt::format("{}: a tensor of size {} has more than {} bytes", label(n), to_string(t.size()), bytes));
}

size_t machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(page) : SIZE_MAX;
}

}  // namespace

void OnnxScope::step(const OnnxNode& n) {
  if (run_.limits.go_on && !run_.limits.go_on(run_.at, static_cast<int64_t>(run_.model.graph.nodes.size())))
    throw Error("the run was stopped");
  if (std::string why = onnx_unsupported(n); !why.empty())
    throw OnnxUnsupported(fmt::format("{}: {} is not supported", label(n), why));
  if (run_.limits.nodes && ++run_.nodes > run_.limits.nodes)
    throw Error(fmt::format("the model runs more than {} nodes", run_.limits.nodes));
  OnnxCall call{n, {}, run_.model.opset, {}, this};
  if (!n.domain.empty())
    for (const auto& [domain, version] : run_.model.other_opsets)
      if (domain == n.domain) call.opset = version;
  for (const std::string& name : n.inputs) {
    call.items.push_back(name.empty() ? OnnxItem() : find(name));
    call.in.push_back(call.items.back().tensor);
  }
  std::vector<OnnxItem> out = run_labelled(call);
  if (run_.limits.tensor_bytes)
    for (const OnnxItem& i : out) check_size(n, i.tensor, run_.limits.tensor_bytes);
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    if (n.outputs[k].empty()) continue;
    if (k >= out.size()) throw OnnxUnsupported(fmt::format("{}: output {} is not supported", label(n), k));
    values_[n.outputs[k]] = std::move(out[k]);
  }
}

static void names_read(const OnnxGraph& g, std::vector<std::string>& out);
static void names_read(const OnnxNode& n, std::vector<std::string>& out) {
  out.insert(out.end(), n.inputs.begin(), n.inputs.end());
  for (const OnnxAttribute& a : n.attributes)
    if (const auto* body = std::get_if<std::shared_ptr<OnnxGraph>>(&a.value)) names_read(**body, out);
}
static void names_read(const OnnxGraph& g, std::vector<std::string>& out) {
  for (const OnnxNode& n : g.nodes) names_read(n, out);
  for (const OnnxValue& v : g.outputs) out.push_back(v.name);
}

/// The values that each node is the last to read: they are given up behind it. What nobody reads goes as soon as it is
/// made.
const std::vector<std::vector<std::string>>& OnnxScope::last_reads() {
  auto [it, fresh] = run_.last_reads.try_emplace(&graph_);
  if (!fresh) return it->second;
  it->second.resize(graph_.nodes.size());
  std::unordered_set<std::string> seen;
  for (const OnnxValue& v : graph_.outputs) seen.insert(v.name);
  for (size_t i = graph_.nodes.size(); i-- > 0;) {
    std::vector<std::string> names = graph_.nodes[i].outputs;
    names_read(graph_.nodes[i], names);
    for (std::string& name : names)
      if (!name.empty() && seen.insert(name).second) it->second[i].push_back(std::move(name));
  }
  return it->second;
}

void need_work(double count) {
  if (!(count <= static_cast<double>(allocation_limit())))
    throw Error(fmt::format("{:.3g} steps of work, more than a tensor may have bytes here", count));
}

const Tensor& OnnxCall::input(size_t i) const {
  if (!has(i)) throw Error(fmt::format("input {} is missing", i));
  return in[i];
}

const std::vector<Tensor>& OnnxCall::inputs() const {
  for (size_t i = 0; i < in.size(); ++i) input(i);
  return in;
}

const std::vector<Tensor>& OnnxCall::sequence(size_t i) const {
  if (i >= items.size() || !items[i].sequence) throw Error(fmt::format("input {} is no sequence", i));
  return *items[i].sequence;
}

std::vector<int64_t> OnnxCall::list(size_t i, const std::string& attribute,
                                    const std::vector<int64_t>& fallback) const {
  if (!has(i)) return node.integers(attribute, fallback);
  if (in[i].is_meta()) throw OnnxUnsupported(fmt::format("input {} decides sizes, and is known only at a run", i));
  Tensor t = contiguous(cast(in[i], DType::i64));
  return std::vector<int64_t>(t.data<int64_t>(), t.data<int64_t>() + t.numel());
}

int64_t OnnxCall::whole(size_t i) const {
  if (input(i).numel() != 1)
    throw Error(fmt::format("input {} has size {}; it is one number", i, to_string(in[i].size())));
  return list(i, "")[0];
}

std::vector<OnnxItem> OnnxCall::run(const std::string& attribute, const std::vector<OnnxItem>& inputs) const {
  const OnnxAttribute::Value* v = node.find(attribute);
  const auto* graph = v ? std::get_if<std::shared_ptr<OnnxGraph>>(v) : nullptr;
  if (!graph) throw Error(fmt::format("its body \"{}\" is missing", attribute));
  if (!scope) throw OnnxUnsupported("it has a body");
  return scope->body(**graph, inputs);
}
void OnnxCall::draws_random() const {
  if (!scope) throw OnnxUnsupported("it draws random numbers");
  scope->draws_random();
}

bool register_onnx(const std::string& op_type, OnnxOperator run, Place place) {
  return operators().add({op_type, std::move(run)}, place);
}
bool register_onnx(const std::string& op_type, OnnxTensorOperator run, Place place) {
  return register_onnx(op_type, OnnxOperator([run = std::move(run)](const OnnxCall& c) {
                         std::vector<Tensor> out = run(c);
                         return std::vector<OnnxItem>(out.begin(), out.end());
                       }),
                       place);
}

const OpDef* onnx_pointwise(const OnnxNode& n) {
  const bool other = n.compiled || !(n.domain.empty() || n.domain == "ai.onnx") || operators().find(n.op_type);
  return other ? nullptr : pointwise_op(n.op_type);
}

std::string onnx_unsupported(const OnnxNode& n) {
  if (n.compiled || operators().find(full_type(n)) || domain_op(full_type(n))) return {};
  if (!n.domain.empty() && n.domain != "ai.onnx")
    return fmt::format("operator {} of the domain '{}'", n.op_type, n.domain);
  if (pointwise_op(n.op_type)) return {};
  return fmt::format("operator {}", n.op_type);
}

std::vector<Tensor> run_onnx_node(const OnnxNode& node, const std::vector<Tensor>& inputs, int64_t opset) {
  if (std::string why = onnx_unsupported(node); !why.empty())
    throw OnnxUnsupported(fmt::format("{}: {} is not supported", label(node), why));
  OnnxCall call{node, inputs, opset, {inputs.begin(), inputs.end()}, nullptr};
  std::vector<Tensor> out;
  for (OnnxItem& i : run_labelled(call)) {
    if (i.sequence) throw OnnxUnsupported(label(node) + ": it makes a sequence");
    check_size(node, i.tensor, allocation_limit());
    out.push_back(std::move(i.tensor));
  }
  return out;
}

size_t tensor_bound(const OnnxLimits& limits) { return limits.tensor_bytes ? limits.tensor_bytes : machine_memory(); }

OnnxResult run_onnx_items(const OnnxModel& model, const std::vector<OnnxItem>& inputs, const OnnxLimits& limits) {
  NoGrad off;
  const AllocationLimit bound(tensor_bound(limits));
  OnnxScope::Run run{.model = model, .limits = limits};
  OnnxResult result;
  result.outputs = OnnxScope(run, model.graph, nullptr).execute(inputs);
  result.random = run.random;
  return result;
}

std::vector<Tensor> run_onnx(const OnnxModel& model, const std::vector<Tensor>& inputs, const OnnxLimits& limits) {
  std::vector<Tensor> out;
  for (const OnnxItem& i : run_onnx_items(model, {inputs.begin(), inputs.end()}, limits).outputs) {
    if (!i.tensor) throw Error("an output of the model is no tensor");
    out.push_back(i.tensor);
  }
  return out;
}

}  // namespace tenon::formats
