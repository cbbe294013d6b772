#pragma once
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "engine/formats/aten/program.h"
#include "engine/formats/torchscript/expression.h"

namespace tenon::formats {

/// Expressions of TorchScript as nodes of a program: a node a call, of the overload whose parameters take the
/// arguments.
class AtenCallWriter {
 public:
  /// `tensor`: what a word of an expression is called in the program. `add` takes a node whose output has its name;
  /// names that are `taken` are none for calls within calls.
  AtenCallWriter(std::function<std::string(const std::string&)> tensor, std::function<void(AtenNode)> add,
                 std::set<std::string> taken)
      : tensor_(std::move(tensor)), add_(std::move(add)), taken_(std::move(taken)) {}

  /// The value of an expression, which gets the name where a node makes it. Throws OnnxUnsupported where no overload
  /// takes it.
  AtenArgument write(const ScriptExpression& e, const std::string& name);

 private:
  AtenArgument value_of(const ScriptExpression& e, const std::string& name);
  AtenArgument call(const ScriptExpression& e, const std::string& name);
  AtenArgument part(const ScriptExpression& e, const std::string& name);

  std::function<std::string(const std::string&)> tensor_;
  std::function<void(AtenNode)> add_;
  std::set<std::string> taken_;
};

}  // namespace tenon::formats
