#include "views/runs/run_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "core/number.h"
#include "views/runs/run_field.h"
#include "views/shared/format.h"
#include "views/shared/meaning.h"

namespace tenon::views {

namespace {
/// A word of a filter and where it stands.
struct FilterToken {
  enum class Kind { word, quoted, sign, open, close, end };
  Kind kind = Kind::end;
  std::string text;
  size_t at = 0;
};

Error wrong(size_t at, const std::string& what, const std::string& hint = {}) {
  return Error::usage(fmt::format("the filter says {} at letter {}", what, at + 1),
                      hint.empty() ? "For example: lr > 0.001 and best.accuracy >= 0.9 and name ~ cnn" : hint);
}

std::vector<FilterToken> tokens_of(const std::string& text) {
  std::vector<FilterToken> out;
  const std::string signs = "=!<>~";
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    const size_t from = i;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++i;
    } else if (c == '(' || c == ')') {
      out.push_back({c == '(' ? FilterToken::Kind::open : FilterToken::Kind::close, std::string(1, c), i++});
    } else if (c == '"' || c == '\'') {
      const size_t end = text.find(c, i + 1);
      if (end == text.npos) throw wrong(i, "a quote that does not end");
      out.push_back({FilterToken::Kind::quoted, text.substr(i + 1, end - i - 1), i});
      i = end + 1;
    } else if (signs.find(c) != signs.npos) {
      while (i < text.size() && signs.find(text[i]) != signs.npos) ++i;
      std::string sign = text.substr(from, i - from);
      if (sign == "==") sign = "=";
      if (sign != "=" && sign != "!=" && sign != "<" && sign != "<=" && sign != ">" && sign != ">=" && sign != "~")
        throw wrong(from, "\"" + sign + "\"", "The operators are = != < <= > >= and ~ (holds these letters).");
      out.push_back({FilterToken::Kind::sign, sign, from});
    } else {
      while (i < text.size() && !std::isspace(static_cast<unsigned char>(text[i])) && text[i] != '(' &&
             text[i] != ')' && text[i] != '"' && signs.find(text[i]) == signs.npos)
        ++i;
      out.push_back({FilterToken::Kind::word, text.substr(from, i - from), from});
    }
  }
  out.push_back({FilterToken::Kind::end, "", text.size()});
  return out;
}
}  // namespace

struct RunFilter::Node {
  enum class Kind { both, either, negation, comparison };
  Kind kind = Kind::comparison;
  std::unique_ptr<Node> a, b;
  RunField field;
  std::string sign;
  RunValue value;

  bool fits(const RunRow& row) const {
    switch (kind) {
      case Kind::both:
        return a->fits(row) && b->fits(row);
      case Kind::either:
        return a->fits(row) || b->fits(row);
      case Kind::negation:
        return !a->fits(row);
      case Kind::comparison:
        break;
    }
    if (field.kind == RunField::Kind::recipe) {  // of all fields this one is looked at where it stands
      const RunValue* have = row.recipe.find(field.key);
      return have && fits(*have);
    }
    const std::optional<RunValue> have = value_of(field, row);
    if (!have) return false;
    if (field.kind != RunField::Kind::status) return fits(*have);
    // A state may be written as the table shows it or in English, as the command line has it.
    const RunValue shown{false, 0, state_word(have->text)};
    return sign == "!=" ? fits(*have) && fits(shown) : fits(*have) || fits(shown);
  }
  bool fits(const RunValue& have) const {
    if (have.number && value.number && sign != "~") return holds(have.x, value.x);
    const std::string text = have.number ? format_exact(have.x) : have.text;
    if (sign == "~") return lower(text).find(lower(value.text)) != std::string::npos;
    return holds(text, value.text);
  }
  template <class T>
  bool holds(const T& x, const T& y) const {
    if (sign == "=") return x == y;
    if (sign == "!=") return x != y;
    if (sign == "<") return x < y;
    if (sign == "<=") return x <= y;
    return sign == ">" ? x > y : x >= y;
  }
};

namespace {
using Node = RunFilter::Node;

/// Reads a filter by descent: or, and, not, comparison.
class Reader {
 public:
  Reader(const std::string& text, const RunFields& fields) : tokens_(tokens_of(text)), fields_(fields) {}
  std::unique_ptr<Node> read() {
    auto all = either();
    if (now().kind == FilterToken::Kind::close) throw wrong(now().at, "\")\" that was not opened");
    if (now().kind != FilterToken::Kind::end)
      throw wrong(now().at, "\"" + now().text + "\" after a comparison", "Join comparisons with and, or.");
    return all;
  }

 private:
  const FilterToken& now() const { return tokens_[at_]; }
  bool word(const char* w) {
    if (now().kind != FilterToken::Kind::word || lower(now().text) != w) return false;
    ++at_;
    return true;
  }
  static std::unique_ptr<Node> join(Node::Kind kind, std::unique_ptr<Node> a, std::unique_ptr<Node> b) {
    auto n = std::make_unique<Node>();
    n->kind = kind;
    n->a = std::move(a);
    n->b = std::move(b);
    return n;
  }
  std::unique_ptr<Node> either() {
    auto left = both();
    while (word("or")) left = join(Node::Kind::either, std::move(left), both());
    return left;
  }
  std::unique_ptr<Node> both() {
    auto left = one();
    while (word("and")) left = join(Node::Kind::both, std::move(left), one());
    return left;
  }
  std::unique_ptr<Node> one() {
    const size_t at = now().at;
    // What is typed is anyone's: a thousand parentheses must not use up the stack.
    if (++depth_ > 100) throw wrong(at, "a parenthesis within a hundred others");
    struct Leave {
      int& depth;
      ~Leave() { --depth; }
    } leave{depth_};
    if (word("not")) return join(Node::Kind::negation, one(), nullptr);
    if (now().kind != FilterToken::Kind::open) return comparison();
    ++at_;
    auto inside = either();
    if (now().kind != FilterToken::Kind::close) throw wrong(at, "\"(\" that is not closed");
    ++at_;
    return inside;
  }
  std::unique_ptr<Node> comparison() {
    const FilterToken name = now();
    if (name.kind == FilterToken::Kind::end) throw wrong(name.at, "nothing where a comparison belongs");
    if (name.kind != FilterToken::Kind::word) throw wrong(name.at, "\"" + name.text + "\" where a field belongs");
    auto n = std::make_unique<Node>();
    n->field = field_of(name);
    ++at_;
    if (now().kind != FilterToken::Kind::sign)
      throw wrong(now().at,
                  now().kind == FilterToken::Kind::end ? "nothing where an operator belongs"
                                                       : "\"" + now().text + "\" where an operator belongs",
                  "After " + name.text + " comes = != < <= > >= or ~, and a value.");
    n->sign = now().text;
    ++at_;
    const FilterToken value = now();
    if (value.kind != FilterToken::Kind::word && value.kind != FilterToken::Kind::quoted)
      throw wrong(value.at,
                  value.kind == FilterToken::Kind::end ? "nothing where a value belongs"
                                                       : "\"" + value.text + "\" where a value belongs",
                  "After " + name.text + " " + n->sign + " comes a number or a word.");
    ++at_;
    n->value.text = value.text;
    if (const auto x = value.kind == FilterToken::Kind::word ? number_of(value.text) : std::nullopt) {
      n->value.number = true;
      n->value.x = *x;
    }
    return n;
  }

  RunField field_of(const FilterToken& t) const {
    try {
      return field_named(fields_, t.text);
    } catch (const Error& e) {
      throw wrong(t.at, e.message(), e.hint());
    }
  }

  std::vector<FilterToken> tokens_;
  const RunFields& fields_;
  size_t at_ = 0;
  int depth_ = 0;
};
}  // namespace

RunFilter::RunFilter() = default;
RunFilter::~RunFilter() = default;
RunFilter::RunFilter(RunFilter&&) noexcept = default;
RunFilter& RunFilter::operator=(RunFilter&&) noexcept = default;

RunFilter::RunFilter(const std::string& text, const RunFields& fields) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) return;
  root_ = Reader(text, fields).read();
}

bool RunFilter::fits(const RunRow& row) const { return !root_ || root_->fits(row); }

}  // namespace tenon::views
