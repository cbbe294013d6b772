#include "engine/formats/torchscript/rule.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "core/error.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

Registry<ScriptRule>& rules_of_script() {
  static auto& all = *new Registry<ScriptRule>("TorchScript rule");
  return all;
}

bool script_keyword(const std::string& s) {
  static const std::set<std::string> all = {
      "False", "None", "True",  "and",  "as",       "assert", "break",  "class", "continue", "def",      "del",
      "elif",  "else", "for",   "from", "global",   "if",     "import", "in",    "inf",      "is",       "lambda",
      "nan",   "not",  "or",    "pass", "print",    "raise",  "return", "self",  "torch",    "training", "try",
      "while", "with", "yield", "ops",  "annotate", "int",    "float",  "bool",  "str"};
  return all.contains(s);
}

}  // namespace

bool register_script(const std::string& op_type, std::function<std::string(ScriptCall&)> write, Place place) {
  return rules_of_script().add({op_type, std::move(write)}, place);
}
const Registry<ScriptRule>& script_rules() { return rules_of_script(); }

const StaticValue& ScriptCall::value(size_t i) const {
  if (!has(i)) throw OnnxUnsupported(fmt::format("its input {} is left out", i));
  return graph_.values[static_cast<size_t>(node_.inputs[i])];
}
std::string ScriptCall::in(size_t i) const { return has(i) ? words_[static_cast<size_t>(node_.inputs[i])] : "None"; }
std::string ScriptCall::number_or_tensor(size_t i) const {
  const StaticValue& v = value(i);
  if (!v.constant || v.shape.n > 0) return in(i);
  return is_floating(v.dtype) ? script_real(item(v.constant))
                              : fmt::format("{}", static_cast<int64_t>(item(v.constant)));
}
double ScriptCall::number(size_t i) const {
  const StaticValue& v = value(i);
  if (!v.constant || v.shape.product() != 1)
    throw OnnxUnsupported(fmt::format("its input {} is no constant number", i));
  return item(v.constant);
}
std::vector<int64_t> ScriptCall::list(size_t i, const std::string& attribute,
                                      const std::vector<int64_t>& fallback) const {
  if (!has(i)) return node().integers(attribute, fallback);
  if (!value(i).constant) throw OnnxUnsupported(fmt::format("its input {} is known only at a run", i));
  const Tensor t = contiguous(cast(value(i).constant, DType::i64));
  return {t.data<int64_t>(), t.data<int64_t>() + t.numel()};
}
std::string ScriptCall::real(const std::string& attribute, double fallback) const {
  return script_real(node().number(attribute, fallback));
}

std::string ScriptCall::call(const std::string& function, const std::vector<std::string>& words) const {
  std::string text = "torch." + function + "(";
  for (size_t i = 0; i < words.size(); ++i) text += (i ? ", " : "") + words[i];
  return text + ")";
}
std::string ScriptCall::as(const std::string& expression) const {
  std::string text;
  for (size_t at = 0; at < expression.size(); ++at)
    if (expression[at] == '{' && at + 2 < expression.size() && expression[at + 2] == '}') {
      text += in(static_cast<size_t>(expression[at + 1] - '0'));
      at += 2;
    } else {
      text += expression[at];
    }
  return text;
}
std::string ScriptCall::keep(const std::string& expression) {
  const std::string name = fmt::format("{}_{}", words_[static_cast<size_t>(node_.output)], kept_.size());
  kept_.emplace_back(name, expression);
  return name;
}

bool is_script_name(const std::string& s) {
  return !s.empty() && !std::isdigit(static_cast<unsigned char>(s[0])) && !script_keyword(s) &&
         std::all_of(s.begin(), s.end(), [](unsigned char c) { return (std::isalnum(c) && c < 128) || c == '_'; });
}
std::vector<std::string> script_words(const StaticGraph& graph, const std::map<std::string, std::string>& given) {
  std::vector<std::string> words;
  std::set<std::string> taken;
  for (const auto& [name, word] : given) taken.insert(word);
  for (const StaticValue& v : graph.values) {
    if (const auto at = given.find(v.name); at != given.end()) {
      words.push_back(at->second);
      continue;
    }
    std::string word;
    for (unsigned char c : v.name) word += std::isalnum(c) && c < 128 ? static_cast<char>(c) : '_';
    if (!is_script_name(word)) word = "v_" + word;
    while (!taken.insert(word).second) word += "_";
    words.push_back(word);
  }
  return words;
}
std::string script_expression(const StaticNode& n, ScriptCall& c, const std::string& format) {
  const std::string node = fmt::format("{} '{}'", n.node->op_type, n.node->name);
  const ScriptRule* rule =
      n.node->domain.empty() || n.node->domain == "ai.onnx" ? script_rules().find(n.node->op_type) : nullptr;
  try {
    if (!rule) throw OnnxUnsupported("there is no rule for this operator");
    return rule->write(c);
  } catch (const OnnxUnsupported& e) {
    throw OnnxUnsupported(fmt::format("{} cannot be written as {}: {}", node, format, e.message()),
                          "Export the model as ONNX, or write its rule: engine/formats/torchscript, TENON_SCRIPT(" +
                              n.node->op_type + ").");
  } catch (const Error& e) {
    throw e.in(node);
  }
}

std::string script_real(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  const std::string text = fmt::format("{}", v);
  return text.find_first_of(".e") == text.npos ? text + "." : text;
}
std::string script_list(const std::vector<int64_t>& v) {
  if (v.empty()) return "annotate(List[int], [])";
  return fmt::format("[{}]", fmt::join(v, ", "));
}
int script_dtype(DType t) {
  static constexpr int numbers[kDTypes] = {11, 0, 1, 2, 3, 4, 5, 15, 6, 7};
  return numbers[static_cast<size_t>(t)];
}

}  // namespace tenon::formats
