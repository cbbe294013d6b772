#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::formats {

/// An expression of TorchScript as rules write it: calls of torch.*, names, and values.
struct ScriptExpression {
  enum class Kind : uint8_t { name, none, truth, integer, real, text, list, call };
  Kind kind = Kind::none;
  std::string text;  ///< the name, the text, or the function without "torch."
  bool truth = false;
  int64_t integer = 0;
  double real = 0;
  std::vector<ScriptExpression> parts;  ///< of a list, or the arguments of a call
  std::string keyword;                  ///< of an argument that is given by its name
};
/// Throws Error naming the place of what is none.
ScriptExpression parse_script_expression(const std::string& text);

}  // namespace tenon::formats
