#include "engine/formats/python/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "engine/formats/python/matcher.h"
#include "engine/formats/python/print.h"

namespace tenon::python {
namespace {

constexpr int kDeepest = 60;
constexpr int64_t kMostSteps = 1'000'000;

const Statement* function_of(const Statement& type, const std::string& name) {
  for (const Statement& s : type.body)
    if (s.kind == Statement::Kind::function && s.name == name) return &s;
  return nullptr;
}
bool is_module_class(const Statement& s) {
  return s.kind == Statement::Kind::type && std::any_of(s.value.items.begin(), s.value.items.end(), [](const Expr& e) {
           return e.kind == Expr::Kind::attribute ? e.text == "Module" : e.text == "Module";
         });
}
void names_in(const Expr& e, std::set<std::string>& out) {
  if (e.kind == Expr::Kind::name) out.insert(e.text);
  for (const Expr& i : e.items) names_in(i, out);
  for (const auto& [name, value] : e.named) names_in(value, out);
}
void names_in(const std::vector<Statement>& body, std::set<std::string>& out) {
  for (const Statement& s : body) {
    names_in(s.value, out);
    names_in(s.target, out);
    names_in(s.body, out);
    names_in(s.other, out);
  }
}

/// What a comment of the source says to a reader: parts between " | ".
struct Notes {
  std::string off, layer, words;
};
Notes notes_of(const std::string& comment) {
  Notes n;
  for (size_t from = 0; from < comment.size();) {
    const size_t end = std::min(comment.find(" | ", from), comment.size());
    const std::string part = comment.substr(from, end - from);
    if (part.starts_with("off: "))
      n.off = part.substr(5);
    else if (part.starts_with("layer: "))
      n.layer = part.substr(7);
    else
      n.words += (n.words.empty() ? "" : " | ") + part;
    from = end + 3;
  }
  for (size_t at; (at = n.words.find("\\n")) != std::string::npos;) n.words.replace(at, 2, "\n");
  return n;
}

}  // namespace

Interpreter::Interpreter(const Source& source, const ModelSpec* before)
    : source_(source.statements), comments_(source.comments), before_(before) {
  for (const Statement& s : source_)
    if (s.kind == Statement::Kind::type) classes_[s.name] = &s;
}

void Interpreter::count(int line) {
  if (++steps_ > kMostSteps) fail_at(line, "the source goes on for too long: more than a million steps");
}

const Statement& Interpreter::model_class() const {
  std::set<std::string> used;
  const Statement* last = nullptr;
  for (const auto& [name, type] : classes_)
    if (is_module_class(*type)) names_in(type->body, used);
  for (const Statement& s : source_)
    if (is_module_class(s) && function_of(s, "forward") && (!last || !used.count(s.name))) last = &s;
  if (!last)
    throw Error("line 1: no class here is a model", "write class Net(nn.Module): with an __init__ and a forward");
  return *last;
}

ModelSpec Interpreter::run() {
  const Statement& type = model_class();
  model_.name = before_ ? before_->name : type.name;
  if (!type.body.empty() && type.body[0].value.kind == Expr::Kind::text && !type.body[0].value.text.empty())
    model_.name = type.body[0].value.text;
  Value root = instance(type, {}, {}, type.line);
  place(*root.object, "");

  const Statement& forward = *function_of(type, "forward");
  if (forward.parameters.size() != 2)
    fail_at(forward.line, "forward has " + std::to_string(forward.parameters.size()) +
                              " parameters; a model reads one input: forward(self, x)");
  const std::string& parameter = forward.parameters[1].name;
  const Notes said = notes_of(forward.comment);
  LayerSpec input{parameter == "x" ? "input" : parameter, "Input", {}};
  if (before_)
    for (const LayerSpec& l : before_->layers)
      if (l.type == "Input") input = l;
  const size_t colon = said.words.find(": "), open = said.words.find('[');
  if (colon != std::string::npos && open != std::string::npos && open > colon) {  // "input: f32 [1, 28, 28]"
    input.name = said.words.substr(0, colon);
    const std::string dtype = said.words.substr(colon + 2, open - colon - 3);
    const size_t close = std::min(said.words.find(']', open), said.words.size());
    const LayerInfo& info = *find_layer_type("Input");
    input.attrs = {{"shape", parse_attr(info.attrs[0], said.words.substr(open, close + 1 - open),
                                        fmt::format("line {}: shape", forward.line))}};
    if (dtype != "f32") input.attrs.push_back({"dtype", dtype});
    input.comment = close + 4 <= said.words.size() ? said.words.substr(close + 4) : "";
  } else if (!before_) {
    fail_at(forward.line, "what it reads is not said",
            "write it behind the line: def forward(self, x):  # input: f32 [1, 28, 28]");
  }
  Frame f;
  f.self = root.object.get();
  f.forward = true;
  const Value x = add(input, {}, f, forward.line);
  f.names = {{"self", root}, {parameter, x}};
  Value result;
  Frame out;
  if (!follow(forward.body, f, result)) fail_at(forward.line, "forward returns nothing");
  if (result.kind != Value::Kind::tensor)
    fail_at(forward.line, "forward returns " + shown(result) + "; a model gives one tensor");
  LayerSpec output{"output", "Output", {}};
  const Notes end = notes_of(f.comment);
  if (before_)
    for (const LayerSpec& l : before_->layers)
      if (l.type == "Output") output = l;
  if (!end.layer.empty()) output.name = end.layer;
  output.comment = end.words;
  out.self = root.object.get();
  add(output, {result.layer}, out, forward.line);
  note_unused(*root.object);
  note_submodels(*root.object);
  return std::move(model_);
}

/// A comment behind the only module that its line makes is that layer's.
void Interpreter::comment(Object& o) {
  auto said = comments_.find(o.line);
  if (said == comments_.end()) return;
  auto [at, first] = commented_.emplace(o.line, &o);
  if (first)
    o.layer.comment = notes_of(said->second).words;
  else if (at->second)
    at->second->layer.comment.clear(), at->second = nullptr;
}

Interpreter::Held Interpreter::hold(Frame& f) { return {std::exchange(f.target, {}), std::exchange(f.comment, {})}; }
void Interpreter::give_back(Frame& f, Held held) {
  f.target = std::move(held.target);
  f.comment = std::move(held.comment);
}

void Interpreter::place(Object& o, const std::string& path) {
  o.path = path;
  for (auto& [name, part] : o.parts) place(*part, path.empty() ? name : path + "." + name);
}
std::shared_ptr<Object> Interpreter::as_part(const std::shared_ptr<Object>& o, int line) const {
  if (!std::exchange(o->held, true)) return o;
  const auto again = std::make_shared<Object>(*o);
  again->same_as = o->same_as ? o->same_as : o;
  again->line = line;
  if (const auto said = comments_.find(line); said != comments_.end() && o->kind == Object::Kind::layer)
    again->layer.comment = notes_of(said->second).words;
  else if (o->kind == Object::Kind::layer && o->line != line && comments_.contains(o->line))
    again->layer.comment.clear();
  for (auto& [name, part] : again->parts) part = as_part(part, line);
  return again;
}
void Interpreter::note_submodels(const Object& o) {
  if (o.kind == Object::Kind::instance && !o.path.empty() && !o.type->body.empty()) {
    const std::string &text = o.type->body[0].value.text, mark = kSubModelMark;
    if (o.type->body[0].value.kind == Expr::Kind::text && text.size() > mark.size() && text.starts_with(mark)) {
      const std::string name = text.substr(mark.size());
      auto s = std::find_if(model_.submodels.begin(), model_.submodels.end(), [&](auto& m) { return m.name == name; });
      if (s == model_.submodels.end()) s = model_.submodels.insert(s, SubModelSpec{name, {}});
      s->instances.push_back(o.path);
    }
  }
  for (const auto& [name, part] : o.parts) note_submodels(*part);
}
void Interpreter::note_unused(const Object& o) {
  if (o.kind == Object::Kind::layer && !o.called)
    remarks_.push_back(fmt::format("line {}: {} is made and never called: it is left out", o.line, o.path));
  for (const auto& [name, part] : o.parts) note_unused(*part);
}

void Interpreter::bind_function(Frame& f, const Statement& function, const std::vector<Value>& args,
                                const std::vector<std::pair<std::string, Value>>& named, int line) {
  const auto& told = function.parameters;
  if (args.size() + 1 > told.size())
    fail_at(line, fmt::format("{} values are given, and it takes {}", args.size(), told.size() - 1));
  for (size_t i = 1; i < told.size(); ++i) {
    if (told[i].note == "*") fail_at(function.line, "* and ** parameters are not read");
    auto by_name = std::find_if(named.begin(), named.end(), [&](const auto& n) { return n.first == told[i].name; });
    if (i <= args.size())
      f.names[told[i].name] = args[i - 1];
    else if (by_name != named.end())
      f.names[told[i].name] = by_name->second;
    else if (told[i].has_default)
      f.names[told[i].name] = eval(told[i].fallback, f);
    else
      fail_at(line, "\"" + told[i].name + "\" is not given",
              f.forward ? "" : "give it a default: the model is made without arguments");
  }
  for (const auto& given : named)
    if (std::none_of(told.begin(), told.end(), [&](const auto& p) { return p.name == given.first; }))
      fail_at(line, "it takes no \"" + given.first + "\"");
}

Value Interpreter::instance(const Statement& type, std::vector<Value> args,
                            std::vector<std::pair<std::string, Value>> named, int line) {
  if (!is_module_class(type))
    fail_at(line, type.name + " is no nn.Module", "models are read of classes that derive from nn.Module themselves");
  if (++making_ > kDeepest) fail_at(line, "classes make each other without an end");
  Value v{.kind = Value::Kind::object, .object = std::make_shared<Object>()};
  v.object->kind = Object::Kind::instance;
  v.object->type = &type;
  v.object->line = line;
  if (const Statement* init = function_of(type, "__init__")) {
    Frame f;
    f.self = v.object.get();
    f.names["self"] = v;
    bind_function(f, *init, args, named, line);
    Value nothing;
    follow(init->body, f, nothing);
  }
  --making_;
  return v;
}

bool Interpreter::follow(const std::vector<Statement>& body, Frame& f, Value& result) {
  for (const Statement& s : body)
    if (follow(s, f, result)) return true;
  return false;
}

bool Interpreter::follow(const Statement& s, Frame& f, Value& result) {
  count(s.line);
  f.target.clear();
  f.comment = s.comment;
  f.off = false;
  switch (s.kind) {
    case Statement::Kind::expression:
      expression(s, f);
      return false;
    case Statement::Kind::assign:
      assign(s, f);
      return false;
    case Statement::Kind::give:
      f.comment = f.forward && f.self && f.self->path.empty() ? s.comment : "";
      {
        const std::string said = std::exchange(f.comment, "");
        result = eval(s.value, f);
        f.comment = said;
      }
      return true;
    case Statement::Kind::loop: {
      const std::vector<Value> over = items_of(eval(s.value, f), s.line);
      for (const Value& v : over) {
        bind(s.target, v, f, s.line);
        if (follow(s.body, f, result)) return true;
      }
      return false;
    }
    case Statement::Kind::branch: {
      const Expr& asked = s.value.kind == Expr::Kind::unary ? s.value.items[0] : s.value;
      if (dotted(asked) == "self.training")
        fail_at(s.line, "what is done differs between training and evaluation", "layers know which of the two it is");
      const Value v = eval(s.value, f);
      if (v.kind == Value::Kind::tensor)
        fail_at(s.line, "what is done depends on values: a model does the same with every sample");
      return follow(v.is_true() ? s.body : s.other, f, result);
    }
    case Statement::Kind::unknown:
      fail_at(s.line, "'" + s.name + "' is not in the part of Python that is read");
    case Statement::Kind::function:
    case Statement::Kind::type:
    case Statement::Kind::pass:
      return false;
  }
  return false;
}

void Interpreter::expression(const Statement& s, Frame& f) {
  const Expr& e = s.value;
  if (e.kind == Expr::Kind::call) {
    const std::string name = dotted(e.items[0]);
    if (name == "print" || name.starts_with("nn.init.") || name == "self.apply" || name == "super().__init__") return;
    if (e.items[0].kind == Expr::Kind::attribute && e.items[0].text == "__init__") return;  // super().__init__()
    const Expr& callee = e.items[0];
    if (callee.kind == Expr::Kind::attribute && (callee.text == "add_module" || callee.text == "register_module")) {
      if (e.items.size() != 3) fail_at(s.line, name + " takes a name and a module");
      const Value called = eval(e.items[1], f);
      bind(Expr{.kind = Expr::Kind::attribute, .text = called.text, .items = {callee.items[0]}}, eval(e.items[2], f), f,
           s.line);
      return;
    }
    if (name == "self.register_buffer") fail_at(s.line, "a buffer of its own has no layer that holds it");
    if (name.ends_with(".append") && e.items.size() == 2) {
      const Value list = eval(e.items[0].items[0], f);
      if (list.kind == Value::Kind::object && list.object->kind == Object::Kind::list) {
        const Value part = eval(e.items[1], f);
        if (part.kind != Value::Kind::object) fail_at(s.line, shown(part) + " is no module");
        list.object->parts.emplace_back(std::to_string(list.object->parts.size()), as_part(part.object, s.line));
        return;
      }
      if (e.items[0].items[0].kind == Expr::Kind::name && list.kind == Value::Kind::list) {
        f.names[e.items[0].items[0].text].items.push_back(eval(e.items[1], f));
        return;
      }
    }
  }
  eval(e, f);
}

void Interpreter::assign(const Statement& s, Frame& f) {
  if (s.target.kind == Expr::Kind::name && f.forward) f.target = s.target.text;
  const Notes said = f.forward ? notes_of(s.comment) : Notes{};
  if (!said.off.empty()) {  // y = x  # off: self.drop(x)
    f.off = true;
    Expr call = parse_expression(said.off);
    call.line = s.line;
    const Value v = eval(call, f);
    f.off = false;
    bind(s.target, v, f, s.line);
    return;
  }
  // Of what a recurrent layer or attention gives, the first is a tensor that others read.
  if (f.forward && s.target.kind == Expr::Kind::list && s.value.kind == Expr::Kind::call)
    if (auto o = peek(s.value.items[0], f); o && o->kind == Object::Kind::layer) {
      Expr first{.kind = Expr::Kind::index};
      first.line = s.line;
      first.items = {s.value, Expr{.kind = Expr::Kind::whole, .integer = 0}};
      const Value v = eval(first, f);
      bind(s.target.items.at(0), v, f, s.line);
      for (size_t i = 1; i < s.target.items.size(); ++i)
        bind(s.target.items[i], Value{.kind = Value::Kind::states}, f, s.line);
      return;
    }
  Value v = eval(s.value, f);
  bind(s.target, v, f, s.line);
}

void Interpreter::bind(const Expr& target, const Value& v, Frame& f, int line) {
  if (target.kind == Expr::Kind::name) {
    f.names[target.text] = v;
    return;
  }
  if (target.kind == Expr::Kind::list) {
    if (v.kind == Value::Kind::states) {
      for (const Expr& t : target.items) bind(t, v, f, line);
      return;
    }
    if (v.kind != Value::Kind::list || v.items.size() != target.items.size())
      fail_at(line, fmt::format("{} is taken apart into {} names", shown(v), target.items.size()));
    for (size_t i = 0; i < target.items.size(); ++i) bind(target.items[i], v.items[i], f, line);
    return;
  }
  if (target.kind != Expr::Kind::attribute && target.kind != Expr::Kind::index)
    fail_at(line, text_of(target) + " is nothing that can be assigned to");
  const Value owner = eval(target.items[0], f);
  if (owner.kind != Value::Kind::object) fail_at(line, text_of(target.items[0]) + " is no module");
  if (f.forward) fail_at(line, "forward changes " + text_of(target), "keep what is passed on in a variable");
  std::string name = target.text;
  if (target.kind == Expr::Kind::index) {
    const Value key = eval(target.items[1], f);
    name = key.kind == Value::Kind::text ? key.text : shown(key);
  }
  Object& o = *owner.object;
  if (v.kind != Value::Kind::object) {
    o.members[name] = v;
    return;
  }
  for (auto& [n, part] : o.parts)
    if (n == name) {
      if (part != v.object) part = as_part(v.object, line);
      return;
    }
  o.parts.emplace_back(name, as_part(v.object, line));
}

std::string Interpreter::name_for(const std::string& type, Frame& f) const {
  const std::string prefix = f.self && !f.self->path.empty() ? f.self->path + "." : "";
  const Notes said = notes_of(f.comment);
  if (!said.layer.empty() && !has(prefix + said.layer)) return prefix + said.layer;
  if (!f.target.empty() && f.target != "x" && f.target != "y" && !f.names.count(f.target) && !has(prefix + f.target))
    return prefix + f.target;
  const std::string word = identifier(type);
  std::string name = prefix + word;
  for (int n = 2; has(name); ++n) name = prefix + word + "_" + std::to_string(n);
  return name;
}

Value Interpreter::add(LayerSpec layer, const std::vector<int>& inputs, Frame& f, int line) {
  count(line);
  if (layer.name.empty()) {
    layer.name = name_for(layer.type, f);
    layer.comment = notes_of(f.comment).words;
  }
  layer.off = f.off;
  if (has(layer.name)) fail_at(line, "two layers would be called \"" + layer.name + "\"", "name one otherwise");
  for (size_t port = 0; port < inputs.size(); ++port)
    model_.wires.push_back(
        {model_.layers[static_cast<size_t>(inputs[port])].name, 0, layer.name, static_cast<int>(port)});
  lines_[layer.name] = line;
  f.target.clear();  // a name is given once
  f.comment.clear();
  model_.layers.push_back(std::move(layer));
  return Value::tensor(static_cast<int>(model_.layers.size()) - 1);
}

}  // namespace tenon::python
