#include "engine/formats/jit/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/pool.h"
#include "core/state.h"
#include "engine/formats/aten/rule.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/torch/exported_archive.h"
#include "engine/formats/torch/types.h"
#include "engine/ops/create.h"

namespace tenon::formats {
namespace {

using ArgumentKind = AtenArgument::Kind;
using ParameterType = AtenParameter::Type;

constexpr size_t kMostNodes = 50'000;

Tensor without_memory(const Shape& size, DType t) { return empty(size, t, Device{DeviceType::meta}); }

/// The number that torch.export has for a type, by the one that TorchScript has.
std::optional<int64_t> type_of_number(int64_t n) {
  static const std::map<int64_t, const char*> names = {{0, "uint8"}, {1, "int8"},     {2, "int16"},   {3, "int32"},
                                                       {4, "int64"}, {5, "float16"},  {6, "float32"}, {7, "float64"},
                                                       {11, "bool"}, {15, "bfloat16"}};
  const auto it = names.find(n);
  return it == names.end() ? std::nullopt : std::optional(exported_type_number(it->second));
}

bool is_in_place(const std::string& op) { return op.size() > 1 && op.ends_with('_') && !op.ends_with("__"); }
std::string without_place(const std::string& op) { return is_in_place(op) ? op.substr(0, op.size() - 1) : op; }

bool fits_list(const AtenParameter& p, const std::vector<JitValue>& items, AtenArgument& a) {
  const auto all = [&](auto&& is) { return std::all_of(items.begin(), items.end(), is); };
  switch (p.type) {
    case ParameterType::tensor:
      a.kind = ArgumentKind::tensors;
      for (const JitValue& v : items) a.names.push_back(v.is_tensor() ? v.text : "");
      return all([](const JitValue& v) { return v.is_tensor() || v.kind == JitValue::Kind::none; });
    case ParameterType::integer:
      a.kind = ArgumentKind::integers;
      for (const JitValue& v : items) a.ints.push_back(v.whole);
      return all([](const JitValue& v) { return v.kind == JitValue::Kind::whole; });
    case ParameterType::real:
      a.kind = ArgumentKind::reals;
      for (const JitValue& v : items)
        a.reals.push_back(v.kind == JitValue::Kind::real ? v.real : static_cast<double>(v.whole.value));
      return all([](const JitValue& v) { return v.kind == JitValue::Kind::real || v.is_known_whole(); });
    default:
      return false;
  }
}

/// Whether a parameter takes a value, as `a`.
bool takes(const AtenParameter& p, const JitValue& v, AtenArgument& a) {
  a = {};
  if (v.kind == JitValue::Kind::none) return p.optional || p.type == ParameterType::other;
  if (p.type == ParameterType::other) return true;  // devices, layouts: there is one here
  if (v.kind == JitValue::Kind::list) return p.list && fits_list(p, *v.items, a);
  if (p.list) return p.count > 0 && v.kind == JitValue::Kind::whole && fits_list(p, {v}, a);
  switch (p.type) {
    case ParameterType::tensor:
      a.kind = ArgumentKind::tensor;
      a.names = {v.text};
      return v.is_tensor();
    case ParameterType::integer:
      a.kind = ArgumentKind::integer;
      a.ints = {v.whole};
      return v.kind == JitValue::Kind::whole;
    case ParameterType::real:
    case ParameterType::number:
      if (v.kind == JitValue::Kind::whole && (p.type == ParameterType::number || v.whole.name.empty())) {
        a.kind = ArgumentKind::integer;
        a.ints = {v.whole};
        if (p.type == ParameterType::real)
          a = {.kind = ArgumentKind::real, .reals = {static_cast<double>(v.whole.value)}};
        return true;
      }
      if (v.kind == JitValue::Kind::truth && p.type == ParameterType::number) {
        a.kind = ArgumentKind::truth;
        a.truth = v.truth;
        return true;
      }
      a.kind = ArgumentKind::real;
      a.reals = {v.real};
      return v.kind == JitValue::Kind::real;
    case ParameterType::truth:
      a.kind = ArgumentKind::truth;
      a.truth = v.truth;
      return v.kind == JitValue::Kind::truth;
    case ParameterType::text:
      a.kind = ArgumentKind::text;
      a.text = v.text;
      return v.kind == JitValue::Kind::text;
    case ParameterType::type: {
      const auto number = v.is_known_whole() ? type_of_number(v.whole.value) : std::nullopt;
      a.kind = ArgumentKind::type;
      a.ints = {{number.value_or(0), {}}};
      return number.has_value();
    }
    case ParameterType::other:
      break;
  }
  return false;
}

}  // namespace

JitGraph::JitGraph(const std::map<std::string, Tensor>& weights, const std::vector<DType>& types,
                   const std::vector<std::vector<Shape>>& tried)
    : tries_(tried.size()), program_(begun(weights, types, tried)), conversion_(program_, weights) {
  for (size_t i = 0; i < types.size(); ++i)
    for (const std::vector<Shape>& sizes : tried)
      values_[conversion_.value(program_.inputs[i])].push_back(without_memory(sizes.at(i), types[i]));
}

/// What is known before the code is read.
AtenProgram JitGraph::begun(const std::map<std::string, Tensor>& weights, const std::vector<DType>& types,
                            const std::vector<std::vector<Shape>>& tried) {
  AtenProgram p;
  for (const auto& [name, t] : weights) {
    p.held.push_back({"held:" + name, name, AtenProgram::Holds::parameter});
    p.tensors["held:" + name] = meta_of({t});
  }
  for (size_t i = 0; i < types.size(); ++i) {
    std::vector<Tensor> all;
    for (const std::vector<Shape>& sizes : tried) all.push_back(without_memory(sizes.at(i), types[i]));
    p.inputs.push_back(types.size() == 1 ? "input" : fmt::format("input_{}", i));
    p.tensors[p.inputs.back()] = meta_of(all);
  }
  return p;
}

AtenTensor JitGraph::meta_of(const std::vector<Tensor>& tried) {
  AtenTensor meta{tried[0].dtype(), true, {}};
  for (int i = 0; i < tried[0].ndim(); ++i) {
    std::vector<int64_t> sizes;
    for (const Tensor& t : tried) {
      if (t.ndim() != tried[0].ndim()) throw OnnxUnsupported("how many axes it has depends on the inputs' sizes");
      sizes.push_back(t.size(i));
    }
    if (std::count(sizes.begin(), sizes.end(), sizes[0]) == static_cast<int64_t>(sizes.size()))
      meta.sizes.push_back({sizes[0], {}});
    else
      meta.sizes.push_back({-1, names_.emplace(sizes, fmt::format("s{}", names_.size())).first->second});
  }
  return meta;
}

JitValue JitGraph::weight(const std::string& name) const {
  return program_.tensors.contains("held:" + name) ? JitValue::tensor("held:" + name) : JitValue();
}

const AtenTensor& JitGraph::meta(const std::string& tensor) const {
  const auto it = program_.tensors.find(tensor);
  if (it == program_.tensors.end()) throw OnnxUnsupported("it asks for the sizes of what is no tensor");
  return it->second;
}

JitValue JitGraph::size(const std::string& tensor, int64_t axis, const std::string& scope) {
  const std::vector<OnnxDim>& sizes = meta(tensor).sizes;
  const auto n = static_cast<int64_t>(sizes.size());
  if (axis < -n || axis >= n) throw Error(fmt::format("axis {} of a tensor that has {}", axis, n));
  const OnnxDim& d = sizes[static_cast<size_t>(axis < 0 ? axis + n : axis)];
  if (d.value >= 0) return JitValue::number(d.value);
  AtenNode node{.target = "aten.sym_size.int", .whole = true, .name = {}, .scope = scope};
  node.inputs = {{"self", {.kind = ArgumentKind::tensor, .names = {tensor}}},
                 {"dim", {.kind = ArgumentKind::integer, .ints = {{axis, {}}}}}};
  const std::string expression = d.name, name = add(std::move(node), 1, true);
  program_.numbers[name] = expression;
  return {.kind = JitValue::Kind::whole, .whole = {0, name}};
}

bool JitGraph::same(const AtenInt& a, const AtenInt& b) const {
  if (a.name.empty() && b.name.empty()) return a.value == b.value;
  const auto one = program_.numbers.find(a.name), other = program_.numbers.find(b.name);
  if (a.name == b.name ||
      (one != program_.numbers.end() && other != program_.numbers.end() && one->second == other->second))
    return true;
  throw OnnxUnsupported("what it does depends on a size that is known only at a run");
}

JitValue JitGraph::count(const std::string& op, const AtenInt& a, const AtenInt& b) {
  AtenNode node{.target = "_operator." + op, .whole = true};
  node.inputs = {{"a", {.kind = ArgumentKind::integer, .ints = {a}}},
                 {"b", {.kind = ArgumentKind::integer, .ints = {b}}}};
  return {.kind = JitValue::Kind::whole, .whole = {0, add(std::move(node), 1, true)}};
}

JitGraph::Chosen JitGraph::choose(const std::string& op, const std::vector<JitValue>& args,
                                  const std::vector<std::pair<std::string, JitValue>>& named) const {
  for (const AtenSchema* s : aten_overloads(op)) {
    Chosen c{s, {}};
    bool fits = args.size() <= s->parameters.size();
    for (size_t i = 0; fits && i < s->parameters.size(); ++i) {
      const AtenParameter& p = s->parameters[i];
      const JitValue* given = i < args.size() ? &args[i] : nullptr;
      for (const auto& [name, v] : named)
        if (name == p.name) given = &v;
      if (!given) {
        fits = p.has_default || p.optional;
        continue;
      }
      AtenArgument a;
      fits = takes(p, *given, a);
      c.inputs.emplace_back(p.name, std::move(a));
    }
    for (const auto& [name, v] : named) {
      static const std::vector<std::string> about_memory = {"layout", "device", "pin_memory", "memory_format", "dtype"};
      const bool none =
          v.kind == JitValue::Kind::none ||
          (name != "dtype" && std::find(about_memory.begin(), about_memory.end(), name) != about_memory.end());
      fits = fits && (s->find(name) || none);
    }
    if (fits) return c;
  }
  return {};
}

/// How many tensors a list has.
size_t JitGraph::results(const AtenSchema& schema, const AtenNode& node) const {
  if (!schema.gives_list) return schema.results;
  int64_t axis = 0, number = 1;
  size_t parts = 0;
  const std::vector<OnnxDim>* sizes = nullptr;
  for (const auto& [name, a] : node.inputs) {
    if (a.kind == ArgumentKind::tensor) sizes = &meta(a.names[0]).sizes;
    if (name == "dim" && a.kind == ArgumentKind::integer) axis = a.ints[0].value;
    if ((name == "split_size" || name == "chunks") && a.kind == ArgumentKind::integer) number = a.ints[0].value;
    if (name == "split_sizes") parts = a.ints.size();
  }
  const auto counted = [](int64_t n) {
    if (n > static_cast<int64_t>(JitValue::kMostItems)) throw OnnxUnsupported("it divides into too many parts");
    return static_cast<size_t>(std::max<int64_t>(n, 1));
  };
  if (parts) return parts;
  const auto n = static_cast<int64_t>(sizes ? sizes->size() : 0);
  if (axis < 0) axis += n;
  if (axis < 0 || axis >= n || number < 1) throw Error("it is divided along an axis that it does not have");
  const int64_t size = (*sizes)[static_cast<size_t>(axis)].value;
  if (size < 0) throw OnnxUnsupported("into how many parts it divides is known only at a run");
  if (schema.op == "unbind") return counted(size);
  const int64_t each = schema.op == "chunk" ? std::max<int64_t>(size / number + (size % number != 0), 1) : number;
  return counted(size / each + (size % each != 0));
}

bool JitGraph::has_rule(const std::string& op) { return aten_rules().find(without_place(op)) != nullptr; }

JitValue JitGraph::call(const std::string& op, const std::vector<JitValue>& args,
                        const std::vector<std::pair<std::string, JitValue>>& named, const std::string& scope) {
  const bool in_place = is_in_place(op);
  const std::string base = without_place(op);
  if (!has_rule(op)) throw OnnxUnsupported("there is no rule for this operator");
  Chosen chosen = choose(base, args, named);
  if (!chosen.schema) throw OnnxUnsupported("there is no rule for what the operator is given");
  AtenNode node{
      .target = "aten." + op + "." + chosen.schema->overload, .inputs = std::move(chosen.inputs), .scope = scope};
  const size_t count = results(*chosen.schema, node);
  const std::string first = add(std::move(node), count, false);
  if (count == 1 && !chosen.schema->gives_list) return JitValue::tensor(in_place ? args.at(0).text : first);
  std::vector<JitValue> all;
  for (const std::string& name : program_.nodes.back().outputs) all.push_back(JitValue::tensor(name));
  return JitValue::list(std::move(all), !chosen.schema->gives_list);
}

std::string JitGraph::add(AtenNode node, size_t results, bool whole) {
  if (program_.nodes.size() >= kMostNodes)
    throw OnnxUnsupported(fmt::format("it has more than {} operators", kMostNodes));
  const std::string word = node.target.substr(node.target.find('.') + 1);
  node.name = fmt::format("{}_{}", word.substr(0, word.find('.')), program_.nodes.size());
  for (size_t i = 0; i < results; ++i)
    node.outputs.push_back(results == 1 ? node.name : fmt::format("{}_{}", node.name, i));
  node.whole = whole;
  program_.nodes.push_back(std::move(node));
  conversion_.step(program_.nodes.back());
  follow();
  for (const std::string& out : program_.nodes.back().outputs)
    if (conversion_.has(out) && !whole) program_.tensors[out] = meta_of(tried(conversion_.value(out)));
  return program_.nodes.back().outputs.at(0);
}

const std::vector<Tensor>& JitGraph::tried(const std::string& value) const {
  const auto it = values_.find(value);
  if (it == values_.end() || it->second.size() != tries_)
    throw OnnxUnsupported(fmt::format("what {} is cannot be found out", value));
  return it->second;
}

/// Runs what the conversion has added.
void JitGraph::follow() {
  constexpr size_t kMostBytes = size_t{1} << 30;  // of a tensor whose values are asked for
  const AllocationLimit bound(std::min(kMostBytes, allocation_limit()));
  const OnnxGraph& g = conversion_.graph();
  for (; held_ < g.initializers.size(); ++held_)
    values_[g.initializers[held_].first] = std::vector<Tensor>(tries_, g.initializers[held_].second);
  for (; followed_ < g.nodes.size(); ++followed_) {
    const OnnxNode& n = g.nodes[followed_];
    for (size_t b = 0; b < tries_; ++b) {
      std::vector<Tensor> in;
      for (const std::string& name : n.inputs) in.push_back(name.empty() ? Tensor() : tried(name).at(b));
      std::vector<Tensor> out;
      try {
        out = run_onnx_node(n, in, AtenConversion::kOpset);
      } catch (const Error&) {  // it reads values
        for (Tensor& t : in)
          if (t && t.is_meta()) t = zeros(t.size(), t.dtype());
        out = run_onnx_node(n, in, AtenConversion::kOpset);
      }
      for (size_t k = 0; k < n.outputs.size() && k < out.size(); ++k)
        if (!n.outputs[k].empty()) values_[n.outputs[k]].push_back(out[k]);
    }
  }
}

const AtenProgram& JitGraph::finish(const std::vector<std::string>& outputs) {
  program_.outputs = outputs;
  return program_;
}

}  // namespace tenon::formats
