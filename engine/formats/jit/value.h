#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/formats/aten/program.h"

namespace tenon::formats {

struct PyValue;

/// What a name of a TorchScript program stands for while it is read: tensors are values of the graph that is made,
/// everything else is known, but whole numbers that only a run knows.
struct JitValue {
  static constexpr size_t kMostItems = 4096;
  enum class Kind : uint8_t { none, tensor, whole, real, truth, text, list, dict, module, function, type, unknown };
  Kind kind = Kind::none;  ///< unknown: what an operator would give that cannot be read
  std::string text;  ///< of a tensor its name in the graph; of a function or type its full name; of a module its path
  AtenInt whole = {};
  double real = 0;
  bool truth = false;
  bool tuple = false;                                      ///< of a list
  std::shared_ptr<std::vector<JitValue>> items = nullptr;  ///< of a list, or the values of a dict; shared, as in Python
  const PyValue* object = nullptr;                         ///< of a module

  bool is_tensor() const { return kind == Kind::tensor; }
  bool is_known_whole() const { return kind == Kind::whole && whole.name.empty(); }
  /// "a tensor", "a list": for messages.
  const char* what() const;

  static JitValue tensor(std::string name) { return {Kind::tensor, std::move(name)}; }
  static JitValue number(int64_t v) { return {.kind = Kind::whole, .whole = {v, {}}}; }
  static JitValue fraction(double v) { return {.kind = Kind::real, .real = v}; }
  static JitValue boolean(bool v) { return {.kind = Kind::truth, .truth = v}; }
  /// Throws OnnxUnsupported for more items than any program has in a list.
  static JitValue list(std::vector<JitValue> items, bool tuple = false) {
    if (items.size() > kMostItems) throw OnnxUnsupported("it has a list of too many items");
    return {.kind = Kind::list, .tuple = tuple, .items = std::make_shared<std::vector<JitValue>>(std::move(items))};
  }
};

using JitKind = JitValue::Kind;

}  // namespace tenon::formats
