#include "engine/formats/python/syntax.h"

#include <fmt/format.h>

#include <charconv>
#include <initializer_list>

#include "core/error.h"
#include "engine/formats/python/lexer.h"

namespace tenon::python {
namespace {

using Kind = Token::Kind;

class Parser {
 public:
  explicit Parser(const std::string& source) : tokens_(tokens_of(source)) {}

  Source run() {
    Source out;
    while (here().kind != Kind::end) statement(out.statements);
    out.comments = std::move(tokens_.comments);
    return out;
  }
  Expr run_expression() {
    Expr e = expressions();
    if (here().kind == Kind::newline) ++at_;
    if (here().kind != Kind::end) fail(fmt::format("{} is not expected", shown()));
    return e;
  }

 private:
  const Token& here() const { return tokens_.list[at_]; }
  const Token& next() { return tokens_.list[at_++]; }
  bool is(const char* sign) const { return here().kind == Kind::sign && here().text == sign; }
  bool is_word(const char* word) const { return here().kind == Kind::name && here().text == word; }
  bool take(const char* sign) { return is(sign) ? ++at_, true : false; }
  bool take_word(const char* word) { return is_word(word) ? ++at_, true : false; }
  [[noreturn]] void fail(const std::string& why) const { throw Error(fmt::format("line {}: {}", here().line, why)); }
  std::string shown() const {
    switch (here().kind) {
      case Kind::newline:
        return "the end of the line";
      case Kind::indent:
        return "a deeper line";
      case Kind::dedent:
        return "the end of the block";
      case Kind::end:
        return "the end of the text";
      default:
        return "'" + here().text + "'";
    }
  }
  void want(const char* sign) {
    if (!take(sign)) fail(fmt::format("'{}' is missing before {}", sign, shown()));
  }
  std::string want_name() {
    if (here().kind != Kind::name) fail(fmt::format("a name is missing before {}", shown()));
    return next().text;
  }
  Expr made(Expr::Kind kind, std::vector<Expr> items = {}, std::string text = {}) const {
    Expr e;
    e.kind = kind;
    e.items = std::move(items);
    e.text = std::move(text);
    e.line = here().line;
    return e;
  }

  // --- Statements ---------------------------------------------------------------------------------------------------
  std::vector<Statement> block() {
    want(":");
    std::vector<Statement> out;
    if (here().kind != Kind::newline) {  // on the same line
      simple(out);
      return out;
    }
    ++at_;
    if (here().kind != Kind::indent) fail("a block is missing behind ':'");
    ++at_;
    while (here().kind != Kind::dedent && here().kind != Kind::end) statement(out);
    if (here().kind == Kind::dedent) ++at_;
    return out;
  }

  void statement(std::vector<Statement>& out) {
    if (here().kind == Kind::newline) {
      ++at_;
      return;
    }
    if (here().kind == Kind::indent) fail("it is indented, and no block begins above it");
    while (take("@")) {  // decorators
      expression();
      if (here().kind == Kind::newline) ++at_;
    }
    Statement s;
    s.line = here().line;
    if (take_word("class")) {
      s.kind = Statement::Kind::type;
      s.name = want_name();
      if (take("(")) {
        if (!is(")")) s.value = list_until(")");
        want(")");
      }
      s.body = block();
    } else if (take_word("def")) {
      function(s);
    } else if (take_word("for")) {
      s.kind = Statement::Kind::loop;
      s.target = targets();
      if (!take_word("in")) fail("'in' is missing");
      s.value = expressions();
      s.body = block();
    } else if (take_word("if")) {
      branch(s);
    } else if (is_word("while") || is_word("with") || is_word("try") || is_word("async") || is_word("match")) {
      skip_block(s);
    } else {
      simple(out);
      return;
    }
    out.push_back(std::move(s));
  }

  void branch(Statement& s) {
    s.kind = Statement::Kind::branch;
    s.line = here().line;
    s.value = expression();
    s.body = block();
    if (take_word("elif")) {
      s.other.emplace_back();
      branch(s.other.back());
    } else if (take_word("else")) {
      s.other = block();
    }
  }

  void function(Statement& s) {
    s.kind = Statement::Kind::function;
    s.name = want_name();
    want("(");
    while (!is(")")) {
      Statement::Parameter p;
      if (take("**") || take("*")) p.note = "*";
      if (!is(",") && !is(")")) p.name = want_name();
      if (take(":")) p.note = note();
      if (take("=")) p.has_default = true, p.fallback = expression();
      s.parameters.push_back(std::move(p));
      if (!take(",")) break;
    }
    want(")");
    if (take("->")) expression();
    const int line = here().line;
    s.body = block();
    if (auto said = tokens_.comments.find(line); said != tokens_.comments.end()) s.comment = said->second;
  }
  /// An annotation, as written.
  std::string note() {
    const size_t from = at_;
    expression();
    std::string out;
    for (size_t i = from; i < at_; ++i) out += tokens_.list[i].text;
    return out;
  }

  /// A statement that is not read: its line, and the block behind it.
  void skip_block(Statement& s) {
    s.kind = Statement::Kind::unknown;
    s.name = here().text;
    while (here().kind != Kind::newline && here().kind != Kind::end) ++at_;
    if (here().kind == Kind::newline) ++at_;
    if (here().kind != Kind::indent) return;
    int depth = 0;
    do {
      if (here().kind == Kind::indent) ++depth;
      if (here().kind == Kind::dedent) --depth;
      ++at_;
    } while (depth > 0 && here().kind != Kind::end);
  }

  /// Statements of one line, with ';' between them.
  void simple(std::vector<Statement>& out) {
    do {
      if (here().kind == Kind::newline) break;
      out.push_back(one());
    } while (take(";"));
    const int line = here().line;
    if (here().kind != Kind::newline && here().kind != Kind::end) fail(fmt::format("{} is not expected", shown()));
    if (auto said = tokens_.comments.find(line); said != tokens_.comments.end() && !out.empty())
      out.back().comment = said->second;
    if (here().kind == Kind::newline) ++at_;
  }

  Statement one() {
    Statement s;
    s.line = here().line;
    if (is_word("import") || is_word("from") || is_word("pass") || is_word("global") || is_word("assert")) {
      while (here().kind != Kind::newline && here().kind != Kind::end && !is(";")) ++at_;
      return s;
    }
    for (const char* word : {"raise", "del", "yield", "break", "continue", "nonlocal"})
      if (is_word(word)) {
        s.kind = Statement::Kind::unknown;
        s.name = word;
        while (here().kind != Kind::newline && here().kind != Kind::end && !is(";")) ++at_;
        return s;
      }
    if (take_word("return")) {
      s.kind = Statement::Kind::give;
      if (here().kind != Kind::newline && here().kind != Kind::end) s.value = expressions();
      return s;
    }
    Expr first = expressions();
    if (take(":")) {  // an annotated name
      expression();
      if (!is("=")) return s;
    }
    for (const char* sign : {"+=", "-=", "*=", "/=", "@="})
      if (take(sign)) {
        s.kind = Statement::Kind::assign;
        s.target = first;
        s.value = made(Expr::Kind::binary, {first, expressions()}, std::string(1, sign[0]));
        return s;
      }
    if (!take("=")) {
      s.kind = first.kind == Expr::Kind::text ? Statement::Kind::pass : Statement::Kind::expression;
      s.value = std::move(first);
      return s;
    }
    s.kind = Statement::Kind::assign;
    s.target = std::move(first);
    s.value = expressions();
    if (is("=")) fail("a chain of assignments is not read: write one a line");
    return s;
  }

  // --- Expressions --------------------------------------------------------------------------------------------------
  /// One, or several with commas: a tuple.
  Expr expressions() {
    Expr first = starred();
    if (!is(",")) return first;
    Expr tuple = made(Expr::Kind::list, {std::move(first)});
    tuple.tuple = true;
    while (take(",")) {
      if (here().kind == Kind::newline || is("=") || is(")")) break;
      tuple.items.push_back(starred());
    }
    return tuple;
  }
  Expr targets() {
    Expr first = postfix();
    if (!is(",")) return first;
    Expr tuple = made(Expr::Kind::list, {std::move(first)});
    tuple.tuple = true;
    while (take(",")) tuple.items.push_back(postfix());
    return tuple;
  }
  Expr list_until(const char* closing) {
    Expr list = made(Expr::Kind::list);
    while (!is(closing)) {
      list.items.push_back(starred());
      if (!take(",")) break;
    }
    return list;
  }
  Expr starred() {
    if (take("*")) return made(Expr::Kind::star, {expression()});
    return expression();
  }
  Expr expression() {
    if (++depth_ > kDeepest) fail("it is nested too deep");
    Expr e = binary(0);
    if (take_word("if")) {
      Expr when = binary(0);
      if (!take_word("else")) fail("'else' is missing");
      e = made(Expr::Kind::choice, {std::move(e), std::move(when), expression()});
    }
    --depth_;
    return e;
  }

  /// The operator that stands here, of that strength; empty for none.
  std::string operator_of(int strength) {
    static const std::initializer_list<const char*> kSigns[] = {
        {}, {}, {"==", "!=", "<=", ">=", "<", ">"}, {"|"}, {"^"}, {"&"}, {"+", "-"}, {"*", "//", "/", "%", "@"}};
    if (strength == 0) return take_word("or") ? "or" : "";
    if (strength == 1) return take_word("and") ? "and" : "";
    if (strength == 2) {
      if (take_word("is")) return take_word("not") ? "is not" : "is";
      if (take_word("in")) return "in";
      if (is_word("not")) {
        ++at_;
        if (!take_word("in")) fail("'in' is missing behind 'not'");
        return "not in";
      }
    }
    for (const char* sign : kSigns[strength])
      if (take(sign)) return sign;
    return {};
  }
  Expr binary(int strength) {
    if (strength == 8) return unary();
    if (strength == 2 && take_word("not")) return made(Expr::Kind::unary, {binary(2)}, "not");
    Expr left = binary(strength + 1);
    for (;;) {
      std::string sign = operator_of(strength);
      if (sign.empty()) return left;
      Expr right = binary(strength + 1);
      left = made(Expr::Kind::binary, {std::move(left), std::move(right)}, std::move(sign));
    }
  }
  Expr unary() {
    for (const char* sign : {"-", "+", "~"})
      if (take(sign)) {
        if (++depth_ > kDeepest) fail("it is nested too deep");
        Expr e = made(Expr::Kind::unary, {unary()}, sign);
        --depth_;
        return e;
      }
    Expr base = postfix();
    if (take("**")) return made(Expr::Kind::binary, {std::move(base), unary()}, "**");
    return base;
  }
  Expr postfix() {
    Expr e = atom();
    for (;;) {
      if (take(".")) {
        std::string name = want_name();
        e = made(Expr::Kind::attribute, {std::move(e)}, std::move(name));
      } else if (take("(")) {
        e = call(std::move(e));
      } else if (take("[")) {
        Expr place = subscript();
        if (is(",")) {
          Expr tuple = made(Expr::Kind::list, {std::move(place)});
          tuple.tuple = true;
          while (take(",")) {
            if (is("]")) break;
            tuple.items.push_back(subscript());
          }
          place = std::move(tuple);
        }
        want("]");
        e = made(Expr::Kind::index, {std::move(e), std::move(place)});
      } else {
        return e;
      }
    }
  }
  Expr subscript() {
    Expr from;
    if (!is(":")) from = expression();
    if (!take(":")) return from;
    Expr to;
    if (!is("]") && !is(",") && !is(":")) to = expression();
    if (is(":")) fail("slices with a step are not read");
    return made(Expr::Kind::slice, {std::move(from), std::move(to)});
  }
  Expr call(Expr callee) {
    Expr e = made(Expr::Kind::call, {std::move(callee)});
    while (!is(")")) {
      if (here().kind == Kind::name && tokens_.list[at_ + 1].kind == Kind::sign && tokens_.list[at_ + 1].text == "=") {
        std::string name = next().text;
        ++at_;
        e.named.push_back({std::move(name), expression()});
      } else {
        Expr item = starred();
        if (is_word("for")) item = each(std::move(item));
        e.items.push_back(std::move(item));
      }
      if (!take(",")) break;
    }
    want(")");
    return e;
  }
  /// Behind the element of a list that is made in a loop.
  Expr each(Expr element) {
    ++at_;  // for
    std::string name = want_name();
    if (!take_word("in")) fail("'in' is missing");
    Expr over = binary(0);
    if (is_word("if") || is_word("for")) fail("a list made with a condition or two loops is not read");
    return made(Expr::Kind::each, {std::move(element), std::move(over)}, std::move(name));
  }

  Expr atom() {
    const Token& t = here();
    if (t.kind == Kind::number) return number();
    if (t.kind == Kind::text) {
      Expr e = made(Expr::Kind::text, {}, next().text);
      while (here().kind == Kind::text) e.text += next().text;
      return e;
    }
    if (t.kind == Kind::name) return name();
    if (take("(")) {
      if (++depth_ > kDeepest) fail("it is nested too deep");
      Expr inside;
      if (is(")")) {
        inside = made(Expr::Kind::list);
        inside.tuple = true;
      } else {
        inside = expressions();
      }
      want(")");
      --depth_;
      return inside;
    }
    if (take("[")) {
      if (is("]")) {
        ++at_;
        return made(Expr::Kind::list);
      }
      Expr first = starred();
      Expr list;
      if (is_word("for")) {
        list = each(std::move(first));
      } else {
        list = made(Expr::Kind::list, {std::move(first)});
        while (take(","))
          if (!is("]")) list.items.push_back(starred());
      }
      want("]");
      return list;
    }
    if (take("{")) {
      Expr dict = made(Expr::Kind::dict);
      while (!is("}")) {
        dict.items.push_back(expression());
        want(":");
        dict.items.push_back(expression());
        if (!take(",")) break;
      }
      want("}");
      return dict;
    }
    fail(fmt::format("{} is not expected", shown()));
  }
  Expr name() {
    const int line = here().line;
    if (is_word("lambda") || is_word("await") || is_word("yield")) fail(fmt::format("'{}' is not read", here().text));
    std::string text = next().text;
    Expr e = made(Expr::Kind::name, {}, text);
    if (text == "None") e.kind = Expr::Kind::none;
    if (text == "True" || text == "False") e.kind = Expr::Kind::boolean, e.truth = text == "True";
    e.line = line;
    return e;
  }
  Expr number() {
    const std::string text = next().text;
    Expr e = made(Expr::Kind::whole, {}, text);
    const char* end = text.data() + text.size();
    if (auto [p, ec] = std::from_chars(text.data(), end, e.integer); ec == std::errc() && p == end) return e;
    e.kind = Expr::Kind::number;
    std::string digits = text;
    if (digits.ends_with(".")) digits += "0";
    if (digits.starts_with(".")) digits = "0" + digits;
    if (auto dot = digits.find(".e"); dot != std::string::npos) digits.erase(dot, 1);
    end = digits.data() + digits.size();
    if (auto [p, ec] = std::from_chars(digits.data(), end, e.real); ec != std::errc() || p != end)
      fail(fmt::format("'{}' is no number that is read", text));
    return e;
  }

  static constexpr int kDeepest = 200;
  Tokens tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Source parse(const std::string& text) { return Parser(text).run(); }
Expr parse_expression(const std::string& text) { return Parser(text).run_expression(); }

}  // namespace tenon::python
