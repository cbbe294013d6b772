#include "engine/formats/torchscript/expression.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/number.h"

namespace tenon::formats {
namespace {

class ScriptParser {
 public:
  explicit ScriptParser(const std::string& text) : text_(text) {}

  ScriptExpression whole() {
    ScriptExpression e = expression();
    if (at_ != text_.size()) fail();
    return e;
  }

 private:
  using Kind = ScriptExpression::Kind;

  [[noreturn]] void fail() const {
    throw Error(fmt::format("no expression of TorchScript at character {} of: {}", at_, text_));
  }
  bool next_is(char c) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() && text_[at_] == c;
  }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!take(c)) fail();
  }
  std::string word() {
    next_is(' ');
    const size_t from = at_;
    auto in_word = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; };
    while (at_ < text_.size() && in_word(static_cast<unsigned char>(text_[at_]))) ++at_;
    if (at_ == from) fail();
    return text_.substr(from, at_ - from);
  }
  std::vector<ScriptExpression> parts(char end) {
    std::vector<ScriptExpression> all;
    if (take(end)) return all;
    do all.push_back(expression());
    while (take(','));
    need(end);
    return all;
  }

  ScriptExpression expression() {
    ScriptExpression e;
    if (take('[')) {
      e.kind = Kind::list;
      e.parts = parts(']');
      return e;
    }
    if (take('"')) {
      const size_t end = text_.find('"', at_);
      if (end == text_.npos) fail();
      e.kind = Kind::text;
      e.text = text_.substr(at_, end - at_);
      at_ = end + 1;
      return e;
    }
    if (next_is('-') || (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])))) return number();
    const std::string w = word();
    if (w == "annotate") {  // of a list that is empty
      need('(');
      word();
      need('[');
      word();
      need(']');
      need(',');
      e = expression();
      need(')');
    } else if (take('(')) {
      if (!w.starts_with("torch.")) fail();
      e.kind = Kind::call;
      e.text = w.substr(6);
      e.parts = parts(')');
    } else if (take('=')) {
      e = expression();
      e.keyword = w;
    } else if (w == "None") {
    } else if (w == "True" || w == "False") {
      e.kind = Kind::truth;
      e.truth = w == "True";
    } else if (w == "inf" || w == "nan") {
      e.kind = Kind::real;
      e.real = w == "inf" ? INFINITY : NAN;
    } else {
      e.kind = Kind::name;
      e.text = w;
    }
    return e;
  }

  ScriptExpression number() {
    const size_t from = at_;
    at_ += text_[at_] == '-' ? 1 : 0;
    auto in_number = [&](size_t i) {
      const char c = text_[i];
      return std::isdigit(static_cast<unsigned char>(c)) || c == '.' || c == 'e' ||
             ((c == '-' || c == '+') && text_[i - 1] == 'e');
    };
    ScriptExpression e;
    e.kind = Kind::real;
    if (text_.compare(at_, 3, "inf") == 0) {
      at_ += 3;
      e.real = -INFINITY;
      return e;
    }
    while (at_ < text_.size() && in_number(at_)) ++at_;
    const std::string digits = text_.substr(from, at_ - from);
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), e.integer);
    if (code == std::errc() && end == digits.data() + digits.size()) {
      e.kind = Kind::integer;
      return e;
    }
    const auto real = number_of(digits);
    if (!real) fail();
    e.real = *real;
    return e;
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

ScriptExpression parse_script_expression(const std::string& text) { return ScriptParser(text).whole(); }

}  // namespace tenon::formats
