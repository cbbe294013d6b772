#include "engine/formats/aten/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/formats/aten/schema.h"
#include "engine/formats/torch/exported_archive.h"
#include "engine/formats/torch/types.h"

namespace tenon::formats {
namespace {

using nlohmann::json;
using Kind = AtenArgument::Kind;

/// Of this schema; a minor number never changes what is there.
constexpr int64_t kSchemaMajor = 8;

double real_of(const json& j) {
  if (j.is_number()) return j.get<double>();
  const std::string s = text_of_json(j);
  return s == "Infinity" ? INFINITY : s == "-Infinity" ? -INFINITY : NAN;
}
AtenInt whole_argument(const json& j) {
  if (j.is_number_integer()) return {j.get<int64_t>(), {}};
  if (const json& n = member_at(j, {"as_int"}); n.is_number_integer()) return {n.get<int64_t>(), {}};
  if (const json& n = member_at(j, {"as_name"}); n.is_string() && !n.get<std::string>().empty())
    return {0, n.get<std::string>()};
  throw Error("a whole number is neither a number nor a name");
}

AtenArgument read_argument(const json& j) {
  AtenArgument a;
  if (!j.is_object()) return a;
  // The one that is given; old files have the others as null.
  std::string key;
  for (const auto& [k, v] : j.items())
    if (!v.is_null() && key.empty()) key = k;
  if (key.empty() || key == "as_none") return a;
  const json& v = j.at(key);
  if (key == "as_tensor" || (key == "as_optional_tensor" && v.contains("as_tensor"))) {
    a.kind = Kind::tensor;
    a.names = {text_of_json(member_at(key == "as_tensor" ? v : v.at("as_tensor"), {"name"}))};
  } else if (key == "as_optional_tensor") {
    return a;
  } else if ((key == "as_tensors" || key == "as_optional_tensors") && v.is_array()) {
    a.kind = Kind::tensors;
    for (const json& t : v)
      a.names.push_back(
          text_of_json(key == "as_tensors" ? member_at(t, {"name"}) : member_at(t, {"as_tensor", "name"})));
  } else if (key == "as_int" || key == "as_sym_int") {
    a.kind = Kind::integer;
    a.ints = {whole_argument(v)};
  } else if ((key == "as_ints" || key == "as_sym_ints") && v.is_array()) {
    a.kind = Kind::integers;
    for (const json& n : v) a.ints.push_back(whole_argument(n));
  } else if (key == "as_float") {
    a.kind = Kind::real;
    a.reals = {real_of(v)};
  } else if (key == "as_floats" && v.is_array()) {
    a.kind = Kind::reals;
    for (const json& n : v) a.reals.push_back(real_of(n));
  } else if (key == "as_string") {
    a.kind = Kind::text;
    a.text = text_of_json(v);
  } else if (key == "as_bool" && v.is_boolean()) {
    a.kind = Kind::truth;
    a.truth = v.get<bool>();
  } else if (key == "as_scalar_type") {
    a.kind = Kind::type;
    a.ints = {whole_argument(v)};
  } else {
    a.kind = Kind::other;
    a.text = key;
  }
  return a;
}

AtenTensor read_tensor_meta(const json& meta) {
  AtenTensor t;
  const TorchType* type = torch_dtype(exported_type(whole_of_json(member_at(meta, {"dtype"}))));
  t.typed = type && type->engine >= 0;
  if (t.typed) t.dtype = static_cast<DType>(type->engine);
  for (const json& n : list_at(meta, {"sizes"})) {
    const std::string symbol = exported_symbol(text_of_json(member_at(n, {"as_expr", "expr_str"})));
    t.sizes.push_back(symbol.empty() ? OnnxDim{whole_of_json(n), ""} : OnnxDim{-1, symbol});
  }
  return t;
}

std::string exported_target(const std::string& target) {
  return target.starts_with("torch.ops.") ? target.substr(10) : target;
}

AtenNode read_aten_node(const json& n) {
  AtenNode node;
  node.target = exported_target(text_of_json(member_at(n, {"target"})));
  for (const json& a : list_at(n, {"inputs"}))
    node.inputs.emplace_back(text_of_json(member_at(a, {"name"})), read_argument(member_at(a, {"arg"})));
  for (const json& o : list_at(n, {"outputs"})) {
    const AtenArgument a = read_argument(o);
    if (a.kind == Kind::integer && !a.ints[0].name.empty()) {
      node.whole = true;
      node.outputs.push_back(a.ints[0].name);
    } else if (a.kind == Kind::tensor || a.kind == Kind::tensors) {
      node.outputs.insert(node.outputs.end(), a.names.begin(), a.names.end());
    } else {
      node.outputs.emplace_back();
    }
  }
  node.name = text_of_json(member_at(n, {"name"}));
  if (node.name.empty() && !node.outputs.empty()) node.name = node.outputs[0];
  node.scope = exported_scope(n);
  return node;
}

void read_signature(const json& module, AtenProgram& p) {
  using Holds = AtenProgram::Holds;
  static constexpr std::tuple<const char*, const char*, Holds> held[] = {
      {"parameter", "parameter_name", Holds::parameter},
      {"buffer", "buffer_name", Holds::buffer},
      {"tensor_constant", "tensor_constant_name", Holds::constant}};
  for (const json& spec : list_at(module, {"signature", "input_specs"})) {
    bool found = false;
    for (const auto& [kind, name, holds] : held)
      if (const json& to = member_at(spec, {kind, name}); to.is_string()) {
        p.held.push_back({text_of_json(member_at(spec, {kind, "arg", "name"})), to.get<std::string>(), holds});
        found = true;
      }
    if (found) continue;
    const AtenArgument given = read_argument(member_at(spec, {"user_input", "arg"}));
    if (given.kind == Kind::tensor)
      p.inputs.push_back(given.names[0]);
    else if (given.kind != Kind::none)
      throw OnnxUnsupported("one of its inputs is no tensor");
    else if (!member_at(spec, {"custom_obj"}).is_null() || !member_at(spec, {"token"}).is_null())
      throw OnnxUnsupported("one of its inputs is an object");
  }
  for (const json& spec : list_at(module, {"signature", "output_specs"})) {
    const json& user = member_at(spec, {"user_output", "arg"});
    if (user.is_null()) continue;  // a buffer that a training step writes
    const AtenArgument made = read_argument(user);
    if (made.kind == Kind::tensor)
      p.outputs.push_back(made.names[0]);
    else if (made.kind != Kind::none)
      throw OnnxUnsupported("one of its outputs is no tensor");
  }
}

// Writing.

/// A number of the batch, times * s0 + more, as its name says it: "4*s0 + 2".
struct OfBatch {
  int64_t times = 0, more = 0;
  explicit OfBatch(const OnnxDim& d) : more(d.value) {
    if (d.value >= 0) return;
    times = 1, more = 0;
    if (const size_t star = d.name.find('*'); star != d.name.npos) times = std::stoll(d.name.substr(0, star));
    if (const size_t plus = d.name.find(" + "); plus != d.name.npos) more = std::stoll(d.name.substr(plus + 3));
  }
  int64_t at(int64_t batch) const { return times * batch + more; }
  /// As sympy.srepr() prints it.
  std::string expression() const {
    std::string text = "Symbol('s0', positive=True, integer=True)";
    if (times != 1) text = fmt::format("Mul(Integer({}), {})", times, text);
    return more == 0 ? text : fmt::format("Add({}, Integer({}))", text, more);
  }
};
json size_json(const OnnxDim& d, int64_t batch) {
  if (d.value >= 0) return json::object({{"as_int", d.value}});
  const OfBatch n(d);
  return json::object(
      {{"as_expr", json::object({{"expr_str", n.expression()}, {"hint", json::object({{"as_int", n.at(batch)}})}})}});
}

json meta_json(const AtenTensor& t, bool trained, int64_t batch) {
  json sizes = json::array();
  for (const OnnxDim& d : t.sizes) sizes.push_back(size_json(d, batch));
  // Contiguous; a stride over a size that is open is an expression, too.
  std::vector<json> strides;
  std::string expression;
  int64_t stride = 1;
  for (size_t i = t.sizes.size(); i-- > 0;) {
    strides.push_back(expression.empty()
                          ? json::object({{"as_int", stride}})
                          : json::object({{"as_expr", json::object({{"expr_str", expression},
                                                                    {"hint", json::object({{"as_int", stride}})}})}}));
    const OfBatch n(t.sizes[i]);
    const std::string before = expression.empty() ? fmt::format("Integer({})", stride) : expression;
    if (n.times != 0)
      expression = fmt::format("Mul({}, {})", before, n.expression());
    else if (!expression.empty())
      expression = fmt::format("Mul({}, Integer({}))", before, std::max<int64_t>(n.more, 1));
    stride *= std::max<int64_t>(n.at(batch), 1);
  }
  std::reverse(strides.begin(), strides.end());
  return {{"dtype", exported_type_number(torch_type(t.dtype).dtype)},
          {"sizes", sizes},
          {"requires_grad", trained},
          {"device", {{"type", "cpu"}, {"index", nullptr}}},
          {"strides", strides},
          {"storage_offset", json::object({{"as_int", 0}})},
          {"layout", 7}};
}

json real_json(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v < 0 ? "-Infinity" : "Infinity";
  return v;
}
json named(const std::string& name) { return json::object({{"name", name}}); }
json tensor_json(const std::string& name) { return json::object({{"as_tensor", named(name)}}); }

json argument_json(const AtenArgument& a) {
  const auto one = [](const char* key, json value) { return json::object({{key, std::move(value)}}); };
  json list = json::array();
  switch (a.kind) {
    case Kind::tensor:
      return tensor_json(a.names.at(0));
    case Kind::tensors:
      for (const std::string& n : a.names) list.push_back(named(n));
      return one("as_tensors", list);
    case Kind::integer:
      if (a.ints.at(0).name.empty()) return one("as_int", a.ints[0].value);
      return one("as_sym_int", one("as_name", a.ints[0].name));
    case Kind::integers: {
      bool known = true;
      for (const AtenInt& n : a.ints) known = known && n.name.empty();
      for (const AtenInt& n : a.ints)
        list.push_back(known ? json(n.value) : n.name.empty() ? one("as_int", n.value) : one("as_name", n.name));
      return one(known ? "as_ints" : "as_sym_ints", list);
    }
    case Kind::real:
      return one("as_float", real_json(a.reals.at(0)));
    case Kind::text:
      return one("as_string", a.text);
    case Kind::truth:
      return one("as_bool", a.truth);
    case Kind::type:
      return one("as_scalar_type", a.ints.at(0).value);
    default:
      return one("as_none", true);
  }
}

/// How PyTorch flattens the arguments of a call: so many tensors by their places, none by name.
std::string tree_of(const json& tree) { return json::array({1, tree}).dump(); }
json tree_leaf() { return {{"type", nullptr}, {"context", nullptr}, {"children_spec", json::array()}}; }
json tree_tuple(size_t n) {
  return {{"type", "builtins.tuple"}, {"context", "null"}, {"children_spec", json(n, tree_leaf())}};
}

json call_json(const AtenProgram& p) {
  const json none = {{"type", "builtins.dict"}, {"context", "[]"}, {"children_spec", json::array()}};
  const json in = {{"type", "builtins.tuple"},
                   {"context", "null"},
                   {"children_spec", json::array({tree_tuple(p.inputs.size()), none})}};
  const json out = p.outputs.size() == 1 ? tree_leaf() : tree_tuple(p.outputs.size());
  return {{"fqn", ""},
          {"signature",
           {{"inputs", json::array()},
            {"outputs", json::array()},
            {"in_spec", tree_of(in)},
            {"out_spec", tree_of(out)},
            {"forward_arg_names", p.inputs}}}};
}

json held_json(const AtenProgram::Held& h) {
  using Holds = AtenProgram::Holds;
  const auto spec = [&](const char* kind, const char* name, json more) {
    more["arg"] = named(h.name);
    more[name] = h.state;
    return json::object({{kind, std::move(more)}});
  };
  if (h.kind == Holds::parameter) return spec("parameter", "parameter_name", json::object());
  if (h.kind == Holds::constant) return spec("tensor_constant", "tensor_constant_name", json::object());
  return spec("buffer", "buffer_name", json::object({{"persistent", true}}));
}

json node_json(const AtenNode& n) {
  constexpr int kByPlace = 1, kByName = 2;
  const AtenSchema* schema = find_aten_schema(n.target);
  json inputs = json::array(), outputs = json::array();
  size_t place = 0;
  for (const auto& [name, a] : n.inputs) {
    const bool next = schema && place < schema->parameters.size() && schema->parameters[place].name == name &&
                      !schema->parameters[place].keyword;
    if (next) ++place;
    inputs.push_back({{"name", name}, {"arg", argument_json(a)}, {"kind", next ? kByPlace : kByName}});
  }
  for (const std::string& o : n.outputs)
    outputs.push_back(n.whole ? json::object({{"as_sym_int", json::object({{"as_name", o}})}}) : tensor_json(o));
  return {{"target", "torch.ops." + n.target},
          {"inputs", inputs},
          {"outputs", outputs},
          {"metadata", json::object()},
          {"is_hop_single_tensor_return", nullptr}};
}

/// Where a tensor's bytes lie.
json payload_json(const std::string& file, const AtenTensor& t, bool parameter) {
  return {{"path_name", file},
          {"is_param", parameter},
          {"use_pickle", false},
          {"tensor_meta", meta_json(t, parameter && is_floating(t.dtype), 1)}};
}

}  // namespace

AtenProgram read_aten_program(const json& program) {
  const json& module = member_at(program, {"graph_module"});
  if (!module.is_object()) throw Error("it has no graph");
  const int64_t major = whole_of_json(member_at(program, {"schema_version", "major"}));
  if (major != kSchemaMajor && major != 0)
    throw OnnxUnsupported(fmt::format("its schema has the version {}, not {}", major, kSchemaMajor),
                          "Export it with PyTorch 2.6 or later.");
  AtenProgram p;
  p.torch_version = text_of_json(member_at(program, {"torch_version"}));
  read_signature(module, p);
  const json& graph = member_at(module, {"graph"});
  if (const json& values = member_at(graph, {"tensor_values"}); values.is_object())
    for (const auto& [name, meta] : values.items()) p.tensors[name] = read_tensor_meta(meta);
  if (const json& numbers = member_at(graph, {"sym_int_values"}); numbers.is_object())
    for (const auto& [name, n] : numbers.items())
      p.numbers[name] = exported_symbol(text_of_json(member_at(n, {"as_expr", "expr_str"})));
  for (const json& n : list_at(graph, {"nodes"})) p.nodes.push_back(read_aten_node(n));
  return p;
}

json aten_program_json(const AtenProgram& p, int64_t batch) {
  json inputs = json::array(), outputs = json::array(), nodes = json::array(), values = json::object(),
       numbers = json::object(), in_specs = json::array(), out_specs = json::array();
  std::map<std::string, bool> trained;
  for (const AtenProgram::Held& h : p.held) {
    inputs.push_back(tensor_json(h.name));
    in_specs.push_back(held_json(h));
    trained[h.name] = h.kind == AtenProgram::Holds::parameter && is_floating(p.tensors.at(h.name).dtype);
  }
  for (const std::string& x : p.inputs) {
    inputs.push_back(tensor_json(x));
    in_specs.push_back(json::object({{"user_input", json::object({{"arg", tensor_json(x)}})}}));
  }
  for (const std::string& y : p.outputs) {
    outputs.push_back(tensor_json(y));
    out_specs.push_back(json::object({{"user_output", json::object({{"arg", tensor_json(y)}})}}));
  }
  for (const AtenNode& n : p.nodes) nodes.push_back(node_json(n));
  for (const auto& [name, t] : p.tensors) values[name] = meta_json(t, trained[name], batch);
  for (const auto& [name, expression] : p.numbers) numbers[name] = size_json({-1, expression}, batch);
  bool open = false;
  for (const std::string& x : p.inputs)
    for (const OnnxDim& d : p.tensors.at(x).sizes) open = open || d.value < 0;
  json ranges = json::object();
  if (open) ranges["s0"] = json::object({{"min_val", 1}, {"max_val", nullptr}});
  return {{"graph_module",
           {{"graph",
             {{"inputs", inputs},
              {"outputs", outputs},
              {"nodes", nodes},
              {"tensor_values", values},
              {"sym_int_values", numbers},
              {"sym_bool_values", json::object()},
              {"is_single_tensor_return", false},
              {"custom_obj_values", json::object()},
              {"sym_float_values", json::object()}}},
            {"signature", {{"input_specs", in_specs}, {"output_specs", out_specs}}},
            {"module_call_graph", json::array({call_json(p)})},
            {"metadata", json::object()},
            {"treespec_namedtuple_fields", json::object()}}},
          {"opset_version", {{"aten", 10}}},
          {"range_constraints", ranges},
          {"schema_version", {{"major", kSchemaMajor}, {"minor", 8}}},
          {"verifiers", json::array({"TRAINING"})},
          {"torch_version", p.torch_version},
          {"guards_code", json::array()}};
}

json aten_payload_list(const AtenProgram& p, bool constants) {
  json list = json::object();
  for (const auto& [file, h] : aten_payloads(p, constants))
    list[h->state] = payload_json(file, p.tensors.at(h->name), h->kind == AtenProgram::Holds::parameter);
  return json::object({{"config", list}});
}

std::vector<std::pair<std::string, const AtenProgram::Held*>> aten_payloads(const AtenProgram& p, bool constants) {
  std::vector<std::pair<std::string, const AtenProgram::Held*>> all;
  for (const AtenProgram::Held& h : p.held)
    if ((h.kind == AtenProgram::Holds::constant) == constants)
      all.emplace_back(fmt::format("{}_{}", constants ? "tensor" : "weight", all.size()), &h);
  return all;
}

}  // namespace tenon::formats
