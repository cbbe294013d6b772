#include "engine/formats/python/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace tenon::python {
namespace {

int strength_of(const Expr& e) {
  if (e.kind == Expr::Kind::choice) return 0;
  if (e.kind == Expr::Kind::unary) return e.text == "not" ? 2 : 8;
  if (e.kind == Expr::Kind::list && e.tuple) return 10;
  if (e.kind != Expr::Kind::binary) return 10;
  if (e.text == "or") return 1;
  if (e.text == "and") return 2;
  if (e.text == "+" || e.text == "-") return 6;
  if (e.text == "*" || e.text == "/" || e.text == "//" || e.text == "%" || e.text == "@") return 7;
  return e.text == "**" ? 9 : 3;
}
/// In brackets where it binds less than what stands round it.
std::string within(const Expr& e, int strength) {
  std::string text = text_of(e);
  return strength_of(e) < strength ? "(" + text + ")" : text;
}

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? "\\n" : std::string(1, c);
  }
  return out + "\"";
}

std::string list_text(const Expr& e) {
  std::vector<std::string> items;
  for (const Expr& i : e.items) items.push_back(text_of(i));
  std::string inside = fmt::format("{}", fmt::join(items, ", "));
  if (!e.tuple) return "[" + inside + "]";
  return items.size() == 1 ? "(" + inside + ",)" : "(" + inside + ")";
}

std::string call_text(const Expr& e) {
  std::vector<std::string> args;
  for (size_t i = 1; i < e.items.size(); ++i) args.push_back(text_of(e.items[i]));
  for (const auto& [name, value] : e.named) args.push_back(name + "=" + text_of(value));
  return within(e.items[0], 10) + fmt::format("({})", fmt::join(args, ", "));
}

std::string real_text(double v) {
  std::string s = fmt::format("{}", v);
  if (s == "inf" || s == "-inf" || s == "nan") return "float(\"" + s + "\")";
  return s.find_first_of(".en") == std::string::npos ? s + ".0" : s;
}

}  // namespace

std::string text_of(const Expr& e) {
  using Kind = Expr::Kind;
  switch (e.kind) {
    case Kind::none:
      return "None";
    case Kind::boolean:
      return e.truth ? "True" : "False";
    case Kind::whole:
      return std::to_string(e.integer);
    case Kind::number:
      return real_text(e.real);
    case Kind::text:
      return quoted(e.text);
    case Kind::name:
      return e.text;
    case Kind::list:
      return list_text(e);
    case Kind::star:
      return "*" + text_of(e.items[0]);
    case Kind::call:
      return call_text(e);
    case Kind::attribute:
      return within(e.items[0], 10) + "." + e.text;
    case Kind::index: {
      const Expr& at = e.items[1];
      std::string inside = at.kind == Kind::list && at.tuple && at.items.size() > 1
                               ? list_text(at).substr(1, list_text(at).size() - 2)
                               : text_of(at);
      return within(e.items[0], 10) + "[" + inside + "]";
    }
    case Kind::slice:
      return (e.items[0].kind == Kind::none ? "" : text_of(e.items[0])) + ":" +
             (e.items[1].kind == Kind::none ? "" : text_of(e.items[1]));
    case Kind::unary:
      return (e.text == "not" ? "not " : e.text) + within(e.items[0], strength_of(e));
    case Kind::binary: {
      const int s = strength_of(e);
      return within(e.items[0], s) + " " + e.text + " " + within(e.items[1], s + 1);
    }
    case Kind::choice:
      return fmt::format("{} if {} else {}", text_of(e.items[0]), text_of(e.items[1]), text_of(e.items[2]));
    case Kind::each:
      return fmt::format("[{} for {} in {}]", text_of(e.items[0]), e.text, text_of(e.items[1]));
    case Kind::dict: {
      std::vector<std::string> items;
      for (size_t i = 0; i + 1 < e.items.size(); i += 2)
        items.push_back(text_of(e.items[i]) + ": " + text_of(e.items[i + 1]));
      return fmt::format("{{{}}}", fmt::join(items, ", "));
    }
  }
  return {};
}

Expr literal(const AttrValue& v, bool whole) {
  Expr e;
  if (const auto* n = std::get_if<int64_t>(&v)) {
    e.kind = Expr::Kind::whole;
    e.integer = *n;
  } else if (const auto* d = std::get_if<double>(&v)) {
    e.kind = Expr::Kind::number;
    e.real = *d;
  } else if (const auto* b = std::get_if<bool>(&v)) {
    e.kind = Expr::Kind::boolean;
    e.truth = *b;
  } else if (const auto* s = std::get_if<std::string>(&v)) {
    e.kind = Expr::Kind::text;
    e.text = *s;
  } else {
    const auto& list = std::get<std::vector<int64_t>>(v);
    const bool same = !list.empty() && std::all_of(list.begin(), list.end(), [&](int64_t x) { return x == list[0]; });
    if (same && (list.size() == 1 || !whole)) return literal(list[0], false);
    e.kind = Expr::Kind::list;
    e.tuple = true;
    for (int64_t x : list) e.items.push_back(literal(x, false));
  }
  return e;
}

bool is_identifier(const std::string& s) {
  static constexpr std::array<std::string_view, 35> kWords = {
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "for",      "finally",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0]))) return false;
  for (char c : s)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  return std::find(kWords.begin(), kWords.end(), s) == kWords.end();
}

bool is_taken(const std::string& s) {
  static constexpr std::array<std::string_view, 36> kMembers = {"forward",
                                                                "train",
                                                                "eval",
                                                                "apply",
                                                                "parameters",
                                                                "buffers",
                                                                "modules",
                                                                "children",
                                                                "training",
                                                                "to",
                                                                "cpu",
                                                                "cuda",
                                                                "type",
                                                                "float",
                                                                "double",
                                                                "half",
                                                                "bfloat16",
                                                                "compile",
                                                                "state_dict",
                                                                "zero_grad",
                                                                "share_memory",
                                                                "extra_repr",
                                                                "add_module",
                                                                "register_module",
                                                                "register_buffer",
                                                                "register_parameter",
                                                                "get_submodule",
                                                                "get_parameter",
                                                                "named_modules",
                                                                "named_children",
                                                                "named_parameters",
                                                                "named_buffers",
                                                                "load_state_dict",
                                                                "requires_grad_",
                                                                "dump_patches",
                                                                "self"};
  return std::find(kMembers.begin(), kMembers.end(), s) != kMembers.end();
}

std::string identifier(const std::string& s) {
  std::string out;
  for (char c : s)
    out += std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                                                       : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "y" + out;
  return is_identifier(out) ? out : out + "_";
}

std::string class_name(const std::string& s) {
  std::string out;
  bool up = true;
  for (char c : s) {
    if (!std::isalnum(static_cast<unsigned char>(c))) {
      up = true;
      continue;
    }
    out += up ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    up = false;
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "Net" + out;
  return is_identifier(out) ? out : out + "_";
}

}  // namespace tenon::python
