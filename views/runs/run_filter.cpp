#include "views/runs/run_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/number.h"
#include "engine/train/metric.h"
#include "projects/finish.h"
#include "views/shared/format.h"

namespace tenon::views {

namespace {
/// What of a run a comparison looks at.
struct Field {
  enum class Kind { name, status, steps, total, seconds, created, error, note, tags, recipe, last, best };
  Kind kind = Kind::name;
  std::string key;  ///< of the recipe, or the metric's name
};
constexpr std::pair<const char*, Field::Kind> kOwn[] = {
    {"name", Field::Kind::name},       {"status", Field::Kind::status},   {"steps", Field::Kind::steps},
    {"total", Field::Kind::total},     {"seconds", Field::Kind::seconds}, {"time", Field::Kind::seconds},
    {"created", Field::Kind::created}, {"error", Field::Kind::error},     {"note", Field::Kind::note},
    {"tags", Field::Kind::tags},       {"tag", Field::Kind::tags}};

RunValue number(double x) { return {true, x, {}}; }
RunValue words(const std::string& text) { return {false, 0, text}; }

std::optional<RunValue> value_of(const Field& f, const RunRow& row) {
  switch (f.kind) {
    case Field::Kind::name:
      return words(row.info.name);
    case Field::Kind::status:
      return words(projects::status_text(row.info));
    case Field::Kind::steps:
      return number(static_cast<double>(row.info.steps));
    case Field::Kind::total:
      return number(static_cast<double>(row.info.total_steps));
    case Field::Kind::seconds:
      return number(row.info.seconds);
    case Field::Kind::created:
      return words(row.info.created);
    case Field::Kind::error:
      return words(row.info.error);
    case Field::Kind::note:
      return words(row.info.note);
    case Field::Kind::tags:
      return words(tags_text(row.info));
    case Field::Kind::recipe:
      if (auto at = row.recipe.find(f.key); at != row.recipe.end()) return at->second;
      return {};
    case Field::Kind::last:
    case Field::Kind::best:
      if (auto at = row.metrics.find(f.key); at != row.metrics.end()) {
        const double x = f.kind == Field::Kind::last ? at->second.last : at->second.best;
        if (f.kind == Field::Kind::last || std::isfinite(x)) return number(x);
      }
      return {};
  }
  return {};
}

/// A word of a filter and where it stands.
struct Token {
  enum class Kind { word, quoted, sign, open, close, end };
  Kind kind = Kind::end;
  std::string text;
  size_t at = 0;
};

Error wrong(size_t at, const std::string& what, const std::string& hint = {}) {
  return Error::usage(fmt::format("the filter says {} at letter {}", what, at + 1),
                      hint.empty() ? "For example: lr > 0.001 and best.accuracy >= 0.9 and name ~ cnn" : hint);
}

std::vector<Token> tokens_of(const std::string& text) {
  std::vector<Token> out;
  const std::string signs = "=!<>~";
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    const size_t from = i;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++i;
    } else if (c == '(' || c == ')') {
      out.push_back({c == '(' ? Token::Kind::open : Token::Kind::close, std::string(1, c), i++});
    } else if (c == '"' || c == '\'') {
      const size_t end = text.find(c, i + 1);
      if (end == text.npos) throw wrong(i, "a quote that does not end");
      out.push_back({Token::Kind::quoted, text.substr(i + 1, end - i - 1), i});
      i = end + 1;
    } else if (signs.find(c) != signs.npos) {
      while (i < text.size() && signs.find(text[i]) != signs.npos) ++i;
      std::string sign = text.substr(from, i - from);
      if (sign == "==") sign = "=";
      if (sign != "=" && sign != "!=" && sign != "<" && sign != "<=" && sign != ">" && sign != ">=" && sign != "~")
        throw wrong(from, "\"" + sign + "\"", "The operators are = != < <= > >= and ~ (holds these letters).");
      out.push_back({Token::Kind::sign, sign, from});
    } else {
      while (i < text.size() && !std::isspace(static_cast<unsigned char>(text[i])) && text[i] != '(' &&
             text[i] != ')' && text[i] != '"' && signs.find(text[i]) == signs.npos)
        ++i;
      out.push_back({Token::Kind::word, text.substr(from, i - from), from});
    }
  }
  out.push_back({Token::Kind::end, "", text.size()});
  return out;
}
}  // namespace

struct RunFilter::Node {
  enum class Kind { both, either, negation, comparison };
  Kind kind = Kind::comparison;
  std::unique_ptr<Node> a, b;
  Field field;
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
    const std::optional<RunValue> have = value_of(field, row);
    if (!have) return false;
    if (have->number && value.number && sign != "~") return holds(have->x, value.x);
    const std::string text = have->number ? format_exact(have->x) : have->text;
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
  Reader(const std::string& text, const std::vector<RunRow>& rows) : tokens_(tokens_of(text)) {
    for (const RunRow& r : rows) {
      for (const auto& [key, value] : r.recipe) keys_.insert(key);
      for (const auto& [name, end] : r.metrics) metrics_.insert(name);
    }
  }
  std::unique_ptr<Node> read() {
    auto all = either();
    if (now().kind == Token::Kind::close) throw wrong(now().at, "\")\" that was not opened");
    if (now().kind != Token::Kind::end)
      throw wrong(now().at, "\"" + now().text + "\" after a comparison", "Join comparisons with and, or.");
    return all;
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  bool word(const char* w) {
    if (now().kind != Token::Kind::word || lower(now().text) != w) return false;
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
    if (now().kind != Token::Kind::open) return comparison();
    ++at_;
    auto inside = either();
    if (now().kind != Token::Kind::close) throw wrong(at, "\"(\" that is not closed");
    ++at_;
    return inside;
  }
  std::unique_ptr<Node> comparison() {
    const Token name = now();
    if (name.kind == Token::Kind::end) throw wrong(name.at, "nothing where a comparison belongs");
    if (name.kind != Token::Kind::word) throw wrong(name.at, "\"" + name.text + "\" where a field belongs");
    auto n = std::make_unique<Node>();
    n->field = field_of(name);
    ++at_;
    if (now().kind != Token::Kind::sign)
      throw wrong(now().at,
                  now().kind == Token::Kind::end ? "nothing where an operator belongs"
                                                 : "\"" + now().text + "\" where an operator belongs",
                  "After " + name.text + " comes = != < <= > >= or ~, and a value.");
    n->sign = now().text;
    ++at_;
    const Token value = now();
    if (value.kind != Token::Kind::word && value.kind != Token::Kind::quoted)
      throw wrong(value.at,
                  value.kind == Token::Kind::end ? "nothing where a value belongs"
                                                 : "\"" + value.text + "\" where a value belongs",
                  "After " + name.text + " " + n->sign + " comes a number or a word.");
    ++at_;
    n->value.text = value.text;
    if (const auto x = value.kind == Token::Kind::word ? number_of(value.text) : std::nullopt) {
      n->value.number = true;
      n->value.x = *x;
    }
    return n;
  }

  Field field_of(const Token& t) const {
    for (const auto& [word, kind] : kOwn)
      if (t.text == word) return {kind, {}};
    if (t.text.starts_with("last.") || t.text.starts_with("best.")) {
      if (auto m = metric_named(t.text.substr(5))) {
        if (t.text[0] == 'b' && better(*m) == 0)
          throw wrong(t.at, "best." + *m + ", which has no better and worse", "Ask for last." + *m + ".");
        return {t.text[0] == 'b' ? Field::Kind::best : Field::Kind::last, *m};
      }
      throw unknown(t);
    }
    if (keys_.count(t.text)) return {Field::Kind::recipe, t.text};
    std::vector<std::string> ends;
    for (const std::string& k : keys_)
      if (k.ends_with("." + t.text)) ends.push_back(k);
    if (ends.size() == 1) return {Field::Kind::recipe, ends[0]};
    if (ends.size() > 1)
      throw wrong(t.at, "\"" + t.text + "\", which may be " + fmt::format("{}", fmt::join(ends, " or ")),
                  "Write the whole key.");
    if (auto m = metric_named(t.text)) return {Field::Kind::last, *m};
    throw unknown(t);
  }
  std::optional<std::string> metric_named(const std::string& name) const {
    for (const std::string& full : {name, "test_" + name})
      if (metrics_.count(full)) return full;
    return {};
  }
  Error unknown(const Token& t) const {
    std::vector<std::string> all(keys_.begin(), keys_.end());
    for (const std::string& k : keys_)
      if (const size_t dot = k.rfind('.'); dot != k.npos) all.push_back(k.substr(dot + 1));
    for (const std::string& m : metrics_) {
      all.push_back("last." + m);
      if (better(m) != 0) all.push_back("best." + m);
    }
    for (const auto& own : kOwn) all.emplace_back(own.first);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    const std::string near = near_names(t.text, all.data(), all.size());
    return wrong(
        t.at, "\"" + t.text + "\", which no run has",
        near.empty()
            ? "Fields are name, status, steps, seconds, created, tags, note, keys of the recipe, last.METRIC and "
              "best.METRIC."
            : near);
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::set<std::string> keys_, metrics_;
};
}  // namespace

RunFilter::RunFilter() = default;
RunFilter::~RunFilter() = default;
RunFilter::RunFilter(RunFilter&&) noexcept = default;
RunFilter& RunFilter::operator=(RunFilter&&) noexcept = default;

RunFilter::RunFilter(const std::string& text, const std::vector<RunRow>& rows) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) return;
  root_ = Reader(text, rows).read();
}

bool RunFilter::fits(const RunRow& row) const { return !root_ || root_->fits(row); }

}  // namespace tenon::views
