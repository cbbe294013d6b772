#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/formats/aten/program.h"

namespace tenon::formats {

struct AtenParameter {
  enum class Type : uint8_t { tensor, integer, real, number, truth, text, type, other };
  Type type = Type::other;
  std::string name;
  bool list = false;         ///< of them
  int64_t count = 0;         ///< of a list that one number may stand for
  bool optional = false;     ///< may be None
  bool keyword = false;      ///< is given by its name alone
  bool has_default = false;  ///< may be left out
  AtenArgument fallback = {};
};

/// An operator of PyTorch with an overload, as "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"
/// says it.
struct AtenSchema {
  std::string op, overload;  ///< "softmax", "int"; "default" where it has no name
  std::vector<AtenParameter> parameters;
  size_t results = 1;       ///< how many it gives
  bool gives_list = false;  ///< of tensors: how many is known at a call
  std::string target() const { return "aten." + op + "." + overload; }
  const AtenParameter* find(std::string_view name) const;
};
/// Throws Error for a text that is no schema.
AtenSchema parse_aten_schema(std::string_view text);

/// Every operator that is read or written, in PyTorch's own notation, one a line.
std::string_view aten_schema_texts();
/// "aten.softmax.int"; null where it is not among them.
const AtenSchema* find_aten_schema(const std::string& target);
/// All of one operator, in their order.
std::vector<const AtenSchema*> aten_overloads(const std::string& op);

}  // namespace tenon::formats
