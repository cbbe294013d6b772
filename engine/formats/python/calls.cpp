// What a call of a source makes: a module, a layer of the model, a number.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "core/error.h"
#include "engine/formats/python/constructor.h"
#include "engine/formats/python/interpreter.h"
#include "engine/formats/python/print.h"
#include "engine/spec/layer_registry.h"

namespace tenon::python {
namespace {

using Named = std::vector<std::pair<std::string, Value>>;

/// Arguments that change nothing a model says.
constexpr std::array kWithoutMeaning = {"inplace", "device", "return_indices", "recompute_scale_factor", "training"};
bool means_nothing(const std::string& name) {
  return std::find(kWithoutMeaning.begin(), kWithoutMeaning.end(), name) != kWithoutMeaning.end();
}

/// Where PyTorch's arguments by place part from the order of Tenon's attributes.
constexpr std::array kLastByPlace = {"padding", "norm_type"};

/// The layer type that a function of torch.nn.functional is: max_pool2d is MaxPool2d.
const LayerInfo* type_of_function(const std::string& name) {
  static constexpr std::array<std::pair<const char*, const char*>, 7> kOther = {{{"interpolate", "Upsample"},
                                                                                 {"swish", "SiLU"},
                                                                                 {"add", "Add"},
                                                                                 {"sub", "Sub"},
                                                                                 {"mul", "Mul"},
                                                                                 {"matmul", "MatMul"},
                                                                                 {"bmm", "MatMul"}}};
  for (const auto& [f, type] : kOther)
    if (name == f) return find_layer_type(type);
  std::string letters;
  for (char c : name)
    if (c != '_') letters += c;
  for (const auto& def : layers()) {
    const LayerInfo& info = def.info;
    std::string type = info.type;
    for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (type != letters) continue;
    const std::vector<std::string> leading = leading_of(form_of(info), info);
    const bool weights =
        info.type == "PReLU" || (!leading.empty() && leading[0] != "kernel_size" && leading[0] != "output_size" &&
                                 leading[0] != "padding" && !leading[0].ends_with("_factor") &&
                                 leading[0] != "norm_type" && leading[0] != "threshold" && leading[0] != "groups");
    return weights ? nullptr : find_layer_type(info.type);
  }
  return nullptr;
}

const AttrDef* definition(const LayerInfo& info, const std::string& name) {
  auto d = std::find_if(info.attrs.begin(), info.attrs.end(), [&](const AttrDef& a) { return a.name == name; });
  return d == info.attrs.end() ? nullptr : &*d;
}

}  // namespace

LayerSpec layer_of(const LayerInfo& info, const std::vector<Value>& args, const Named& named, int line) {
  const PythonForm& form = form_of(info);
  LayerSpec layer{{}, info.type, {}};
  auto set = [&](const AttrDef& d, const Value& v) {
    if (v.kind == Value::Kind::none) return;
    try {
      if (d.name == "padding" && v.kind == Value::Kind::text && definition(info, kAutoPadding)) {
        layer.attrs.push_back({kAutoPadding, fit_attr(*definition(info, kAutoPadding), v.text, kAutoPadding)});
        return;
      }
      layer.attrs.push_back({d.name, fit_attr(d, attr_of(v), d.name)});
    } catch (const Error& e) {
      fail_at(line, e.message(), e.hint());
    }
  };
  std::vector<const AttrDef*> places;
  const std::vector<std::string> leading = leading_of(form, info);
  for (const std::string& name : leading) places.push_back(definition(info, name));
  if (form.width) places.push_back(nullptr);
  for (const AttrDef& d : info.attrs) {
    if (std::find(leading.begin(), leading.end(), d.name) != leading.end()) continue;
    if (std::find(form.outside.begin(), form.outside.end(), d.name) != form.outside.end()) continue;
    places.push_back(&d);
    if (std::find(kLastByPlace.begin(), kLastByPlace.end(), d.name) != kLastByPlace.end()) break;
  }
  if (args.size() > places.size())
    fail_at(line, fmt::format("nn.{} is given {} values by place; {} are read", info.type, args.size(), places.size()),
            "name the others: stride=2");
  for (size_t i = 0; i < args.size(); ++i)
    if (places[i]) set(*places[i], args[i]);
  for (const auto& [name, value] : named) {
    if (means_nothing(name) || (form.width && name == "features")) continue;
    const AttrDef* d = definition(info, name);
    if (!d || std::find(form.outside.begin(), form.outside.end(), name) != form.outside.end()) {
      std::vector<std::string> names;
      for (const AttrDef& a : info.attrs) names.push_back(a.name);
      const std::string near = near_names(name, names.data(), names.size());
      fail_at(line,
              fmt::format("nn.{} has no '{}' that is read{}", info.type, name, near.empty() ? "" : " (" + near + ")"));
    }
    set(*d, value);
  }
  for (const auto& [name, usual] : form.usual) {
    if (!definition(info, name) || layer.find(name)) continue;
    const std::string skipped = form.unless.substr(0, form.unless.find(' '));
    if (name == skipped && layer.find(form.unless.substr(skipped.size() + 1))) continue;
    if (!usual) fail_at(line, fmt::format("nn.{} is not told its {}", info.type, name), "write " + name + "=");
    layer.attrs.push_back({name, *usual});
  }
  return layer;
}

Value Interpreter::eval_call(const Expr& e, Frame& f) {
  const Expr& callee = e.items[0];
  auto module = peek(callee, f);
  if (!module && callee.kind == Expr::Kind::call) {  // made and called at once, or a submodule
    const Value v = eval(callee, f);
    if (v.kind != Value::Kind::object) fail_at(e.line, shown(v) + " is called");
    module = v.object;
    if (module->path.empty()) fail_at(e.line, "a module is made in forward", "make it in __init__: self.name = ...");
  }
  if (auto submodule = peek(e, f)) return {.kind = Value::Kind::object, .object = submodule};
  std::vector<Value> args;
  Held held = hold(f);
  auto arguments = [&](size_t from) {
    for (size_t i = from; i < e.items.size(); ++i) {
      if (e.items[i].kind != Expr::Kind::star) {
        args.push_back(eval(e.items[i], f));
        continue;
      }
      for (Value& v : items_of(eval(e.items[i].items[0], f), e.line)) args.push_back(std::move(v));
    }
  };
  if (module) {
    arguments(1);
    if (!e.named.empty())
      fail_at(e.line, text_of(callee) + " is given '" + e.named[0].name + "' by name, which is not read here");
    give_back(f, std::move(held));
    return call(module, args, f, e.line);
  }
  std::string name = dotted(callee);
  const bool method = callee.kind == Expr::Kind::attribute &&
                      (name.empty() || f.names.count(name.substr(0, name.find('.')))) && name != "super().__init__";
  if (method) {  // x.flatten(1)
    args.push_back(eval(callee.items[0], f));
    name = callee.text;
    if (args[0].kind == Value::Kind::tensor && (name == "contiguous" || name == "clone")) return args[0];
    if (args[0].kind != Value::Kind::tensor)
      fail_at(e.line, fmt::format("{} has no '{}' that is read", shown(args[0]), name));
    if (name == "view" || name == "reshape") {  // x.view(x.size(0), -1) and x.view(x.shape[0], -1)
      Expr as = e;
      as.items[0].text = "reshape";
      if (e.items.size() > 1) {
        const std::string first = text_of(e.items[1]), x = text_of(callee.items[0]);
        if (first == x + ".shape[0]" || first == x + ".size(0)" || first == "-1") {
          Expr list{.kind = Expr::Kind::list};
          Value sizes = Value::list({});
          for (size_t i = 2; i < e.items.size(); ++i) sizes.items.push_back(eval(e.items[i], f));
          if (sizes.items.empty()) fail_at(e.line, "every element of the batch would lie in one axis");
          give_back(f, std::move(held));
          return add({{}, "Reshape", {{"shape", tenon::python::attr_of(sizes)}}}, {args[0].layer}, f, e.line);
        }
      }
      fail_at(e.line, "the batch is not the first axis of this size",
              "write x." + name + "(x.size(0), ...): samples stay apart");
    }
  }
  arguments(1);
  Named named;
  for (const auto& [n, value] : e.named) named.emplace_back(n, eval(value, f));
  give_back(f, std::move(held));
  if (!method && callee.kind == Expr::Kind::name) {
    if (auto type = classes_.find(name); type != classes_.end() && !find_layer_type(name))
      return instance(*type->second, std::move(args), std::move(named), e.line);
    const LayerInfo* info = find_layer_type(name);
    if (info && form_of(*info).helper.starts_with("class ")) {
      Value v;
      construct("nn." + name, args, named, e.line, v);
      return v;
    }
    const bool is_builtin = name == "range" || name == "len" || name == "int" || name == "float" || name == "tuple" ||
                            name == "list" || name == "max" || name == "min" || name == "enumerate" ||
                            name == "OrderedDict" || name == "reversed" || name == "zip" || name == "dict" ||
                            name == "round" || name == "abs" || name == "bool" || name == "str";
    if (is_builtin) {
      if (name == "dict" || name == "OrderedDict")
        for (auto& [n, v] : named) args.push_back(Value::list({Value::of(n), v}));
      return builtin(name, args, e.line);
    }
  }
  Value out;
  if (name == "math.sqrt" && args.size() == 1)
    return Value::of(
        std::sqrt(args[0].kind == Value::Kind::number ? args[0].number : static_cast<double>(args[0].whole)));
  if (name == "collections.OrderedDict") return builtin("OrderedDict", args, e.line);
  if (!f.forward && name.starts_with("nn.") && construct(name, args, named, e.line, out)) return out;
  if (f.forward && function(name, args, named, f, e.line, out)) return out;
  if (f.forward && name.starts_with("nn.") && find_layer_type(name.substr(3)))
    fail_at(e.line, "a module is made in forward", "make it in __init__: self.name = " + name + "(...)");
  fail_at(e.line, fmt::format("{}{} is not in the part of PyTorch that is read", method ? "." : "", text_of(callee)),
          "layers of torch.nn, +, -, *, @, torch.cat, flatten, permute, reshape, mean, select and narrow are");
}

Value Interpreter::builtin(const std::string& name, const std::vector<Value>& args, int line) {
  auto whole = [&](size_t i) {
    if (i >= args.size() || args[i].kind != Value::Kind::whole) fail_at(line, name + " takes whole numbers");
    return args[i].whole;
  };
  auto first = [&]() -> const Value& {
    if (args.size() != 1) fail_at(line, name + " takes one value");
    return args[0];
  };
  if (name == "range") {
    const int64_t from = args.size() > 1 ? whole(0) : 0, to = whole(args.size() > 1 ? 1 : 0);
    const int64_t step = args.size() > 2 ? whole(2) : 1;
    if (step == 0 || std::abs(static_cast<double>(to) - static_cast<double>(from)) > 100'000)
      fail_at(line, "a range that is not read");
    Value out = Value::list({});
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step) out.items.push_back(Value::of(i));
    return out;
  }
  if (name == "len") return Value::of(static_cast<int64_t>(items_of(first(), line).size()));
  if (name == "tuple" || name == "list")
    return Value::list(args.empty() ? std::vector<Value>{} : items_of(first(), line));
  if (name == "int")
    return Value::of(first().kind == Value::Kind::number ? static_cast<int64_t>(std::clamp(args[0].number, -9e18, 9e18))
                                                         : whole(0));
  if (name == "float")
    return Value::of(first().kind == Value::Kind::number ? args[0].number : static_cast<double>(whole(0)));
  if (name == "bool") return Value::truth(first().is_true());
  if (name == "str") return Value::of(first().kind == Value::Kind::text ? args[0].text : shown(args[0]));
  if (name == "reversed") {
    std::vector<Value> items = items_of(first(), line);
    std::reverse(items.begin(), items.end());
    return Value::list(std::move(items));
  }
  if (name == "enumerate" || name == "zip") {
    std::vector<std::vector<Value>> lists;
    for (const Value& a : args) lists.push_back(items_of(a, line));
    Value out = Value::list({});
    if (lists.empty()) return out;
    size_t n = lists[0].size();
    for (const auto& l : lists) n = std::min(n, l.size());
    for (size_t i = 0; i < n; ++i) {
      Value row = Value::list({});
      if (name == "enumerate") row.items.push_back(Value::of(static_cast<int64_t>(i)));
      for (const auto& l : lists) row.items.push_back(l[i]);
      out.items.push_back(std::move(row));
    }
    return out;
  }
  if (name == "OrderedDict" || name == "dict") {
    Value out{.kind = Value::Kind::dict};
    std::vector<Value> rows = args;
    if (args.size() == 1 && args[0].kind == Value::Kind::list) rows = args[0].items;
    if (args.size() == 1 && args[0].kind == Value::Kind::dict) return args[0];
    for (const Value& row : rows) {
      if (row.kind != Value::Kind::list || row.items.size() != 2)
        fail_at(line, name + " takes pairs of a name and a value");
      out.items.insert(out.items.end(), row.items.begin(), row.items.end());
    }
    return out;
  }
  if ((name == "max" || name == "min") && !args.empty()) {
    const std::vector<Value> all = args.size() == 1 ? items_of(args[0], line) : args;
    int64_t best = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].kind != Value::Kind::whole) fail_at(line, name + " takes whole numbers");
      best = i == 0 ? all[i].whole : name == "max" ? std::max(best, all[i].whole) : std::min(best, all[i].whole);
    }
    return Value::of(best);
  }
  fail_at(line, name + " is not read like this");
}

bool Interpreter::construct(const std::string& name, const std::vector<Value>& args, const Named& named, int line,
                            Value& out) {
  const std::string type = name.substr(3);
  out = {.kind = Value::Kind::object, .object = std::make_shared<Object>()};
  Object& o = *out.object;
  o.line = line;
  const bool holds_parts = type == "Sequential" || type == "ModuleList" || type == "ModuleDict";
  if (type == "Module") return true;
  if (holds_parts) {
    o.kind = type == "Sequential"   ? Object::Kind::sequence
             : type == "ModuleList" ? Object::Kind::list
                                    : Object::Kind::dict;
    std::vector<Value> parts = args;
    std::vector<std::string> names;
    if (parts.size() == 1 && parts[0].kind == Value::Kind::dict) {
      std::vector<Value> values;
      for (size_t i = 0; i + 1 < args[0].items.size(); i += 2) {
        names.push_back(args[0].items[i].text);
        values.push_back(args[0].items[i + 1]);
      }
      parts = std::move(values);
    } else if (parts.size() == 1 && parts[0].kind == Value::Kind::list && type == "ModuleList") {
      parts = args[0].items;
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != Value::Kind::object)
        fail_at(line, fmt::format("nn.{} is given {}; it takes modules", type, shown(parts[i])));
      o.parts.emplace_back(names.empty() ? std::to_string(i) : names[i], as_part(parts[i].object, line));
    }
    return true;
  }
  const LayerInfo* info = find_layer_type(type);
  if (!info || !form_of(*info).module) {
    if (info || type == "Parameter")
      fail_at(line, fmt::format("nn.{} is not in the part of PyTorch that is read", type),
              type == "Parameter" ? "a trained value of its own is part of no layer here" : "");
    std::vector<std::string> names = layers().names();
    const std::string near = near_names(type, names.data(), names.size());
    fail_at(line, fmt::format("there is no layer nn.{}{}", type, near.empty() ? "" : " (" + near + ")"));
  }
  o.kind = Object::Kind::layer;
  o.layer = layer_of(*info, args, named, line);
  comment(o);
  return true;
}

Value Interpreter::call(const std::shared_ptr<Object>& o, const std::vector<Value>& args, Frame& f, int line) {
  if (!f.forward)
    fail_at(line, (o->path.empty() ? "a module" : o->path) + " is called in __init__", "call it in forward");
  switch (o->kind) {
    case Object::Kind::sequence: {
      if (args.size() != 1) fail_at(line, "nn.Sequential reads one tensor");
      Value v = args[0];
      const std::string said = std::exchange(f.target, "");
      for (const auto& [name, part] : o->parts) v = call(part, {v}, f, line);
      return v;
    }
    case Object::Kind::instance: {
      const Statement* forward = nullptr;
      for (const Statement& s : o->type->body)
        if (s.kind == Statement::Kind::function && s.name == "forward") forward = &s;
      if (!forward) fail_at(o->type->line, o->type->name + " has no forward");
      Frame inner;
      inner.self = o.get();
      inner.forward = true;
      inner.names["self"] = {.kind = Value::Kind::object, .object = o};
      bind_function(inner, *forward, args, {}, line);
      Value result;
      if (!follow(forward->body, inner, result)) fail_at(forward->line, "forward returns nothing");
      return result;
    }
    case Object::Kind::layer:
      break;
    default:
      fail_at(line, shown({.kind = Value::Kind::object, .object = o}) + " has no forward: call its parts");
  }
  if (o->called)
    fail_at(line, o->path + " is called a second time",
            "a layer of a model has one place: write self.again = the module in __init__ for another with its weights");
  const LayerInfo& info = *find_layer_type(o->layer.type);
  if (!form_of(info).calls.empty())
    fail_at(line, fmt::format("what {} ({}) gives is not used like this", o->path, info.type),
            "write " + form_of(info).calls[0].pattern + ", where m is the module");
  std::vector<int> inputs;
  for (const Value& v : args) {
    if (v.kind != Value::Kind::tensor) fail_at(line, shown(v) + " is given to " + o->path + ", which takes a tensor");
    inputs.push_back(v.layer);
  }
  if (static_cast<int>(inputs.size()) > info.inputs || static_cast<int>(inputs.size()) < info.inputs - info.optional)
    fail_at(line,
            fmt::format("{} ({}) is given {} tensors; it takes {}", o->path, info.type, inputs.size(), info.inputs));
  o->called = true;
  LayerSpec layer = o->layer;
  layer.name = o->path;
  if (o->same_as) layer.shares = o->same_as->path;
  Value out = add(std::move(layer), inputs, f, line);
  lines_[o->path] = o->line;
  return out;
}

bool Interpreter::function(const std::string& name, const std::vector<Value>& args, const Named& named, Frame& f,
                           int line, Value& out) {
  const size_t dot = name.rfind('.');
  const LayerInfo* info = type_of_function(dot == std::string::npos ? name : name.substr(dot + 1));
  if (!info) return false;
  std::vector<int> inputs;
  std::vector<Value> rest;
  for (const Value& v : args) {
    if (v.kind == Value::Kind::tensor && rest.empty())
      inputs.push_back(v.layer);
    else
      rest.push_back(v);
  }
  if (static_cast<int>(inputs.size()) != info->inputs - info->optional) return false;
  out = add(layer_of(*info, rest, named, line), inputs, f, line);
  return true;
}

}  // namespace tenon::python
