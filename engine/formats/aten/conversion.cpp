#include "engine/formats/aten/conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "engine/formats/aten/rule.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

/// Operators whose result may be the memory of their first input.
bool is_aten_view(std::string_view op) {
  static const std::set<std::string_view> all = {
      "view",     "reshape",          "permute",   "transpose",  "t",
      "squeeze",  "unsqueeze",        "flatten",   "unflatten",  "expand",
      "slice",    "select",           "narrow",    "split",      "chunk",
      "unbind",   "movedim",          "numpy_T",   "detach",     "alias",
      "to",       "view_as",          "type_as",   "contiguous", "dropout",
      "swapaxes", "split_with_sizes", "expand_as", "reshape_as", "lift_fresh"};
  return all.contains(op);
}
/// Checks of PyTorch that make nothing.
bool is_aten_check(std::string_view op) { return op.starts_with("_assert_") || op.starts_with("sym_constrain_range"); }
const char* number_operator(std::string_view target) {
  if (target == "_operator.add") return "Add";
  if (target == "_operator.sub") return "Sub";
  if (target == "_operator.mul") return "Mul";
  if (target == "_operator.floordiv") return "Div";
  return nullptr;
}

}  // namespace

AtenConversion::AtenConversion(const AtenProgram& program, const std::map<std::string, Tensor>& weights)
    : program_(program) {
  model_.opset = kOpset;
  model_.ir_version = 10;
  model_.producer = "pytorch";
  model_.producer_version = program.torch_version;
  for (const AtenProgram::Held& h : program.held) {
    const auto it = weights.find(h.state);
    if (it == weights.end() || !it->second)
      throw Error(fmt::format("the archive has no values that can be read of \"{}\"", h.state));
    const std::string name = free_name(h.state);
    initializers_[name] = model_.graph.initializers.size();
    model_.graph.initializers.emplace_back(name, it->second);
    values_[h.name] = name;
  }
  for (const std::string& in : program.inputs) {
    const AtenTensor& t = meta(in);
    if (!t.typed) throw OnnxUnsupported("its input " + in + " has a type that is not supported");
    values_[in] = free_name(in);
    model_.graph.inputs.push_back({values_[in], true, t.dtype, true, t.sizes});
  }
  for (size_t i = 0; i < program.nodes.size(); ++i)
    for (const auto& [name, a] : program.nodes[i].inputs)
      for (const std::string& read : a.names) last_read_[read] = i;
  for (const std::string& out : program.outputs) last_read_[out] = program.nodes.size();
}

std::string AtenConversion::free_name(const std::string& wish) {
  std::string name = wish;
  for (int k = 1; name.empty() || !taken_.insert(name).second; ++k) name = fmt::format("{}_{}", wish, k);
  return name;
}

const std::string& AtenConversion::value(const std::string& name) const {
  const auto it = values_.find(name);
  if (it == values_.end()) throw OnnxUnsupported(fmt::format("it reads {}, which nothing here makes", name));
  return it->second;
}
const AtenTensor& AtenConversion::meta(const std::string& name) const {
  const auto it = program_.tensors.find(name);
  if (it == program_.tensors.end()) throw OnnxUnsupported(fmt::format("the file does not say what {} is", name));
  return it->second;
}
const std::string& AtenConversion::expression(const std::string& number) const {
  static const std::string none;
  const auto it = program_.numbers.find(number);
  return it == program_.numbers.end() ? none : it->second;
}

std::vector<std::string> AtenConversion::add(const AtenNode& node, const std::string& type,
                                             std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes,
                                             size_t outputs) {
  // The module of the node is in its name, as torch.onnx writes it; a program that names none has it in its weights'.
  std::string scope = node.scope;
  for (const auto& [name, a] : node.inputs)
    for (const AtenProgram::Held& h : program_.held)
      if (scope.empty() && a.kind == AtenArgument::Kind::tensor && a.names[0] == h.name &&
          h.state.rfind('.') != h.state.npos)
        scope = h.state.substr(0, h.state.rfind('.'));
  OnnxNode n;
  n.name = scope.empty() ? node.name : fmt::format("/{}/{}_{}", scope, type, node.name);
  n.op_type = type;
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  n.inputs = std::move(inputs);
  n.attributes = std::move(attributes);
  for (size_t k = 0; k < outputs; ++k) n.outputs.push_back(free_name(node.name + "/" + type));
  model_.graph.nodes.push_back(n);
  return n.outputs;
}

std::string AtenConversion::constant(const Tensor& t) {
  const std::string name = free_name(fmt::format("constant_{}", model_.graph.initializers.size()));
  initializers_[name] = model_.graph.initializers.size();
  model_.graph.initializers.emplace_back(name, t);
  return name;
}
Tensor AtenConversion::constant_value(const std::string& value) const {
  const auto it = initializers_.find(value);
  return it == initializers_.end() ? Tensor() : model_.graph.initializers[it->second].second;
}

std::optional<double> AtenConversion::filled(const std::string& tensor) const {
  for (const AtenNode& n : program_.nodes) {
    if (n.outputs.empty() || n.outputs[0] != tensor) continue;
    if (n.target.starts_with("aten.zeros")) return 0;
    if (n.target.starts_with("aten.ones")) return 1;
    if (!n.target.starts_with("aten.full")) return {};
    for (const auto& [name, a] : n.inputs) {
      if (name != "fill_value") continue;
      if (a.kind == AtenArgument::Kind::real) return a.reals[0];
      if (a.kind == AtenArgument::Kind::integer && a.ints[0].name.empty()) return static_cast<double>(a.ints[0].value);
    }
    return {};
  }
  return {};
}

/// What was made for the node takes the name that the program has for it.
void AtenConversion::result(const AtenNode& node, const std::string& value, size_t k) {
  if (k >= node.outputs.size() || node.outputs[k].empty()) return;
  std::string name = value;
  const std::string& wish = node.outputs[k];
  for (size_t i = first_new_; i < model_.graph.nodes.size(); ++i) {
    std::vector<std::string>& made = model_.graph.nodes[i].outputs;
    const auto it = std::find(made.begin(), made.end(), value);
    if (it == made.end() || !value.starts_with(node.name + "/")) continue;
    name = free_name(wish);
    *it = name;
    for (size_t j = i + 1; j < model_.graph.nodes.size(); ++j)
      std::replace(model_.graph.nodes[j].inputs.begin(), model_.graph.nodes[j].inputs.end(), value, name);
  }
  values_[wish] = name;
}

/// Numbers are lists of one.
void AtenConversion::number_step(const AtenNode& node) {
  std::vector<std::string> in;
  for (const auto& [name, a] : node.inputs) {
    if (a.kind != AtenArgument::Kind::integer) throw OnnxUnsupported("it counts with what is no whole number");
    in.push_back(a.ints[0].name.empty() ? constant(integers({a.ints[0].value})) : value(a.ints[0].name));
  }
  const char* type = number_operator(node.target);
  if (!type || in.size() != 2) throw OnnxUnsupported("there is no rule for this operator");
  result(node, add(node, type, in, {}, 1)[0], 0);
}

/// Which elements of `whole` a view of it has: of a part that was cut out, by whole numbers, of one whose sizes are
/// known. Undefined for others.
Tensor AtenConversion::places_of(const std::string& view, const std::string& whole) const {
  constexpr int64_t kMostPlaces = 1 << 24;
  std::vector<const AtenNode*> cuts;
  for (std::string at = view; at != whole;) {
    const auto made = view_made_.find(at);
    if (made == view_made_.end()) return {};
    cuts.push_back(&program_.nodes[made->second]);
    at = cuts.back()->inputs.at(0).second.names.at(0);
  }
  Shape size;
  for (const OnnxDim& d : meta(whole).sizes) {
    if (d.value < 0) return {};
    size.push_back(d.value);
  }
  if (size.product() > kMostPlaces) return {};
  Tensor places = reshape(arange(0, static_cast<double>(size.product()), 1, DType::i64), size);
  for (auto it = cuts.rbegin(); it != cuts.rend(); ++it) {
    const auto number = [&](const char* name, int64_t otherwise) -> std::optional<int64_t> {
      for (const auto& [key, a] : (*it)->inputs)
        if (key == name && a.kind == AtenArgument::Kind::integer)
          return a.ints[0].name.empty() ? std::optional(a.ints[0].value) : std::nullopt;
      return otherwise;
    };
    const auto axis = number("dim", 0), from = number("start", 0), to = number("end", INT64_MAX),
               step = number("step", 1), index = number("index", 0), length = number("length", 0);
    if (!axis || !from || !to || !step || !index || !length) return {};
    const int a = static_cast<int>(*axis);
    const std::string_view op = std::string_view((*it)->target).substr(std::string_view("aten.").size());
    if (op.starts_with("slice."))
      places = slice(places, a, *from, *to, *step);
    else if (op.starts_with("select."))
      places = select(places, a, *index);
    else if (op.starts_with("narrow."))
      places = narrow(places, a, *from, *length);
    else
      return {};
  }
  return places;
}

/// The tensor that was written is the result from here on; where it is a part of another one, that has it. Other views
/// of it would have to follow.
void AtenConversion::written_in_place(const AtenNode& node, const std::string& name) {
  const auto owner = [this](const std::string& t) {
    const auto it = shares_.find(t);
    return it == shares_.end() ? t : it->second;
  };
  const std::string whose = owner(name);
  const auto read_later = [&](const std::string& t) {
    const auto it = last_read_.find(t);
    return t != name && it != last_read_.end() && it->second > at_;
  };
  const Tensor places = whose != name && read_later(whose) ? places_of(name, whose) : Tensor();
  bool seen = read_later(whose) && !places;
  for (const auto& [view, of] : shares_) seen = seen || (of == whose && view != whose && read_later(view));
  if (places && !seen) {
    const auto flat = [&](const std::string& of) {
      return add(node, "Reshape", {of, constant(integers({-1}))}, {}, 1)[0];
    };
    const std::string written = add(
        node, "ScatterElements",
        {flat(value(whose)), constant(reshape(contiguous(places), {places.numel()})), flat(value(node.outputs.at(0)))},
        {{"axis", int64_t{0}}}, 1)[0];
    std::vector<int64_t> size;
    for (const OnnxDim& d : meta(whose).sizes) size.push_back(d.value);
    values_[whose] = add(node, "Reshape", {written, constant(integers(size))}, {}, 1)[0];
  }
  if (seen) throw OnnxUnsupported(fmt::format("it writes into {}, whose memory other tensors share", name));
  values_[name] = value(node.outputs.at(0));
  shares_[node.outputs[0]] = whose;
}

void AtenConversion::step(const AtenNode& node) {
  at_ = static_cast<size_t>(&node - program_.nodes.data());
  first_new_ = model_.graph.nodes.size();
  const std::string& target = node.target;
  if (!target.starts_with("aten.")) {
    if (node.whole) return number_step(node);
    throw OnnxUnsupported("there is no rule for this operator");
  }
  const size_t dot = target.find('.', 5);
  std::string op = target.substr(5, dot == target.npos ? dot : dot - 5);
  if (is_aten_check(op)) return;
  const bool in_place = op.size() > 1 && op.ends_with('_') && !op.ends_with("__");
  if (in_place) op.pop_back();
  const AtenSchema* schema = find_aten_schema("aten." + op + (dot == target.npos ? ".default" : target.substr(dot)));
  const AtenRule* rule = aten_rules().find(op);
  if (!rule) throw OnnxUnsupported("there is no rule for this operator");
  if (!schema) throw OnnxUnsupported("there is no rule for this overload of the operator");
  // What is written into has another name than what is only read, "self" for "input".
  AtenNode renamed;
  if (in_place && !node.inputs.empty() && !schema->parameters.empty()) {
    renamed = node;
    renamed.inputs[0].first = schema->parameters[0].name;
  }
  AtenCall call(*this, in_place ? renamed : node, *schema);
  rule->convert(call);
  const AtenArgument* first = node.inputs.empty() ? nullptr : &node.inputs[0].second;
  if (!first || first->kind != AtenArgument::Kind::tensor) return;
  if (in_place) return written_in_place(node, first->names[0]);
  if (!is_aten_view(op)) return;
  const auto owner = shares_.find(first->names[0]);
  const std::string whose = owner == shares_.end() ? first->names[0] : owner->second;
  for (const std::string& out : node.outputs) shares_[out] = whose, view_made_[out] = at_;
}

OnnxModel AtenConversion::finish() {
  OnnxGraph& g = model_.graph;
  std::set<std::string> named;
  for (const std::string& out : program_.outputs) {
    std::string made = value(out);
    // An output is made by a node, and there once.
    const bool given = initializers_.contains(made) || std::any_of(g.inputs.begin(), g.inputs.end(),
                                                                   [&](const OnnxValue& v) { return v.name == made; });
    if (given || !named.insert(made).second) {
      AtenNode copy;
      copy.name = out;
      made = add(copy, "Identity", {made}, {}, 1)[0];
      named.insert(made);
    }
    OnnxValue v{.name = made};
    if (const auto it = program_.tensors.find(out); it != program_.tensors.end() && it->second.typed)
      v = {made, true, it->second.dtype, true, it->second.sizes};
    g.outputs.push_back(v);
  }
  std::set<std::string> read = named;
  std::vector<OnnxNode> nodes;
  for (size_t i = g.nodes.size(); i-- > 0;) {
    OnnxNode& n = g.nodes[i];
    if (std::none_of(n.outputs.begin(), n.outputs.end(), [&](const std::string& o) { return read.contains(o); }))
      continue;
    read.insert(n.inputs.begin(), n.inputs.end());
    nodes.push_back(std::move(n));
  }
  std::reverse(nodes.begin(), nodes.end());
  g.nodes = std::move(nodes);
  std::erase_if(g.initializers, [&](const auto& i) { return !read.contains(i.first); });
  return std::move(model_);
}

}  // namespace tenon::formats
