#include "engine/nn/state_dict.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/state.h"
#include "engine/ops/view.h"

namespace tenon::nn {
namespace {

std::string renamed(const std::string& key, const LoadOptions& o) {
  for (const auto& [from, to] : o.rename)
    if (key.starts_with(from)) return to + key.substr(from.size());
  return key;
}

std::string list(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::string text = std::string(what) + " ";
  for (size_t i = 0; i < names.size() && i < 8; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > 8) text += " and " + std::to_string(names.size() - 8) + " more";
  return text;
}

}  // namespace

std::string LoadReport::text() const {
  std::string all;
  for (const std::string& part :
       {list("missing:", missing), list("not of this model:", unexpected), list("of another size:", mismatched)})
    if (!part.empty()) all += (all.empty() ? "" : "; ") + part;
  return all;
}

LoadReport load_state_dict(Module& module, const formats::NamedTensors& tensors, const LoadOptions& options) {
  LoadReport report;
  std::map<std::string, Tensor> mine;
  std::vector<Named> all = module.state_dict();
  for (const Named& n : all) mine.emplace(n.name, n.tensor);
  std::map<std::string, Tensor> given;
  for (const auto& [key, t] : tensors) {
    std::string name = renamed(key, options);
    if (name.ends_with(".num_batches_tracked") || name == "num_batches_tracked")
      continue;  // PyTorch's count of batches: nothing here depends on it
    auto found = mine.find(name);
    if (found == mine.end())
      report.unexpected.push_back(key);
    else if (!(found->second.size() == t.size()))
      report.mismatched.push_back(name + ": " + to_string(found->second.size()) + " here, " + to_string(t.size()) +
                                  " given");
    else if (!given.emplace(name, t).second)
      throw Error("two of the given tensors are both to be \"" + name + "\"", "check the renaming rules");
  }
  for (const Named& n : all) {
    if (given.count(n.name))
      report.loaded.push_back(n.name);
    else if (std::none_of(report.mismatched.begin(), report.mismatched.end(),
                          [&](const std::string& m) { return m.starts_with(n.name + ":"); }))
      report.missing.push_back(n.name);
  }
  if (options.strict && !report.complete())
    throw Error("the tensors do not fit the model: " + report.text(),
                "load with strict = false to take what fits, or give renaming rules");
  NoGrad no_grad;
  for (const auto& [name, t] : given) copy_(mine.at(name), t);
  return report;
}

}  // namespace tenon::nn
