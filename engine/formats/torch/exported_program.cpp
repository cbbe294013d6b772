// A .pt2 archive of torch.export.save as a model file: its tensors, and its graph to look at.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/formats/torch/exported_archive.h"
#include "engine/formats/torch/model_file.h"

namespace tenon::formats {
namespace {

using nlohmann::json;

/// A plain value, or a list of them, as text; "…" where it nests deeper.
std::string argument_text(const json& argument) {
  if (!argument.is_object() || argument.size() != 1) return {};
  const json& value = *argument.begin();
  const bool flat =
      value.is_primitive() ||
      (value.is_array() && std::all_of(value.begin(), value.end(), [](const json& v) { return v.is_primitive(); }));
  return flat ? value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 200) : "…";
}

class ExportedGraph {
 public:
  explicit ExportedGraph(ExportedArchive archive) : archive_(std::move(archive)), m_(archive_.held) {}

  ModelFile read() {
    if (!archive_.program.is_null()) add_graph(archive_.program);
    return with_values(std::move(m_), std::move(archive_.values));
  }

 private:
  /// The names that the tensors of an argument have; of a list of them, each.
  static void names_of(const json& argument, std::vector<std::string>& out) {
    if (const json& one = member_at(argument, {"as_tensor", "name"}); one.is_string()) out.push_back(one);
    for (const json& t : list_at(argument, {"as_tensors"})) out.push_back(text_of_json(member_at(t, {"name"})));
    for (const json& t : list_at(argument, {"as_optional_tensors"}))
      out.push_back(text_of_json(member_at(t, {"as_tensor", "name"})));
  }
  void add_graph(const json& program) {
    const json &module = member_at(program, {"graph_module"}), &graph = member_at(module, {"graph"});
    if (const json& by = member_at(program, {"torch_version"}); by.is_string())
      m_.facts.push_back({"torch_version", by.get<std::string>()});
    // The graph calls its parameters by names of their own.
    std::map<std::string, std::string> weights;
    for (const json& spec : list_at(module, {"signature", "input_specs"})) {
      for (const auto& [kind, name] : {std::pair{"parameter", "parameter_name"}, std::pair{"buffer", "buffer_name"},
                                       std::pair{"tensor_constant", "tensor_constant_name"}})
        if (const json& to = member_at(spec, {kind, name}); to.is_string())
          weights[text_of_json(member_at(spec, {kind, "arg", "name"}))] = to;
      if (const std::string given = text_of_json(member_at(spec, {"user_input", "arg", "as_tensor", "name"}));
          !given.empty())
        m_.inputs.push_back(value_of(graph, given));
    }
    for (const json& spec : list_at(module, {"signature", "output_specs"}))
      if (const std::string made = text_of_json(member_at(spec, {"user_output", "arg", "as_tensor", "name"}));
          !made.empty())
        m_.outputs.push_back(value_of(graph, made));
    for (const json& n : list_at(graph, {"nodes"})) {
      ModelFile::Node node;
      node.op = text_of_json(member_at(n, {"target"}));
      if (node.op.starts_with("torch.ops.")) node.op = node.op.substr(10);
      for (const json& a : list_at(n, {"inputs"})) {
        const size_t before = node.inputs.size();
        names_of(member_at(a, {"arg"}), node.inputs);
        if (node.inputs.size() == before)
          node.attributes.emplace_back(text_of_json(member_at(a, {"name"})), argument_text(member_at(a, {"arg"})));
      }
      for (std::string& in : node.inputs)
        if (const auto to = weights.find(in); to != weights.end()) in = to->second;
      for (const json& o : list_at(n, {"outputs"})) names_of(o, node.outputs);
      node.name = text_of_json(member_at(n, {"name"}));
      if (node.name.empty() && !node.outputs.empty()) node.name = node.outputs[0];
      node.scope = exported_scope(n);
      m_.nodes.push_back(std::move(node));
    }
  }
  static ModelFile::Value value_of(const json& graph, const std::string& name) {
    const json& meta = member_at(graph, {"tensor_values", name.c_str()});
    ModelFile::Value v{name, {}};
    std::vector<std::string> sizes;
    for (const json& n : list_at(meta, {"sizes"})) {
      const std::string symbol = exported_symbol(text_of_json(member_at(n, {"as_expr", "expr_str"})));
      sizes.push_back(symbol.empty() ? std::to_string(whole_of_json(n)) : symbol);
      v.shape.push_back(symbol.empty() ? whole_of_json(n) : -1);
    }
    v.type = fmt::format("{} [{}]", exported_type(whole_of_json(member_at(meta, {"dtype"}))), fmt::join(sizes, ", "));
    return v;
  }

  ExportedArchive archive_;
  ModelFile m_;
};

const bool registered_torch_export =
    register_model_file({"pt2", FileKind::torch_export, [](const std::shared_ptr<const MappedFile>& file) {
                           return ExportedGraph(read_exported(file)).read();
                         }});

}  // namespace
}  // namespace tenon::formats
