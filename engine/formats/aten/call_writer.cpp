#include "engine/formats/aten/call_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/error.h"
#include "engine/formats/aten/schema.h"
#include "engine/formats/torch/exported_archive.h"

namespace tenon::formats {
namespace {

using Kind = AtenArgument::Kind;
using Type = AtenParameter::Type;

/// Of TorchScript's number of a dtype, which is another one than a program has.
int64_t scalar_type_of(int64_t script) {
  static constexpr std::array<std::string_view, 16> names = {
      "uint8",     "int8",      "int16",      "int32", "int64", "float16", "float32", "float64",
      "complex32", "complex64", "complex128", "bool",  "",      "",        "",        "bfloat16"};
  return script < 0 || script >= std::ssize(names) ? 0 : exported_type_number(names[static_cast<size_t>(script)]);
}

/// The argument as the parameter takes it; nothing where it does not.
std::optional<AtenArgument> taken_by(const AtenParameter& p, const AtenArgument& a) {
  if (a.kind == Kind::none) return p.optional ? std::optional(a) : std::nullopt;
  AtenArgument as = a;
  if (p.list) {
    if (p.type == Type::tensor) return a.kind == Kind::tensors ? std::optional(as) : std::nullopt;
    if (p.type != Type::integer) return {};
    if (a.kind == Kind::tensors && a.names.empty()) as.kind = Kind::integers;
    return as.kind == Kind::integers ? std::optional(as) : std::nullopt;
  }
  switch (p.type) {
    case Type::tensor:
      return a.kind == Kind::tensor ? std::optional(as) : std::nullopt;
    case Type::integer:
      return a.kind == Kind::integer ? std::optional(as) : std::nullopt;
    case Type::real:
      if (a.kind == Kind::integer && a.ints[0].name.empty()) {
        as = {};
        as.kind = Kind::real;
        as.reals = {static_cast<double>(a.ints[0].value)};
      }
      return as.kind == Kind::real ? std::optional(as) : std::nullopt;
    case Type::number:
      return a.kind == Kind::integer || a.kind == Kind::real ? std::optional(as) : std::nullopt;
    case Type::truth:
      return a.kind == Kind::truth ? std::optional(as) : std::nullopt;
    case Type::text:
      return a.kind == Kind::text ? std::optional(as) : std::nullopt;
    case Type::type:
      if (a.kind != Kind::integer) return {};
      as.kind = Kind::type;
      as.ints[0].value = scalar_type_of(a.ints[0].value);
      return as;
    case Type::other:
      return {};
  }
  return {};
}

struct GivenArgument {
  std::string keyword;
  AtenArgument value;
};
std::optional<AtenNode> bound(const AtenSchema& s, const std::vector<GivenArgument>& given) {
  AtenNode n;
  n.target = s.target();
  size_t place = 0;
  std::vector<const AtenParameter*> filled;
  for (const GivenArgument& g : given) {
    const AtenParameter* p =
        g.keyword.empty() ? place < s.parameters.size() ? &s.parameters[place++] : nullptr : s.find(g.keyword);
    if (!p || (g.keyword.empty() && p->keyword)) return {};
    auto as = taken_by(*p, g.value);
    if (!as) return {};
    filled.push_back(p);
    n.inputs.emplace_back(p->name, std::move(*as));
  }
  for (const AtenParameter& p : s.parameters)
    if (!p.has_default && std::find(filled.begin(), filled.end(), &p) == filled.end()) return {};
  return n;
}

}  // namespace

AtenArgument AtenCallWriter::call(const ScriptExpression& e, const std::string& name) {
  std::vector<GivenArgument> given;
  for (size_t i = 0; i < e.parts.size(); ++i) given.push_back({e.parts[i].keyword, part(e.parts[i], name)});
  const bool whole = e.text == "size";
  const std::string op = whole ? "sym_size" : e.text;
  for (const AtenSchema* s : aten_overloads(op)) {
    auto node = bound(*s, given);
    if (!node) continue;
    node->whole = whole;
    node->outputs = {name};
    node->name = name;
    add_(std::move(*node));
    AtenArgument made;
    made.kind = whole ? Kind::integer : Kind::tensor;
    if (whole)
      made.ints = {{0, name}};
    else
      made.names = {name};
    return made;
  }
  throw OnnxUnsupported(fmt::format("no overload of the ATen operator {} takes its arguments", op));
}

AtenArgument AtenCallWriter::value_of(const ScriptExpression& e, const std::string& name) {
  AtenArgument a;
  switch (e.kind) {
    case ScriptExpression::Kind::none:
      break;
    case ScriptExpression::Kind::name:
      a.kind = Kind::tensor;
      a.names = {tensor_(e.text)};
      break;
    case ScriptExpression::Kind::truth:
      a.kind = Kind::truth;
      a.truth = e.truth;
      break;
    case ScriptExpression::Kind::integer:
      a.kind = Kind::integer;
      a.ints = {{e.integer, {}}};
      break;
    case ScriptExpression::Kind::real:
      a.kind = Kind::real;
      a.reals = {e.real};
      break;
    case ScriptExpression::Kind::text:
      a.kind = Kind::text;
      a.text = e.text;
      break;
    case ScriptExpression::Kind::list: {
      a.kind = Kind::tensors;
      for (size_t i = 0; i < e.parts.size(); ++i) {
        const AtenArgument item = part(e.parts[i], name);
        if (item.kind != Kind::tensor && item.kind != Kind::integer)
          throw OnnxUnsupported("a list of what are neither tensors nor whole numbers");
        a.kind = item.kind == Kind::tensor ? Kind::tensors : Kind::integers;
        a.names.insert(a.names.end(), item.names.begin(), item.names.end());
        a.ints.insert(a.ints.end(), item.ints.begin(), item.ints.end());
      }
      break;
    }
    case ScriptExpression::Kind::call:
      return call(e, name);
  }
  return a;
}

/// What is within another expression gets a name of its own, "relu_1".
AtenArgument AtenCallWriter::part(const ScriptExpression& e, const std::string& name) {
  if (e.kind != ScriptExpression::Kind::call) return value_of(e, name);
  std::string own;
  for (int k = 1; own.empty() || !taken_.insert(own).second; ++k) own = fmt::format("{}_{}", e.text, k);
  return value_of(e, own);
}

AtenArgument AtenCallWriter::write(const ScriptExpression& e, const std::string& name) { return value_of(e, name); }

}  // namespace tenon::formats
