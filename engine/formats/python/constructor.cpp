#include "engine/formats/python/constructor.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "engine/formats/python/print.h"

namespace tenon::python {
namespace {

bool among(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// Whether PyTorch's default of an attribute is another.
bool is_unusual(const PythonForm& form, const std::string& name) {
  return std::any_of(form.usual.begin(), form.usual.end(), [&](const auto& u) { return u.first == name; });
}

const AttrDef* definition_of(const LayerInfo& info, const std::string& name) {
  auto d = std::find_if(info.attrs.begin(), info.attrs.end(), [&](const AttrDef& a) { return a.name == name; });
  return d == info.attrs.end() ? nullptr : &*d;
}

bool is_input(const std::string& name) {
  return name.size() > 1 && name[0] == 'x' && name.find_first_not_of("0123456789", 1) == std::string::npos;
}
void inputs_of(const Expr& e, std::set<std::string>& out) {
  if (e.kind == Expr::Kind::name && is_input(e.text)) out.insert(e.text);
  for (const Expr& i : e.items) inputs_of(i, out);
  for (const auto& [name, value] : e.named) inputs_of(value, out);
}

/// As large as it arrives: PyTorch's None.
Expr size_or_none(Expr e) {
  if (e.kind == Expr::Kind::whole && e.integer == -1) e.kind = Expr::Kind::none;
  for (Expr& i : e.items) i = size_or_none(std::move(i));
  return e;
}

/// The size of the last axis of "f32 [2, 5, 8]".
std::string last_size(const std::string& type) {
  const size_t end = type.rfind(']'), from = type.find_last_of("[ ", end);
  return type.substr(from + 1, end - from - 1);
}

}  // namespace

AttrValue value_of(const LayerSpec& layer, const AttrDef& def) {
  const AttrValue* given = layer.find(def.name);
  AttrValue v = given ? fit_attr(def, *given, def.name) : def.fallback;
  if (auto* list = std::get_if<std::vector<int64_t>>(&v)) {
    const auto& usual = std::get<std::vector<int64_t>>(def.fallback);
    const bool equal = std::all_of(usual.begin(), usual.end(), [&](int64_t x) { return x == usual[0]; });
    if (list->size() == 1 && usual.size() > 1 && equal) list->assign(usual.size(), list->front());
  }
  return v;
}

bool same_value(const AttrDef& def, const AttrValue& a, const AttrValue& b) {
  LayerSpec x, y;
  x.attrs = {{def.name, a}};
  y.attrs = {{def.name, b}};
  return value_of(x, def) == value_of(y, def);
}

Text constructor(const LayerSpec& layer, const LayerReport& report) {
  const LayerInfo& info = *find_layer_type(layer.type);
  const PythonForm& form = form_of(info);
  const std::vector<std::string> leading = leading_of(form, info);
  Text t;
  t.words(form.helper.starts_with("class ") ? layer.type + "(" : "nn." + layer.type + "(");
  bool first = true;
  auto argument = [&](const std::string& name, bool by_name, const std::string& value) {
    t.words((first ? "" : ", ") + (by_name ? name + "=" : ""));
    t.value({name, layer.name.substr(layer.name.rfind('.') + 1), value});
    first = false;
  };
  auto resolved = [&](const AttrDef& d) {
    for (const Attr& a : report.resolved)
      if (a.name == d.name) return a.value;
    return value_of(layer, d);
  };
  for (const std::string& name : leading) {
    const AttrDef& d = *definition_of(info, name);
    const Expr value = literal(resolved(d), among(form.whole, name));
    argument(name, false, text_of(name == "output_size" ? size_or_none(value) : value));
  }
  if (form.width) argument("features", false, last_size(report.inputs.at(0)));
  const std::string skipped = form.unless.substr(0, form.unless.find(' '));
  const std::string by = form.unless.substr(std::min(form.unless.size(), skipped.size() + 1));
  for (const AttrDef& d : info.attrs) {
    if (among(leading, d.name) || among(form.outside, d.name)) continue;
    AttrValue v = resolved(d);
    if (d.name == kAutoPadding) {
      if (std::get<std::string>(v).empty()) continue;
      argument("padding", true, text_of(literal(v, false)));
      continue;
    }
    if (d.name == "padding" && definition_of(info, kAutoPadding) &&
        !std::get<std::string>(value_of(layer, *definition_of(info, kAutoPadding))).empty())
      continue;
    bool needed = is_unusual(form, d.name) || d.name == "kernel_size" || d.name == "output_size";
    if (!by.empty() && d.name == skipped) {
      const AttrDef& other = *definition_of(info, by);
      if (!same_value(other, value_of(layer, other), other.fallback)) continue;
    }
    if (!needed && same_value(d, v, d.fallback)) continue;
    argument(d.name, true, text_of(literal(v, among(form.whole, d.name))));
  }
  t.words(")");
  return t;
}

bool holds(const Call& call, const LayerSpec& layer, const LayerInfo& info) {
  for (const auto& [name, value] : call.when) {
    const AttrDef* d = definition_of(info, name);
    if (!d || !same_value(*d, value_of(layer, *d), value)) return false;
  }
  return true;
}

size_t inputs_in(const Expr& pattern) {
  std::set<std::string> names;
  inputs_of(pattern, names);
  return names.size();
}

Expr written(const Expr& pattern, const std::map<std::string, Expr>& known, const LayerSpec& layer,
             const LayerInfo& info, const PythonForm& form) {
  auto again = [&](const Expr& e) { return written(e, known, layer, info, form); };
  if (pattern.kind == Expr::Kind::name) {
    if (auto k = known.find(pattern.text); k != known.end()) return k->second;
    if (const AttrDef* d = definition_of(info, pattern.text))
      return literal(value_of(layer, *d), among(form.whole, pattern.text));
    return pattern;
  }
  Expr out = pattern;
  out.items.clear();
  out.named.clear();
  for (const Expr& i : pattern.items) {
    if (i.kind != Expr::Kind::star) {
      out.items.push_back(again(i));
      continue;
    }
    const Expr list = literal(value_of(layer, *definition_of(info, i.items[0].text)), true);
    if (list.kind == Expr::Kind::list)
      out.items.insert(out.items.end(), list.items.begin(), list.items.end());
    else
      out.items.push_back(list);
  }
  for (const auto& [name, value] : pattern.named) {
    const AttrDef* d = value.kind == Expr::Kind::name ? definition_of(info, value.text) : nullptr;
    if (d && !known.count(value.text) && !is_unusual(form, d->name) && same_value(*d, value_of(layer, *d), d->fallback))
      continue;
    out.named.push_back({name, again(value)});
  }
  return out;
}

}  // namespace tenon::python
