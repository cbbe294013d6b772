#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/formats/python/syntax.h"
#include "engine/spec/model_spec.h"

namespace tenon::python {

struct Object;

/// What a name stands for while a source is read.
struct Value {
  enum class Kind : uint8_t {
    none,
    boolean,
    whole,
    number,
    text,
    list,    ///< items; of a tuple too
    dict,    ///< items: key, value, key, value, ...
    object,  ///< a module
    tensor,  ///< the result of `layer`
    states,  ///< what a recurrent layer gives beside its first result: nothing that a layer reads
  };
  Kind kind = Kind::none;
  int64_t whole = 0;  ///< of a boolean 0 or 1
  double number = 0;
  std::string text;
  std::vector<Value> items;
  std::shared_ptr<Object> object;
  int layer = -1;

  static Value of(int64_t n) { return {.kind = Kind::whole, .whole = n}; }
  static Value of(double d) { return {.kind = Kind::number, .number = d}; }
  static Value truth(bool b) { return {.kind = Kind::boolean, .whole = b}; }
  static Value of(std::string s) { return {.kind = Kind::text, .text = std::move(s)}; }
  static Value list(std::vector<Value> v) { return {.kind = Kind::list, .items = std::move(v)}; }
  static Value tensor(int layer) { return {.kind = Kind::tensor, .layer = layer}; }
  bool is_true() const;
  bool operator==(const Value& o) const;
};
/// "a number", "a module (Conv2d)": for messages.
std::string shown(const Value& v);

/// A module of the source: a layer, or what holds others.
struct Object {
  enum class Kind : uint8_t { layer, sequence, list, dict, instance, plain };
  Kind kind = Kind::plain;
  std::string path;
  LayerSpec layer;  ///< without a name before the tree is whole
  bool called = false;
  bool held = false;                      ///< it is a part of another module
  std::shared_ptr<const Object> same_as;  ///< the module that this is in one more place
  int line = 0;
  const Statement* type = nullptr;  ///< of an instance: its class
  std::vector<std::pair<std::string, std::shared_ptr<Object>>> parts;
  std::map<std::string, Value> members;  ///< what is no module: self.depth = 3
  std::shared_ptr<Object> part(const std::string& name) const;
};

/// What marks the class of a sub-model: its documentation begins with it, and goes on with the sub-model's name.
inline constexpr const char* kSubModelMark = "Sub-model: ";

/// A value as an attribute has it. Throws Error where none is.
AttrValue attr_of(const Value& v);

using Names = std::map<std::string, Value>;

/// Throws Error with the line in front.
[[noreturn]] void fail_at(int line, const std::string& why, const std::string& hint = {});

}  // namespace tenon::python
