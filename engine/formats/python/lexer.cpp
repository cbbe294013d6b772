#include "engine/formats/python/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/error.h"

namespace tenon::python {
namespace {

bool begins_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80); }
bool in_word(char c) { return begins_word(c) || std::isdigit(static_cast<unsigned char>(c)); }

class Lexer {
 public:
  explicit Lexer(const std::string& source) : s_(source) {}

  Tokens run() {
    while (at_ < s_.size()) line_begin();
    if (!out_.list.empty() && out_.list.back().kind != Token::Kind::newline) add(Token::Kind::newline);
    for (; indents_.size() > 1; indents_.pop_back()) add(Token::Kind::dedent);
    add(Token::Kind::end);
    return std::move(out_);
  }

 private:
  using Kind = Token::Kind;
  [[noreturn]] void fail(const std::string& why) const { throw Error(fmt::format("line {}: {}", line_, why)); }
  void add(Kind kind, std::string text = {}) { out_.list.push_back({kind, std::move(text), line_}); }
  char peek(size_t ahead = 0) const { return at_ + ahead < s_.size() ? s_[at_ + ahead] : '\0'; }

  /// A logical line: its indentation, then tokens up to its end.
  void line_begin() {
    int column = 0;
    for (; peek() == ' ' || peek() == '\t'; ++at_) column = peek() == '\t' ? column / 8 * 8 + 8 : column + 1;
    if (peek() == '#') at_ = std::min(s_.find('\n', at_), s_.size());
    if (peek() == '\r') ++at_;
    if (peek() == '\n') {
      ++at_, ++line_;
      return;
    }
    if (at_ >= s_.size()) return;
    indent(column);
    rest_of_line();
  }

  void indent(int column) {
    if (column > indents_.back()) {
      indents_.push_back(column);
      add(Kind::indent);
    }
    while (column < indents_.back()) {
      indents_.pop_back();
      add(Kind::dedent);
    }
    if (column != indents_.back()) fail("it is indented by no step that began above");
  }

  void rest_of_line() {
    int depth = 0;
    for (;;) {
      const char c = peek();
      if (at_ >= s_.size()) {
        if (depth) line_ = opened_.back(), fail("a bracket is not closed");
        return;
      }
      if (c == '\n') {
        if (depth == 0) add(Kind::newline);
        ++at_, ++line_;
        if (depth == 0) return;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
        at_ += peek(1) == '\r' ? 3 : 2;
        ++line_;
      } else if (c == '#') {
        comment();
      } else if (begins_word(c)) {
        word();
      } else if (std::isdigit(static_cast<unsigned char>(c)) ||
                 (c == '.' && std::isdigit(static_cast<unsigned char>(peek(1))))) {
        number();
      } else if (c == '"' || c == '\'') {
        text();
      } else {
        sign();
        const char s = out_.list.back().text[0];
        if (s == '(' || s == '[' || s == '{') ++depth, opened_.push_back(line_);
        if (s == ')' || s == ']' || s == '}') {
          if (--depth < 0) fail("a bracket closes that none opened");
          opened_.pop_back();
        }
        if (depth > kDeepest) fail("its brackets are nested too deep");
      }
    }
  }

  void comment() {
    size_t from = at_ + 1, end = std::min(s_.find('\n', at_), s_.size());
    at_ = end;
    while (from < end && s_[from] == ' ') ++from;
    while (end > from && std::isspace(static_cast<unsigned char>(s_[end - 1]))) --end;
    out_.comments[line_] = s_.substr(from, end - from);
  }
  void word() {
    size_t from = at_;
    while (at_ < s_.size() && in_word(s_[at_])) ++at_;
    std::string w = s_.substr(from, at_ - from);
    if ((peek() == '"' || peek() == '\'') && (w == "r" || w == "u" || w == "R" || w == "U")) {
      text(w == "r" || w == "R");
      return;
    }
    add(Kind::name, std::move(w));
  }
  void number() {
    size_t from = at_;
    auto digits = [&] {
      while (std::isdigit(static_cast<unsigned char>(peek())) || peek() == '_') ++at_;
    };
    digits();
    if (peek() == '.') ++at_, digits();
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      digits();
    }
    std::string n;
    for (size_t i = from; i < at_; ++i)
      if (s_[i] != '_') n += s_[i];
    add(Kind::number, std::move(n));
  }
  void text(bool raw = false) {
    const char quote = peek();
    const bool three = peek(1) == quote && peek(2) == quote;
    at_ += three ? 3 : 1;
    const int begin = line_;
    std::string out;
    for (;; ++at_) {
      if (at_ >= s_.size() || (!three && s_[at_] == '\n'))
        throw Error(fmt::format("line {}: a string is not closed", begin));
      char c = s_[at_];
      if (c == '\n') ++line_;
      if (c == quote && (!three || (peek(1) == quote && peek(2) == quote))) break;
      if (c == '\\' && !raw) {
        c = peek(1);
        ++at_;
        if (c == '\n') {
          ++line_;
          continue;
        }
        out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
        continue;
      }
      out += c;
    }
    at_ += three ? 3 : 1;
    out_.list.push_back({Kind::text, std::move(out), begin});
  }
  void sign() {
    static constexpr std::string_view kLong[] = {
        "**=", "//=", "**", "//", "==", "!=", "<=", ">=", "->", "+=", "-=", "*=", "/=", "@=", ":="};
    std::string_view rest = std::string_view(s_).substr(at_);
    for (std::string_view l : kLong)
      if (rest.starts_with(l)) {
        at_ += l.size();
        add(Kind::sign, std::string(l));
        return;
      }
    if (std::string_view("+-*/%@()[]{},:;.=<>&|~^").find(rest[0]) == std::string_view::npos)
      fail(fmt::format("'{}' has no meaning here", rest[0]));
    ++at_;
    add(Kind::sign, std::string(1, rest[0]));
  }

  static constexpr int kDeepest = 100;
  const std::string& s_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<int> indents_{0};
  std::vector<int> opened_;  ///< lines of the brackets that are open
  Tokens out_;
};

}  // namespace

Tokens tokens_of(const std::string& source) { return Lexer(source).run(); }

}  // namespace tenon::python
