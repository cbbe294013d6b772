#include "engine/spec/attr.h"

#include <charconv>
#include <cmath>
#include <sstream>

#include "core/error.h"

namespace tenon {
namespace {

[[noreturn]] void refuse(const AttrDef& d, const std::string& key, const std::string& value, const std::string& why) {
  throw Error::usage(key + " = " + value + ": " + why, key + ": " + d.help);
}

bool whole(const std::string& text, int64_t& i) {
  const char *begin = text.data(), *end = begin + text.size();
  auto exact = std::from_chars(begin, end, i);
  if (exact.ec == std::errc{} && exact.ptr == end) return true;
  double d = 0;
  auto [rest, error] = std::from_chars(begin, end, d);
  if (error != std::errc{} || rest != end || !(std::abs(d) <= 9e15) || d != std::floor(d)) return false;
  i = static_cast<int64_t>(d);  // 1e4 is a whole number too
  return true;
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
    std::string operator()(const std::string& s) const { return "\"" + s + "\""; }
    std::string operator()(const std::vector<int64_t>& list) const {
      std::string s;
      for (int64_t i : list) s += (s.empty() ? "" : ",") + std::to_string(i);
      return s;
    }
  } show;
  return std::visit(show, v);
}

AttrValue parse_attr(const AttrDef& d, const std::string& text, const std::string& key) {
  std::string quoted = "\"" + text + "\"", need = std::string("it is ") + attr_kind(d.fallback);
  int64_t i = 0;
  double x = 0;
  switch (d.fallback.index()) {
    case 0:
      if (!whole(text, i)) refuse(d, key, quoted, need);
      return i;
    case 1: {
      const char* end = text.data() + text.size();
      auto [rest, error] = std::from_chars(text.data(), end, x);
      if (error != std::errc{} || rest != end) refuse(d, key, quoted, need);
      return x;
    }
    case 2:
      if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
      if (text == "false" || text == "0" || text == "no" || text == "off") return false;
      refuse(d, key, quoted, need);
    case 3:
      return text;
    default: {
      std::vector<int64_t> list;
      std::istringstream words(text);
      for (std::string word; std::getline(words, word, ',');) {
        if (!whole(word, i)) refuse(d, key, quoted, need + ", as in 30,60");
        list.push_back(i);
      }
      return list;
    }
  }
}

void check_attr(const AttrDef& d, const AttrValue& v, const std::string& key) {
  if (v.index() != d.fallback.index()) refuse(d, key, attr_text(v), std::string("it is ") + attr_kind(d.fallback));
  if (!d.choices.empty()) {
    const std::string& s = std::get<std::string>(v);
    std::string list;
    for (const std::string& c : d.choices) {
      if (c == s) return;
      list += (list.empty() ? "" : ", ") + c;
    }
    std::string near = near_names(s, d.choices.data(), d.choices.size());
    refuse(d, key, attr_text(v), "it is one of " + list + (near.empty() ? "" : " (" + near + ")"));
  }
  if (d.min == d.max) return;
  auto limited = [&](double x) {
    if (!(x >= d.min))
      refuse(d, key, attr_text(v), std::isnan(x) ? "it is a number" : "it is at least " + attr_text(d.min));
    if (!(x <= d.max)) refuse(d, key, attr_text(v), "it is at most " + attr_text(d.max));
  };
  if (auto* i = std::get_if<int64_t>(&v)) limited(static_cast<double>(*i));
  if (auto* x = std::get_if<double>(&v)) limited(*x);
  if (auto* list = std::get_if<std::vector<int64_t>>(&v))
    for (int64_t i : *list) limited(static_cast<double>(i));
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
    AttrValue v = a.value;
    if (v.index() == 0 && defs[i].fallback.index() == 1) v = static_cast<double>(std::get<int64_t>(v));
    check_attr(defs[i], v, owner + "." + a.name);
    values_[i].value = std::move(v);
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

void refuse_name(const std::string& name, const std::vector<std::string>& there, const std::string& what) {
  std::string list, near = near_names(name, there.data(), there.size());
  for (const std::string& n : there) list += (list.empty() ? "" : ", ") + n;
  throw Error::usage("no " + what + " is called \"" + name + "\"" + (near.empty() ? "" : " (" + near + ")"),
                     "there are " + list);
}

}  // namespace tenon
