#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace tenon {

/// What readers of a line that a person types have in common: a place in the text, which goes on over blanks and signs,
/// and errors that say where they are.
class TextReader {
 protected:
  /// `about` begins its errors: "watches".
  TextReader(const char* about, std::string_view text) : text_(text), about_(about) {}

  /// Throws Error (usage) about this character of the text; without one, about what comes next.
  [[noreturn]] void fail(const std::string& what, const std::string& hint, size_t at) const;
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {});
  void skip();  ///< blanks
  /// Goes on behind `s` where it comes next; else stays.
  bool sign(std::string_view s);
  /// The same, and fails where it does not come.
  void want(std::string_view s, const std::string& behind);
  /// What stands before the next ")", without blanks around it, and goes on behind that; `of` names it where there is
  /// none.
  std::string until_bracket(const std::string& of);
  static std::string trimmed(std::string_view text);

  std::string_view text_;
  size_t at_ = 0;

 private:
  const char* about_;
};

}  // namespace tenon
