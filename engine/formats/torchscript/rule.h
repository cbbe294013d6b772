#pragma once
#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "engine/formats/onnx/static_graph.h"

// What the family files of rules write their definitions with. A rule says one ONNX operator as an expression of
// TorchScript, as torch.jit.save writes them: calls only. A rule is defined where it is registered; nothing else lists
// it.
//   TENON_SCRIPT(Softmax) { return c.call("softmax", {c.in(0), c.integer("axis", -1)}); }
#define TENON_SCRIPT(TYPE)                                            \
  std::string script_##TYPE(ScriptCall& c);                           \
  const bool scripted_##TYPE = register_script(#TYPE, script_##TYPE); \
  std::string script_##TYPE([[maybe_unused]] ScriptCall& c)
/// An expression in which {0}, {1}, ... are the inputs.
#define TENON_SCRIPT_AS(TYPE, EXPRESSION) \
  const bool scripted_##TYPE = register_script(#TYPE, [](ScriptCall& c) { return c.as(EXPRESSION); })

namespace tenon::formats {

/// A node on its way to TorchScript.
class ScriptCall {
 public:
  /// `words`: how each value is named in the code.
  ScriptCall(const StaticGraph& graph, const StaticNode& node, const std::vector<std::string>& words)
      : graph_(graph), node_(node), words_(words) {}

  const OnnxNode& node() const { return *node_.node; }
  int64_t opset() const { return graph_.opset; }
  size_t inputs() const { return node_.inputs.size(); }
  bool has(size_t i) const { return i < inputs() && node_.inputs[i] >= 0; }
  /// Its first size is that of one batch among many.
  const Shape& shape(size_t i) const { return value(i).shape; }
  DType dtype(size_t i) const { return value(i).dtype; }
  const Shape& result_shape() const { return graph_.values[static_cast<size_t>(node_.output)].shape; }
  DType result_dtype() const { return graph_.values[static_cast<size_t>(node_.output)].dtype; }

  /// The name of an input; "None" where it is left out.
  std::string in(size_t i) const;
  /// The same where a number will do as well: the number of a constant that has one.
  std::string number_or_tensor(size_t i) const;
  /// Throws OnnxUnsupported where the input is no constant number.
  double number(size_t i) const;
  std::vector<int64_t> list(size_t i, const std::string& attribute, const std::vector<int64_t>& fallback = {}) const;
  /// An attribute in words.
  std::string integer(const std::string& attribute, int64_t fallback) const {
    return std::to_string(node().integer(attribute, fallback));
  }
  std::string real(const std::string& attribute, double fallback) const;

  /// "torch.softmax(x, -1)"
  std::string call(const std::string& function, const std::vector<std::string>& words) const;
  std::string as(const std::string& expression) const;
  /// A name for an expression that is used again: a line of its own.
  std::string keep(const std::string& expression);
  const std::vector<std::pair<std::string, std::string>>& kept() const { return kept_; }

 private:
  const StaticValue& value(size_t i) const;
  const StaticGraph& graph_;
  const StaticNode& node_;
  const std::vector<std::string>& words_;
  std::vector<std::pair<std::string, std::string>> kept_;
};

struct ScriptRule {
  std::string name;  ///< of the ONNX operator
  std::function<std::string(ScriptCall&)> write;
};
bool register_script(const std::string& op_type, std::function<std::string(ScriptCall&)> write,
                     Place place = Place::current());
const Registry<ScriptRule>& script_rules();

/// A word for each value of a graph, one of its own, as its name where that is one; `given`: words that some values
/// have by their names.
std::vector<std::string> script_words(const StaticGraph& graph, const std::map<std::string, std::string>& given);
/// A name that a module's member may have as it is written.
bool is_script_name(const std::string& s);
/// What the rule of its operator makes of a node. Throws OnnxUnsupported naming operator, node and `format` where none
/// is for it.
std::string script_expression(const StaticNode& node, ScriptCall& call, const std::string& format);

/// In the words of TorchScript: "0.5", "-inf", "2.", "[1, 2]", and PyTorch's number of a dtype.
std::string script_real(double v);
std::string script_list(const std::vector<int64_t>& v);
int script_dtype(DType t);

}  // namespace tenon::formats
