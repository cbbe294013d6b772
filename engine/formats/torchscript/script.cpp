#include "engine/formats/torchscript/script.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <memory>

#include "core/error.h"
#include "core/file.h"
#include "core/sha256.h"
#include "engine/formats/torch/tensor_pickler.h"
#include "engine/formats/torchscript/rule.h"
#include "engine/formats/zip.h"

namespace tenon::formats {
namespace {

/// The version whose operators mean what they are written as; older ones are rewritten when they are loaded.
constexpr const char* kScriptVersion = "10\n";

/// A module: what it holds, and the modules in it.
struct ScriptModule {
  struct Held {
    std::string name;
    const Tensor* tensor;
    bool parameter;
  };
  std::vector<Held> tensors;
  std::vector<std::pair<std::string, std::unique_ptr<ScriptModule>>> children;
  std::string type;  ///< of the class, within __torch__

  ScriptModule& child(const std::string& name) {
    for (auto& [n, m] : children)
      if (n == name) return *m;
    children.emplace_back(name, std::make_unique<ScriptModule>());
    return *children.back().second;
  }
};

class ScriptWriter {
 public:
  ScriptWriter(const OnnxModel& model, const ScriptState& state, int64_t batch)
      : graph_(static_graph(model, sizes_at_batch(model, batch), Folded::no)) {
    for (const auto& [name, t] : state.parameters) place(name, t, true);
    for (const auto& [name, t] : state.buffers) place(name, t, false);
    words_ = script_words(graph_, places_);
  }

  void save(const std::string& path) {
    const std::string forward = forward_text();  // it decides which constants there are
    std::string code;
    class_text(root_, "Model", code, forward);
    PickleWriter w(2);
    TensorPickler pickler;
    module_state(root_, w, pickler);

    FileWriter file(path);
    ZipWriter zip(file);
    const std::string stem = std::filesystem::path(path).stem().string(),
                      prefix = (stem.empty() ? "archive" : stem) + "/";
    zip.add(prefix + "data.pkl", w.finish());
    zip.add(prefix + "code/__torch__.py", code);
    pickler.add_storages(zip, prefix + "data/");
    PickleWriter none(2);
    none.begin_tuple();
    none.end_tuple();
    zip.add(prefix + "constants.pkl", none.finish());
    zip.add(prefix + "version", kScriptVersion);
    zip.finish();
    file.commit();
  }

 private:
  /// Puts "features.0.weight" into the module features.0, and notes how the code reaches it.
  void place(const std::string& name, const Tensor& t, bool parameter) {
    ScriptModule* module = &root_;
    std::string word = "self", rest = name;
    auto reach = [&word](const std::string& part) {
      word = is_script_name(part) ? word + "." + part : fmt::format("getattr({}, \"{}\")", word, part);
    };
    for (size_t dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
      module = &module->child(rest.substr(0, dot));
      reach(rest.substr(0, dot));
      rest.erase(0, dot + 1);
    }
    module->tensors.push_back({rest, &t, parameter});
    reach(rest);
    places_[name] = word;
  }

  std::string forward_text() {
    std::string lines;
    for (const StaticNode& n : graph_.nodes) {
      ScriptCall c(graph_, n, words_);
      const std::string expression = script_expression(n, c, "TorchScript");
      for (const auto& [name, kept] : c.kept()) lines += fmt::format("    {} = {}\n", name, with_constants(n, kept));
      lines += fmt::format("    {} = {}\n", words_[static_cast<size_t>(n.output)], with_constants(n, expression));
    }
    std::string inputs, results;
    for (int v : graph_.inputs) inputs += fmt::format(",\n    {}: Tensor", words_[static_cast<size_t>(v)]);
    for (int v : graph_.outputs) results += (results.empty() ? "" : ", ") + words_[static_cast<size_t>(v)];
    const bool one = graph_.outputs.size() == 1;
    std::string type = "Tensor";
    for (size_t k = 1; k < graph_.outputs.size(); ++k) type += ", Tensor";
    return fmt::format("  def forward(self: __torch__.Model{}) -> {}:\n{}    return {}\n", inputs,
                       one ? type : "Tuple[" + type + "]", lines, one ? results : "(" + results + ")");
  }
  /// Constants that an expression reads become buffers of the outermost module.
  std::string with_constants(const StaticNode& n, std::string text) {
    for (int v : n.inputs) {
      if (v < 0 || !graph_.values[static_cast<size_t>(v)].constant) continue;
      const std::string word = words_[static_cast<size_t>(v)];
      if (places_.contains(graph_.values[static_cast<size_t>(v)].name)) continue;
      for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
        auto in_name = [&](size_t i) {
          return i < text.size() &&
                 (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_' || text[i] == '.');
        };
        if ((at > 0 && in_name(at - 1)) || in_name(at + word.size())) continue;
        const std::string place = constant_place(graph_.values[static_cast<size_t>(v)].constant);
        text.replace(at, word.size(), place);
        at += place.size();
      }
    }
    return text;
  }

  /// How the code reaches a constant: those of the same numbers are one.
  std::string constant_place(const Tensor& t) {
    const std::string content =
        fmt::format("{} {} {}", name(t.dtype()), to_string(t.size()), hex(sha256(t.raw(), t.nbytes())));
    const auto [place, fresh] = constants_.try_emplace(content, fmt::format("constant_{}", constants_.size()));
    if (fresh) root_.tensors.push_back({place->second, &t, false});
    return "self." + place->second;
  }

  /// Declarations of a module's class, behind those of the modules in it.
  void class_text(ScriptModule& m, const std::string& type, std::string& code, const std::string& forward) {
    m.type = type;
    std::string parameters, buffers, odd, plain;
    auto declare = [&](const std::string& name, const std::string& as) {
      if (is_script_name(name))
        plain += fmt::format("  {} : {}\n", name, as);
      else
        odd += fmt::format("  __annotations__[\"{}\"] = {}\n", name, as);
    };
    for (const auto& h : m.tensors) {
      (h.parameter ? parameters : buffers) += fmt::format("\"{}\", ", h.name);
      declare(h.name, "Tensor");
    }
    for (auto& [name, child] : m.children) {
      class_text(*child, fmt::format("Part{}", ++parts_), code, "");
      declare(name, "__torch__." + child->type);
    }
    code += fmt::format("class {}(Module):\n  __parameters__ = [{}]\n  __buffers__ = [{}]\n{}  training : bool\n{}{}",
                        type, parameters, buffers, odd.empty() ? "" : "  __annotations__ = []\n" + odd, plain, forward);
  }

  static void module_state(const ScriptModule& m, PickleWriter& w, TensorPickler& pickler) {
    w.global("__torch__", m.type);
    w.create();
    w.begin_dict();
    w.text("training");
    w.boolean(false);
    for (const auto& h : m.tensors) {
      w.text(h.name);
      pickler.write(w, *h.tensor, h.parameter && is_floating(h.tensor->dtype()));
    }
    for (const auto& [name, child] : m.children) {
      w.text(name);
      module_state(*child, w, pickler);
    }
    w.end_dict();
    w.set_state();
  }

  StaticGraph graph_;
  ScriptModule root_;
  std::map<std::string, std::string> places_;     ///< how the code reaches a tensor of the state
  std::vector<std::string> words_;                ///< of the values
  std::map<std::string, std::string> constants_;  ///< buffers of the outermost module, by content
  int parts_ = 0;
};

}  // namespace

void save_torchscript(const std::string& path, const OnnxModel& model, const ScriptState& state, int64_t batch) {
  ScriptWriter(model, state, batch).save(path);
}

}  // namespace tenon::formats
