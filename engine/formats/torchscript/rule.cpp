#include "engine/formats/torchscript/rule.h"

#include <cmath>

#include "core/error.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

Registry<ScriptRule>& rules_of_script() {
  static auto& all = *new Registry<ScriptRule>("TorchScript rule");
  return all;
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
