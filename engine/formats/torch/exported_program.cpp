// A .pt2 archive of torch.export.save as a model file. Its weights and constants are one file of torch.save (before
// PyTorch 2.9), or each tensor as the bytes of its storage beside a list of them; its graph is JSON. What the JSON says
// is in PyTorch's torch/_export/serde/schema.py.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/torch/model_file.h"
#include "engine/formats/torch/types.h"
#include "engine/formats/zip.h"

namespace tenon::formats {
namespace {

using nlohmann::json;

/// The names of ScalarType's numbers.
std::string scalar_type(int64_t number) {
  static constexpr const char* kNames[] = {"unknown",   "uint8",      "int8",    "int16",   "int32",
                                           "int64",     "float16",    "float32", "float64", "complex32",
                                           "complex64", "complex128", "bool",    "bfloat16"};
  static constexpr const char* kLater[] = {"uint16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
                                           "float8_e5m2fnuz"};
  constexpr int64_t kFirstLater = 28;
  if (number >= 0 && number < std::ssize(kNames)) return kNames[number];
  if (number >= kFirstLater && number < kFirstLater + std::ssize(kLater)) return kLater[number - kFirstLater];
  return fmt::format("type {}", number);
}

/// A member by its way through objects; null where one of them is missing.
const json& member_at(const json& j, std::initializer_list<const char*> way) {
  static const json nothing;
  const json* here = &j;
  for (const char* key : way) {
    const auto found = here->is_object() ? here->find(key) : here->end();
    if (!here->is_object() || found == here->end()) return nothing;
    here = &*found;
  }
  return *here;
}
const json& list_at(const json& j, std::initializer_list<const char*> way) {
  static const json empty = json::array();
  const json& found = member_at(j, way);
  return found.is_array() ? found : empty;
}
std::string text_of_json(const json& j) { return j.is_string() ? j.get<std::string>() : std::string(); }
/// A whole number, or -1: the sizes of a file's tensors are numbers, and symbols only in its graph.
int64_t whole(const json& j) {
  const json& n = j.is_object() ? member_at(j, {"as_int"}) : j;
  return n.is_number_integer() && n >= 0 ? n.get<int64_t>() : -1;
}
std::vector<int64_t> wholes(const json& list) {
  std::vector<int64_t> out;
  for (const json& n : list) out.push_back(whole(n));
  return out;
}
/// A plain value, or a list of them, as text; "…" where it nests deeper.
std::string argument_text(const json& argument) {
  if (!argument.is_object() || argument.size() != 1) return {};
  const json& value = *argument.begin();
  const bool flat =
      value.is_primitive() ||
      (value.is_array() && std::all_of(value.begin(), value.end(), [](const json& v) { return v.is_primitive(); }));
  return flat ? value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 200) : "…";
}

class ExportedProgram {
 public:
  explicit ExportedProgram(const std::shared_ptr<const MappedFile>& file)
      : file_(file), zip_(file->bytes(), file->name()) {}

  ModelFile read() {
    for (const Zip::Member& member : zip_.members()) {
      const size_t slash = member.name.find('/');
      const std::string folder = member.name.substr(0, slash + 1), name = member.name.substr(slash + 1);
      const bool weights = name.starts_with("data/weights/"), constants = name.starts_with("data/constants/");
      if ((weights || constants) && name.ends_with(".pt"))
        add_torch(TorchFile::parse(bytes_of(member)), m_, values_);
      else if ((weights && name.ends_with("_weights_config.json")) ||
               (constants && name.ends_with("_constants_config.json")))
        add_payloads(member, folder + (weights ? "data/weights/" : "data/constants/"));
      else if (name.starts_with("models/") && name.ends_with(".json") && m_.nodes.empty())
        add_graph(member);
      else if (name == "archive_version")
        m_.facts.push_back({"archive_version", std::string(text_in(member))});
    }
    return with_values(std::move(m_), std::move(values_));
  }

 private:
  /// A stretch of the file where the member is stored as it is.
  std::shared_ptr<const MappedFile> bytes_of(const Zip::Member& member) const {
    if (member.method == 0) return MappedFile::part(file_, member.offset, member.size);
    std::string unpacked;
    zip_.data(member, unpacked);
    return MappedFile::of(std::move(unpacked), file_->name());
  }
  json json_of(const Zip::Member& member) const {
    const auto bytes = bytes_of(member);
    json j = json::parse(bytes->bytes(), nullptr, false);
    if (j.is_discarded()) throw Error(fmt::format("{}: its member {} is no JSON", file_->name(), member.name));
    return j;
  }

  /// Tensors that lie beside their list as the bytes of their storages.
  void add_payloads(const Zip::Member& list, const std::string& folder) {
    const json all = json_of(list);
    const json& config = member_at(all, {"config"});
    if (!config.is_object()) throw Error(fmt::format("{}: its member {} lists no tensors", file_->name(), list.name));
    for (const auto& [name, payload] : config.items()) {
      const json& meta = member_at(payload, {"tensor_meta"});
      if (!meta.is_object()) continue;  // an object that is no tensor
      ModelFile::Entry e{.name = name,
                         .dtype = scalar_type(whole(member_at(meta, {"dtype"}))),
                         .shape = wholes(list_at(meta, {"sizes"}))};
      e.stride = wholes(list_at(meta, {"strides"}));
      e.offset = std::max<int64_t>(whole(member_at(meta, {"storage_offset"})), 0);
      e.device = text_of_json(member_at(meta, {"device", "type"}));
      e.storage = text_of_json(member_at(payload, {"path_name"}));
      e.category = member_at(payload, {"is_param"}) == true ? "parameter" : "buffer";
      values_.push_back(value_of(e, folder, member_at(payload, {"use_pickle"}) == true));
      m_.tensors.push_back(std::move(e));
    }
  }

  /// Undefined where there is a problem, which the entry then tells.
  Tensor value_of(ModelFile::Entry& e, const std::string& folder, bool pickled) const {
    const TorchType* type = torch_dtype(e.dtype);
    const Zip::Member* member = zip_.find(folder + e.storage);
    const int64_t reach = reach_of(e);
    e.bytes = member ? member->size : 0;
    if (type && reach >= 0) e.bytes = static_cast<uint64_t>(e.elements()) * static_cast<uint64_t>(type->item);
    if (pickled)
      e.problem = "was pickled as an object";
    else if (!member)
      e.problem = "has no data in the archive";
    else if (!type || type->engine < 0)
      e.problem = fmt::format("has the dtype {}, which is not supported", e.dtype);
    else if (reach < 0 || e.shape.size() > kMaxDims)
      e.problem = "has sizes or strides that cannot be read";
    else if (static_cast<uint64_t>(reach) > member->size / static_cast<uint64_t>(type->item) ||
             member->size % static_cast<uint64_t>(type->item))
      e.problem = fmt::format("reaches element {} of data of {} bytes", reach, member->size);
    if (!e.problem.empty()) return {};
    const Tensor base = tensor_of(bytes_of(*member), 0, member->size, static_cast<DType>(type->engine));
    return view_of(base, {Shape(e.shape), Dims(e.stride), reach ? e.offset : 0});
  }

  /// How many elements of its storage a tensor reaches over; -1 where its sizes and strides are none.
  static int64_t reach_of(const ModelFile::Entry& e) {
    constexpr int64_t kMostElements = int64_t{1} << 50;
    if (e.stride.size() != e.shape.size()) return -1;
    int64_t last = e.offset;
    for (size_t i = 0; i < e.shape.size(); ++i) {
      int64_t way = 0;
      if (e.shape[i] < 0 || e.stride[i] < 0 ||
          __builtin_mul_overflow(std::max<int64_t>(e.shape[i] - 1, 0), e.stride[i], &way) ||
          __builtin_add_overflow(last, way, &last))
        return -1;
    }
    const int64_t elements = e.elements();
    return elements > kMostElements || last >= kMostElements ? -1 : elements == 0 ? 0 : last + 1;
  }

  std::string text_in(const Zip::Member& member) const {
    std::string text(bytes_of(member)->bytes().substr(0, 40));
    while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.pop_back();
    return text;
  }

  /// The names that the tensors of an argument have; of a list of them, each.
  static void names_of(const json& argument, std::vector<std::string>& out) {
    if (const json& one = member_at(argument, {"as_tensor", "name"}); one.is_string()) out.push_back(one);
    for (const json& t : list_at(argument, {"as_tensors"})) out.push_back(text_of_json(member_at(t, {"name"})));
    for (const json& t : list_at(argument, {"as_optional_tensors"}))
      out.push_back(text_of_json(member_at(t, {"as_tensor", "name"})));
  }
  /// "path,type" pairs from the outermost module to the innermost: the last path is the module of the node.
  static std::string module_of(const std::string& stack) {
    const std::string last = stack.substr(stack.rfind(';') == stack.npos ? 0 : stack.rfind(';') + 1);
    const size_t first = last.find(','), second = first == last.npos ? last.npos : last.find(',', first + 1);
    return second == last.npos ? std::string() : last.substr(first + 1, second - first - 1);
  }

  void add_graph(const Zip::Member& member) {
    const json program = json_of(member);
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
      node.scope = module_of(text_of_json(member_at(n, {"metadata", "nn_module_stack"})));
      m_.nodes.push_back(std::move(node));
    }
  }
  static ModelFile::Value value_of(const json& graph, const std::string& name) {
    const json& meta = member_at(graph, {"tensor_values", name.c_str()});
    ModelFile::Value v{name, {}};
    std::vector<std::string> sizes;
    for (const json& n : list_at(meta, {"sizes"})) {
      const std::string symbol = text_of_json(member_at(n, {"as_expr", "expr_str"}));
      sizes.push_back(symbol.empty() ? std::to_string(whole(n)) : symbol);
      v.shape.push_back(symbol.empty() ? whole(n) : -1);
    }
    v.type = fmt::format("{} [{}]", scalar_type(whole(member_at(meta, {"dtype"}))), fmt::join(sizes, ", "));
    return v;
  }

  std::shared_ptr<const MappedFile> file_;
  Zip zip_;
  ModelFile m_;
  std::vector<Tensor> values_;
};

const bool registered_torch_export =
    register_model_file({"pt2", FileKind::torch_export,
                         [](const std::shared_ptr<const MappedFile>& file) { return ExportedProgram(file).read(); }});

}  // namespace
}  // namespace tenon::formats
