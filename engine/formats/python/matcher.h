#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/formats/python/interpreter.h"

namespace tenon::python {

/// Finds a way of writing a layer (forms.h) in an expression.
class Matcher {
 public:
  Matcher(Interpreter& in, Interpreter::Frame& f) : in_(in), frame_(f) {}
  /// What an expression is as a whole: a layer of its own, or the call of a module that is not simply `m(x0)`.
  bool match(const Expr& e, Value& out);

 private:
  struct Found {
    std::map<std::string, Expr> inputs;  ///< x0, x1, ...
    std::map<std::string, Value> attrs;
    std::shared_ptr<Object> module;
  };
  bool unify(const Expr& pattern, const Expr& e, const LayerInfo& info, Found& found);
  bool unify_call(const Expr& pattern, const Expr& e, const LayerInfo& info, Found& found);
  bool unify_value(const std::string& attr, const Expr& e, Found& found);
  std::shared_ptr<Object> module_in(const Expr& e);
  Value made(const Found& found, const PythonForm& form, const LayerInfo& info, const Call& call, int line);

  Interpreter& in_;
  Interpreter::Frame& frame_;
};

}  // namespace tenon::python
