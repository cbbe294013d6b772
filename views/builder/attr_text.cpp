#include "views/builder/attr_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "core/number.h"

namespace tenon::views {

std::string attr_text(const AttrValue& v) {
  if (auto* i = std::get_if<int64_t>(&v)) return std::to_string(*i);
  if (auto* d = std::get_if<double>(&v)) return fmt::format("{}", *d);
  if (auto* b = std::get_if<bool>(&v)) return *b ? "true" : "false";
  if (auto* s = std::get_if<std::string>(&v)) return *s;
  return fmt::format("{}", fmt::join(std::get<std::vector<int64_t>>(v), ", "));
}

static bool whole(const std::string& text, int64_t& out) {
  char* end = nullptr;
  out = std::strtoll(text.c_str(), &end, 10);
  while (*end == ' ') ++end;
  return end != text.c_str() && *end == 0;
}

static std::string limits(const AttrDef& d) {
  return d.min == d.max ? std::string() : fmt::format(" between {} and {}", d.min, d.max);
}

bool parse_attr(const AttrDef& def, const std::string& text, AttrValue& out, std::string& why) {
  auto inside = [&](double v) {
    if (def.min == def.max || (v >= def.min && v <= def.max)) return true;
    why = fmt::format("{} must lie{}", def.name, limits(def));
    return false;
  };
  if (std::holds_alternative<int64_t>(def.fallback)) {
    int64_t v;
    if (!whole(text, v)) {
      why = fmt::format("{} is a whole number{}", def.name, limits(def));
      return false;
    }
    out = v;
    return inside(static_cast<double>(v));
  }
  if (std::holds_alternative<double>(def.fallback)) {
    const auto v = number_of(text);
    if (!v) {
      why = fmt::format("{} is a number{}", def.name, limits(def));
      return false;
    }
    out = *v;
    return inside(*v);
  }
  if (std::holds_alternative<bool>(def.fallback)) {
    if (text != "true" && text != "false") {
      why = def.name + " is true or false";
      return false;
    }
    out = text == "true";
    return true;
  }
  if (std::holds_alternative<std::string>(def.fallback)) {
    out = text;
    return true;
  }
  std::vector<int64_t> list;
  std::string part;
  for (char c : text + ",") {
    if (c != ',' && c != 'x') {
      if (c != '[' && c != ']') part += c;
      continue;
    }
    int64_t v;
    if (!whole(part, v)) {
      why = def.name + " is a list of whole numbers, as in \"28, 28\"";
      return false;
    }
    if (!inside(static_cast<double>(v))) return false;
    list.push_back(v);
    part.clear();
  }
  out = list;
  return true;
}

std::string attr_summary(const LayerSpec& layer, const LayerInfo* info) {
  std::string out;
  auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  for (const Attr& a : layer.attrs) {
    const AttrDef* def = nullptr;
    if (info)
      for (const AttrDef& d : info->attrs)
        if (d.name == a.name) def = &d;
    // What a layer is told by is always there, without its name; of the rest what differs from its default, with it.
    bool known_by = a.name == "kernel_size" || a.name.starts_with("out_") || a.name == "shape";
    if (def && def->fallback == a.value && !known_by) continue;
    std::string value = attr_text(a.value);
    if (auto* list = std::get_if<std::vector<int64_t>>(&a.value)) {
      bool equal = list->size() == 2 && (*list)[0] == (*list)[1] && !known_by;
      value = equal ? std::to_string((*list)[0]) : fmt::format("{}", fmt::join(*list, "×"));
    }
    if (auto* flag = std::get_if<bool>(&a.value))
      add((*flag ? "" : "no ") + a.name);
    else
      add(known_by ? value : a.name + " " + value);
  }
  return out;
}

}  // namespace tenon::views
