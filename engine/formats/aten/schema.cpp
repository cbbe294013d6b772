#include "engine/formats/aten/schema.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "core/error.h"
#include "core/number.h"

namespace tenon::formats {
namespace {

AtenParameter::Type parameter_type(std::string_view word) {
  using Type = AtenParameter::Type;
  if (word.starts_with("Tensor")) return Type::tensor;
  if (word == "int" || word == "SymInt") return Type::integer;
  if (word == "float") return Type::real;
  if (word == "Scalar") return Type::number;
  if (word == "bool") return Type::truth;
  if (word == "str") return Type::text;
  if (word == "ScalarType") return Type::type;
  return Type::other;
}

AtenArgument default_of(const AtenParameter& p, std::string_view text) {
  using Kind = AtenArgument::Kind;
  AtenArgument a;
  if (text == "None") return a;
  if (text == "True" || text == "False") {
    a.kind = Kind::truth;
    a.truth = text == "True";
  } else if (text.starts_with('"') || text.starts_with('\'')) {
    a.kind = Kind::text;
    a.text = text.substr(1, text.size() - 2);
  } else if (p.list) {
    a.kind = Kind::integers;
    if (!text.starts_with('[')) {
      a.ints.assign(static_cast<size_t>(std::max<int64_t>(p.count, 1)), {std::stoll(std::string(text)), {}});
      return a;
    }
    for (size_t at = 1; at < text.size() && text[at] != ']';) {
      AtenInt n;
      const auto [end, code] = std::from_chars(text.data() + at, text.data() + text.size(), n.value);
      if (code != std::errc()) throw Error(fmt::format("the default {} is no list", text));
      a.ints.push_back(n);
      at = static_cast<size_t>(end - text.data());
      while (at < text.size() && (text[at] == ',' || text[at] == ' ')) ++at;
    }
  } else if (const auto number = number_of(text)) {
    const bool whole = text.find_first_of(".e") == text.npos && p.type != AtenParameter::Type::real;
    a.kind = whole ? Kind::integer : Kind::real;
    if (whole)
      a.ints.push_back({static_cast<int64_t>(*number), {}});
    else
      a.reals.push_back(*number);
  } else {
    a.kind = Kind::other;
    a.text = text;
  }
  return a;
}

AtenParameter parse_parameter(std::string_view text) {
  AtenParameter p;
  const size_t equal = text.find('=');
  const std::string_view head = text.substr(0, equal);
  const size_t space = head.rfind(' ');
  if (space == head.npos) throw Error(fmt::format("\"{}\" is no parameter", text));
  p.name = head.substr(space + 1);
  std::string_view type = head.substr(0, space);
  if (type.ends_with('?')) {
    p.optional = true;
    type.remove_suffix(1);
  }
  if (const size_t bracket = type.find('['); bracket != type.npos) {
    p.list = true;
    std::from_chars(type.data() + bracket + 1, type.data() + type.size(), p.count);
    type = type.substr(0, bracket);
    if (type.ends_with('?')) type.remove_suffix(1);
  }
  p.type = parameter_type(type);
  p.has_default = equal != text.npos;
  if (p.has_default) p.fallback = default_of(p, text.substr(equal + 1));
  return p;
}

const std::vector<AtenSchema>& schemas() {
  static const auto& all = *new std::vector<AtenSchema>([] {
    std::vector<AtenSchema> parsed;
    std::string text(aten_schema_texts());
    // A line that begins with blanks goes on from the one before.
    for (size_t at = text.find("\n    "); at != text.npos; at = text.find("\n    ", at)) text.replace(at, 5, " ");
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      if (end > at) parsed.push_back(parse_aten_schema(std::string_view(text).substr(at, end - at)));
      at = end + 1;
    }
    return parsed;
  }());
  return all;
}

}  // namespace

const AtenParameter* AtenSchema::find(std::string_view name) const {
  for (const AtenParameter& p : parameters)
    if (p.name == name) return &p;
  return nullptr;
}

AtenSchema parse_aten_schema(std::string_view text) {
  const size_t open = text.find('('), close = text.rfind(") ->");
  if (open == text.npos || close == text.npos || close < open)
    throw Error(fmt::format("\"{}\" is no schema of an operator", text));
  AtenSchema s;
  const std::string_view name = text.substr(0, open);
  const size_t dot = name.find('.');
  s.op = name.substr(0, dot);
  s.overload = dot == name.npos ? "default" : name.substr(dot + 1);
  const std::string_view gives = text.substr(close + 4);
  s.results = static_cast<size_t>(1 + std::count(gives.begin(), gives.end(), ','));
  s.gives_list = s.results == 1 && gives.find("[]") != gives.npos;
  bool keyword = false;
  int depth = 0;
  const std::string_view list = text.substr(open + 1, close - open - 1);
  for (size_t at = 0, from = 0; at <= list.size(); ++at) {
    if (at < list.size() && list[at] == '[') ++depth;
    if (at < list.size() && list[at] == ']') --depth;
    if (at < list.size() && (list[at] != ',' || depth > 0)) continue;
    std::string_view part = list.substr(from, at - from);
    while (part.starts_with(' ')) part.remove_prefix(1);
    from = at + 1;
    if (part == "*") {
      keyword = true;
    } else if (!part.empty()) {
      s.parameters.push_back(parse_parameter(part));
      s.parameters.back().keyword = keyword;
    }
  }
  return s;
}

const AtenSchema* find_aten_schema(const std::string& target) {
  static const auto& by_target = *new std::map<std::string, const AtenSchema*>([] {
    std::map<std::string, const AtenSchema*> all;
    for (const AtenSchema& s : schemas()) all.emplace(s.target(), &s);
    return all;
  }());
  const auto it = by_target.find(target);
  return it == by_target.end() ? nullptr : it->second;
}

std::vector<const AtenSchema*> aten_overloads(const std::string& op) {
  std::vector<const AtenSchema*> all;
  for (const AtenSchema& s : schemas())
    if (s.op == op) all.push_back(&s);
  return all;
}

}  // namespace tenon::formats
