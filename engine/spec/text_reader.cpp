#include "engine/spec/text_reader.h"

#include <fmt/format.h>

#include "core/error.h"

namespace tenon {

static constexpr std::string_view kBlanks = " \t\r\n";

void TextReader::fail(const std::string& what, const std::string& hint, size_t at) const {
  throw Error::usage(fmt::format("{}: \"{}\", character {}: {}", about_, trimmed(text_), at + 1, what), hint);
}

void TextReader::fail(const std::string& what, const std::string& hint) {
  skip();
  fail(what, hint, at_);
}

void TextReader::skip() {
  while (at_ < text_.size() && kBlanks.find(text_[at_]) != std::string_view::npos) ++at_;
}

bool TextReader::sign(std::string_view s) {
  skip();
  if (!text_.substr(at_).starts_with(s)) return false;
  at_ += s.size();
  return true;
}

void TextReader::want(std::string_view s, const std::string& behind) {
  if (!sign(s)) fail(fmt::format("\"{}\" is missing behind {}", s, behind));
}

std::string TextReader::until_bracket(const std::string& of) {
  const size_t close = text_.find(')', at_);
  if (close == text_.npos) fail(fmt::format("\")\" is missing behind {}", of), {}, text_.size());
  const std::string inside = trimmed(text_.substr(at_, close - at_));
  if (!inside.empty()) at_ = close + 1;
  return inside;
}

std::string TextReader::trimmed(std::string_view text) {
  const size_t from = text.find_first_not_of(kBlanks);
  if (from == text.npos) return {};
  return std::string(text.substr(from, text.find_last_not_of(kBlanks) - from + 1));
}

}  // namespace tenon
