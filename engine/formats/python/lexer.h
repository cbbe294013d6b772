#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon::python {

struct Token {
  enum class Kind : uint8_t { name, number, text, sign, newline, indent, dedent, end };
  Kind kind = Kind::end;
  std::string text;  ///< of a string what it stands for, without its quotes
  int line = 0;
};
struct Tokens {
  std::vector<Token> list;              ///< ends with `end`
  std::map<int, std::string> comments;  ///< by line, without "# "
};
/// Throws Error that begins with the line.
Tokens tokens_of(const std::string& source);

}  // namespace tenon::python
