#include "engine/formats/python/matcher.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "engine/formats/python/print.h"
#include "engine/spec/layer_registry.h"

namespace tenon::python {
namespace {

bool is_input_name(const std::string& s) {
  return s.size() > 1 && s[0] == 'x' && s.find_first_not_of("0123456789", 1) == std::string::npos;
}
bool has_attr(const LayerInfo& info, const std::string& name) {
  return std::any_of(info.attrs.begin(), info.attrs.end(), [&](const AttrDef& d) { return d.name == name; });
}

/// A form's calls with the patterns they were read from.
struct Pattern {
  const PythonForm* form;
  const LayerInfo* info;
  const Call* call;
  Expr expr;
};
std::vector<Pattern> patterns_with(bool module) {
  std::vector<Pattern> out;
  for (const auto& form : python_forms()) {
    const LayerInfo* info = find_layer_type(form.name);
    if (!info || form.module != module) continue;
    std::vector<Expr> exprs = patterns_of(form, *info);
    for (size_t i = 0; i < form.calls.size(); ++i)
      out.push_back({python_forms().find(form.name), info, &form.calls[i], std::move(exprs[i])});
  }
  return out;
}
/// Read once: plug-ins that come later are seen when the registries change.
const std::vector<Pattern>& all_patterns(bool module) {
  static thread_local std::vector<Pattern> known[2];
  static thread_local uint64_t at[2] = {~0ull, ~0ull};
  if (at[module] != registry_generation()) known[module] = patterns_with(module), at[module] = registry_generation();
  return known[module];
}

}  // namespace

bool Matcher::match(const Expr& e, Value& out) {
  if (e.kind != Expr::Kind::call && e.kind != Expr::Kind::index && e.kind != Expr::Kind::binary) return false;
  auto attempt = [&](const Pattern& p, const std::shared_ptr<Object>& module) {
    if (p.expr.kind != e.kind) return false;
    Found found;
    found.module = module;
    if (!unify(p.expr, e, *p.info, found)) return false;
    out = made(found, *p.form, *p.info, *p.call, e.line);
    return true;
  };
  if (e.kind != Expr::Kind::binary)
    if (auto module = module_in(e); module && module->kind == Object::Kind::layer)
      for (const Pattern& p : all_patterns(true))
        if (p.form->name == module->layer.type && attempt(p, module)) return true;
  for (const Pattern& p : all_patterns(false)) {
    if (p.expr.kind != e.kind) continue;
    if (e.kind == Expr::Kind::binary) {  // of tensors, not of numbers
      if (p.expr.text != e.text) continue;
      auto held = Interpreter::hold(frame_);
      const Value a = in_.eval(e.items[0], frame_), b = in_.eval(e.items[1], frame_);
      Interpreter::give_back(frame_, std::move(held));
      if (a.kind != Value::Kind::tensor || b.kind != Value::Kind::tensor) {
        if (a.kind == Value::Kind::tensor || b.kind == Value::Kind::tensor)
          fail_at(e.line, "a tensor and " + shown(a.kind == Value::Kind::tensor ? b : a) + ": no layer does that",
                  "two tensors can be added, subtracted and multiplied");
        return false;
      }
      out = in_.add({{}, p.form->name, {}}, {a.layer, b.layer}, frame_, e.line);
      return true;
    }
    if (attempt(p, nullptr)) return true;
  }
  return false;
}

std::shared_ptr<Object> Matcher::module_in(const Expr& e) {
  if (e.kind == Expr::Kind::call) {
    if (auto o = in_.peek(e.items[0], frame_)) return o;
    if (e.items[0].kind == Expr::Kind::name)  // a function that is given what a module gives
      for (size_t i = 1; i < e.items.size(); ++i)
        if (auto o = module_in(e.items[i])) return o;
    return nullptr;
  }
  if (e.kind == Expr::Kind::index) return module_in(e.items[0]);
  return nullptr;
}

bool Matcher::unify(const Expr& pattern, const Expr& e, const LayerInfo& info, Found& found) {
  using Kind = Expr::Kind;
  if (pattern.kind == Kind::name) {
    if (pattern.text == "m") return found.module && in_.peek(e, frame_) == found.module;
    if (is_input_name(pattern.text)) {
      auto [at, added] = found.inputs.emplace(pattern.text, e);
      return added || text_of(at->second) == text_of(e);
    }
    if (has_attr(info, pattern.text)) return unify_value(pattern.text, e, found);
    return e.kind == Kind::name && e.text == pattern.text;
  }
  if (pattern.kind == Kind::attribute) {
    const std::string wanted = dotted(pattern);
    if (wanted.starts_with("torch.") || wanted.starts_with("F.")) return dotted(e) == wanted;
  }
  if (pattern.kind != e.kind) return false;
  switch (pattern.kind) {
    case Kind::call:
      return unify_call(pattern, e, info, found);
    case Kind::attribute:
    case Kind::binary:
    case Kind::unary:
    case Kind::text:
      if (pattern.text != e.text) return false;
      break;
    case Kind::boolean:
      if (pattern.truth != e.truth) return false;
      break;
    case Kind::whole:
      if (pattern.integer != e.integer) return false;
      break;
    default:
      break;
  }
  if (pattern.items.size() != e.items.size()) return false;
  for (size_t i = 0; i < pattern.items.size(); ++i)
    if (!unify(pattern.items[i], e.items[i], info, found)) return false;
  return true;
}

bool Matcher::unify_call(const Expr& pattern, const Expr& e, const LayerInfo& info, Found& found) {
  if (!unify(pattern.items[0], e.items[0], info, found)) return false;
  size_t at = 1;
  for (size_t i = 1; i < pattern.items.size(); ++i) {
    if (pattern.items[i].kind == Expr::Kind::star) {
      std::vector<Value> rest;
      for (; at < e.items.size(); ++at) rest.push_back(in_.eval(e.items[at], frame_));
      if (rest.size() == 1 && rest[0].kind == Value::Kind::list) rest = rest[0].items;
      for (const Value& v : rest)
        if (v.kind != Value::Kind::whole) return false;
      if (rest.empty()) return false;
      found.attrs[pattern.items[i].items[0].text] = Value::list(std::move(rest));
      continue;
    }
    if (at < e.items.size()) {
      if (!unify(pattern.items[i], e.items[at++], info, found)) return false;
      continue;
    }
    // By name, where it is the name of an attribute.
    const std::string& name = pattern.items[i].text;
    auto given = std::find_if(e.named.begin(), e.named.end(), [&](const auto& n) { return n.name == name; });
    if (pattern.items[i].kind != Expr::Kind::name || given == e.named.end()) return false;
    if (!unify(pattern.items[i], given->value, info, found)) return false;
  }
  std::set<std::string> used;
  for (const NamedExpr& in_pattern : pattern.named) {
    const std::string& name = in_pattern.name;
    const Expr& wanted = in_pattern.value;
    used.insert(name);
    auto given = std::find_if(e.named.begin(), e.named.end(), [&](const auto& n) { return n.name == name; });
    if (given != e.named.end()) {
      if (!unify(wanted, given->value, info, found)) return false;
    } else if (at < e.items.size()) {
      if (!unify(wanted, e.items[at++], info, found)) return false;
    } else if (wanted.kind == Expr::Kind::name && has_attr(info, wanted.text)) {
      continue;  // as by default
    } else if (name != "need_weights" && name != "is_causal" && name != "tgt_is_causal") {
      return false;
    }
  }
  for (const NamedExpr& given : e.named)
    if (!used.count(given.name) &&
        std::none_of(pattern.items.begin(), pattern.items.end(), [&](const Expr& i) { return i.text == given.name; }))
      return false;
  return at == e.items.size();
}

bool Matcher::unify_value(const std::string& attr, const Expr& e, Found& found) {
  Value v = in_.eval(e, frame_);
  if (v.kind == Value::Kind::tensor || v.kind == Value::Kind::object || v.kind == Value::Kind::states) return false;
  if (v.kind != Value::Kind::none) found.attrs[attr] = std::move(v);
  return true;
}

Value Matcher::made(const Found& found, const PythonForm& form, const LayerInfo& info, const Call& call, int line) {
  std::vector<int> inputs;
  auto held = Interpreter::hold(frame_);
  for (size_t port = 0; port < found.inputs.size(); ++port) {
    const Value v = in_.eval(found.inputs.at("x" + std::to_string(port)), frame_);
    if (v.kind != Value::Kind::tensor)
      fail_at(line, shown(v) + " is given to a " + info.type + ", which takes a tensor");
    inputs.push_back(v.layer);
  }
  Interpreter::give_back(frame_, std::move(held));
  LayerSpec layer;
  layer.type = info.type;
  if (found.module) {
    if (found.module->called)
      fail_at(line, found.module->path + " is called a second time", "a layer of a model has one place: make another");
    found.module->called = true;
    layer = found.module->layer;
    layer.name = found.module->path;
  }
  for (const auto& [name, value] : found.attrs) layer.attrs.push_back({name, attr_of(value)});
  for (const auto& [name, value] : call.when) layer.attrs.push_back({name, value});
  for (const auto& [name, usual] : form.usual) {
    if (found.module || found.attrs.count(name)) continue;
    if (!usual) fail_at(line, name + " is not said, and PyTorch has no default for it");
    layer.attrs.push_back({name, *usual});
  }
  Value out = in_.add(std::move(layer), inputs, frame_, line);
  if (found.module) in_.lines_[found.module->path] = found.module->line;
  return out;
}

}  // namespace tenon::python
