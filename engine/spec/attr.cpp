#include "engine/spec/attr.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "core/number.h"
#include "core/utf8.h"

namespace tenon {
namespace {

constexpr double kExact = 9e15;    ///< whole numbers up to here are doubles
constexpr double kNoLimit = 9e15;  ///< a maximum from here on is none that people are told

[[noreturn]] void refuse(const AttrDef& d, const std::string& key, const std::string& value, const std::string& why) {
  throw Error::usage(key + " = " + value + ": it is " + why,
                     key + (d.help.empty() ? "" : ": " + d.help) +
                         (d.choices.empty() ? " (" + attr_allowed(d) + ")" : ""));  // choices are told already
}

/// A value in a message: text in quotes.
std::string in_quotes(const AttrValue& v) {
  return std::holds_alternative<std::string>(v) ? "\"" + std::get<std::string>(v) + "\"" : attr_text(v);
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

/// A number without its unit: "20 steps" of "steps", "1 step" too.
std::string without_unit(const std::string& text, const std::string& unit) {
  std::string t = trimmed(text);
  for (const std::string& end : {unit, unit.ends_with('s') ? unit.substr(0, unit.size() - 1) : unit})
    if (!end.empty() && t.size() > end.size() && t.ends_with(end)) return trimmed(t.substr(0, t.size() - end.size()));
  return t;
}

bool whole(const std::string& text, int64_t& i) {
  std::string_view t = text;
  if (t.size() > 1 && t[0] == '+' && t[1] != '-') t.remove_prefix(1);
  auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), i);
  if (error == std::errc{} && end == t.data() + t.size()) return true;
  const std::optional<double> d = number_of(text);  // 1e4 is a whole number too
  if (!d || !(std::abs(*d) <= kExact) || *d != std::floor(*d)) return false;
  i = static_cast<int64_t>(*d);
  return true;
}

/// The numbers of "3, 3", "3x3" and "[3 3]"; false where one is none.
bool whole_list(const std::string& text, std::vector<int64_t>& list) {
  std::string word;
  auto end_word = [&] {
    int64_t i = 0;
    if (!word.empty() && !whole(word, i)) return false;
    if (!word.empty()) list.push_back(i);
    word.clear();
    return true;
  };
  for (char c : text) {
    if (std::string_view(", \tx[]()").find(c) == std::string_view::npos)
      word += c;
    else if (!end_word())
      return false;
  }
  return end_word();
}

/// Puts a value that stands for one of another kind into that kind.
void convert_to(const AttrDef& d, AttrValue& v) {
  const size_t to = d.fallback.index();
  if (const auto* i = std::get_if<int64_t>(&v)) {
    const int64_t n = *i;
    if (to == 1) v = static_cast<double>(n);
    if (to == 4) v = std::vector<int64_t>{n};
  } else if (const auto* x = std::get_if<double>(&v); x && to == 0) {
    if (*x == std::floor(*x) && std::abs(*x) <= kExact) v = static_cast<int64_t>(*x);
  }
}

}  // namespace

const char* attr_kind(const AttrValue& v) {
  constexpr const char* kinds[] = {"a whole number", "a number", "true or false", "text", "a list of whole numbers"};
  return kinds[v.index()];
}

std::string attr_text(const AttrValue& v) {
  struct {
    std::string operator()(int64_t i) const { return std::to_string(i); }
    std::string operator()(double d) const {
      char b[32];
      return {b, std::to_chars(b, b + sizeof b, d).ptr};
    }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(const std::string& s) const { return s; }
    std::string operator()(const std::vector<int64_t>& list) const {
      std::string s;
      for (int64_t i : list) s += (s.empty() ? "" : ", ") + std::to_string(i);
      return s;
    }
  } show;
  return std::visit(show, v);
}

std::string attr_range(const AttrDef& d) {
  if (d.min == d.max) return {};
  auto text = [&](double x) {
    return x == std::floor(x) && std::abs(x) <= kExact ? std::to_string(static_cast<int64_t>(x)) : attr_text(x);
  };
  if (d.min <= -kNoLimit) return "at most " + text(d.max);
  return d.max >= kNoLimit ? "at least " + text(d.min) : text(d.min) + " to " + text(d.max);
}

std::string attr_allowed(const AttrDef& d) {
  std::string s = attr_kind(d.fallback);
  if (!d.choices.empty()) s = "one of";
  for (const std::string& c : d.choices) s += (&c == d.choices.data() ? " " : ", ") + c;
  if (const std::string range = attr_range(d); !range.empty()) s += ", " + range;
  return d.unit.empty() ? s : s + ", in " + d.unit;
}

AttrValue fit_attr(const AttrDef& d, AttrValue v, const std::string& key) {
  convert_to(d, v);
  if (v.index() != d.fallback.index()) refuse(d, key, in_quotes(v), attr_kind(d.fallback));
  // A project keeps it as JSON.
  if (const auto* text = std::get_if<std::string>(&v); text && !is_utf8(*text))
    refuse(d, key, "\"" + as_utf8(*text) + "\"", "text in UTF-8; a file whose name is not has to be renamed");
  if (!d.choices.empty()) {
    const std::string& s = std::get<std::string>(v);
    if (std::find(d.choices.begin(), d.choices.end(), s) == d.choices.end()) {
      const std::string near = near_names(s, d.choices.data(), d.choices.size());
      refuse(d, key, in_quotes(v), attr_allowed(d) + (near.empty() ? "" : " (" + near + ")"));
    }
  }
  if (d.min == d.max) return v;
  auto limited = [&](double x) {
    if (!(x >= d.min)) refuse(d, key, in_quotes(v), std::isnan(x) ? "a number" : "at least " + attr_text(d.min));
    if (!(x <= d.max)) refuse(d, key, in_quotes(v), "at most " + attr_text(d.max));
  };
  if (auto* i = std::get_if<int64_t>(&v)) limited(static_cast<double>(*i));
  if (auto* x = std::get_if<double>(&v)) limited(*x);
  if (auto* list = std::get_if<std::vector<int64_t>>(&v))
    for (int64_t i : *list) limited(static_cast<double>(i));
  return v;
}

AttrValue parse_attr(const AttrDef& d, const std::string& text, const std::string& key) {
  const std::string word = without_unit(text, d.unit);
  int64_t i = 0;
  std::vector<int64_t> list;
  switch (d.fallback.index()) {
    case 0:
      if (whole(word, i)) return fit_attr(d, i, key);
      break;
    case 1:
      if (const std::optional<double> x = number_of(word)) return fit_attr(d, *x, key);
      break;
    case 2:
      for (const char* yes : {"true", "1", "yes", "on"})
        if (word == yes) return true;
      for (const char* no : {"false", "0", "no", "off"})
        if (word == no) return false;
      break;
    case 3:
      return fit_attr(d, text, key);
    default:
      if (whole_list(word, list)) return fit_attr(d, list, key);
      refuse(d, key, in_quotes(AttrValue(text)), std::string(attr_kind(d.fallback)) + ", as in 30, 60");
  }
  refuse(d, key, in_quotes(AttrValue(text)), attr_kind(d.fallback));
}

AttrValue attr_from_json(const nlohmann::json& j, const std::string& where) {
  using json = nlohmann::json;
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.is_number()) return j.get<double>();
  if (j.is_string()) return j.get<std::string>();
  if (j.is_array() && std::all_of(j.begin(), j.end(), [](const json& e) { return e.is_number_integer(); }))
    return j.get<std::vector<int64_t>>();
  throw Error(where + " is neither a number, text, true, false nor a list of whole numbers: " + j.dump());
}

nlohmann::json attr_to_json(const AttrValue& v) {
  return std::visit([](const auto& x) { return nlohmann::json(x); }, v);
}

AttrValues::AttrValues(const std::vector<AttrDef>& defs, const std::vector<Attr>& given, const std::string& owner) {
  std::vector<std::string> names;
  for (const AttrDef& d : defs) {
    values_.push_back({d.name, d.fallback});
    names.push_back(d.name);
  }
  for (const Attr& a : given) {
    size_t i = 0;
    while (i < defs.size() && defs[i].name != a.name) ++i;
    if (i == defs.size()) {
      std::string near = near_names(a.name, names.data(), names.size());
      throw Error::usage(owner + " has no attribute \"" + a.name + "\"" + (near.empty() ? "" : " (" + near + ")"));
    }
    values_[i].value = fit_attr(defs[i], a.value, owner + "." + a.name);
  }
}

const AttrValue& AttrValues::at(const std::string& name) const {
  for (const Attr& a : values_)
    if (a.name == name) return a.value;
  throw Error("no attribute \"" + name + "\" is defined here");
}

bool AttrValues::has(const std::string& name) const {
  for (const Attr& a : values_)
    if (a.name == name) return true;
  return false;
}

std::vector<AttrCall> parse_calls(const std::string& text, const std::string& key) {
  std::vector<AttrCall> calls;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ';');) {
    std::istringstream words(part);
    AttrCall call;
    for (std::string word; words >> word;) {
      if (call.name.empty()) {
        call.name = word;
        continue;
      }
      size_t at = word.find('=');
      if (at == 0 || at == word.npos)
        throw Error::usage(key + ": \"" + word + "\" of \"" + call.name + "\" is no NAME=VALUE",
                           "write it as in \"" + key + "=first a=1 b=2; second c=3\"");
      call.attrs.emplace_back(word.substr(0, at), word.substr(at + 1));
    }
    if (!call.name.empty()) calls.push_back(std::move(call));
  }
  return calls;
}

std::vector<Attr> call_attrs(const AttrCall& call, const std::vector<AttrDef>& defs, const std::string& key) {
  std::vector<Attr> attrs;
  for (const auto& [name, text] : call.attrs) {
    const AttrDef* def = nullptr;
    std::vector<std::string> names;
    for (const AttrDef& d : defs) {
      names.push_back(d.name);
      if (d.name == name) def = &d;
    }
    if (!def) {
      std::string near = near_names(name, names.data(), names.size());
      throw Error::usage(key + ": " + call.name + " has no \"" + name + "\"" + (near.empty() ? "" : " (" + near + ")"));
    }
    attrs.push_back({name, parse_attr(*def, text, key + ": " + call.name + " " + name)});
  }
  return attrs;
}

}  // namespace tenon
