#include "engine/formats/torch/exported_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/file_kind.h"
#include "engine/formats/torch/model_file.h"
#include "engine/formats/torch/types.h"
#include "engine/formats/zip.h"

namespace tenon::formats {
namespace {

using nlohmann::json;

constexpr std::string_view kTypeNames[] = {"unknown",   "uint8",      "int8",    "int16",   "int32",
                                           "int64",     "float16",    "float32", "float64", "complex32",
                                           "complex64", "complex128", "bool",    "bfloat16"};
constexpr std::string_view kLaterTypeNames[] = {"uint16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
                                                "float8_e5m2fnuz"};
constexpr int64_t kFirstLaterType = 28;

/// Sizes and strides of a file's tensors are numbers; symbols stand only in its graph.
std::vector<int64_t> exported_wholes(const json& list) {
  std::vector<int64_t> out;
  for (const json& n : list) out.push_back(whole_of_json(n));
  return out;
}

class ExportedReader {
 public:
  explicit ExportedReader(const std::shared_ptr<const MappedFile>& file)
      : file_(file), zip_(file->bytes(), file->name()) {}

  ExportedArchive read() {
    for (const Zip::Member& member : zip_.members()) {
      if (add_of_2_7(member)) continue;
      const size_t slash = member.name.find('/');
      const std::string folder = member.name.substr(0, slash + 1), name = member.name.substr(slash + 1);
      const bool weights = name.starts_with("data/weights/"), constants = name.starts_with("data/constants/");
      if ((weights || constants) && name.ends_with(".pt"))
        add_torch(TorchFile::parse(bytes_of(member)), a_.held, a_.values);
      else if ((weights && name.ends_with("_weights_config.json")) ||
               (constants && name.ends_with("_constants_config.json")))
        add_payloads(member, folder + (weights ? "data/weights/" : "data/constants/"));
      else if (name.starts_with("models/") && name.ends_with(".json") && a_.program.is_null())
        a_.program = json_of(member);
      else if (name == "archive_version")
        a_.held.facts.push_back({"archive_version", std::string(text_in(member))});
    }
    return std::move(a_);
  }

 private:
  /// Up to PyTorch 2.7 members have no folder, and names of their own. The first releases called a file of torch.save
  /// .json, too, and a list without tensors may be no bytes at all.
  bool add_of_2_7(const Zip::Member& member) {
    const std::string stem = member.name.substr(0, member.name.rfind('.'));
    if (member.name == kExportedProgramOf27) {
      a_.program = json_of(member);
    } else if (stem == "serialized_state_dict" || stem == "serialized_constants") {
      if (member.size > 0) add_torch(TorchFile::parse(bytes_of(member)), a_.held, a_.values);
    } else if (member.name == "version") {
      a_.held.facts.push_back({"schema_version", std::string(text_in(member))});
    } else {
      return false;
    }
    return true;
  }
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
                         .dtype = exported_type(whole_of_json(member_at(meta, {"dtype"}))),
                         .shape = exported_wholes(list_at(meta, {"sizes"}))};
      e.stride = exported_wholes(list_at(meta, {"strides"}));
      e.offset = std::max<int64_t>(whole_of_json(member_at(meta, {"storage_offset"})), 0);
      e.device = text_of_json(member_at(meta, {"device", "type"}));
      e.storage = text_of_json(member_at(payload, {"path_name"}));
      e.category = member_at(payload, {"is_param"}) == true ? "parameter" : "buffer";
      a_.values.push_back(value_of(e, folder, member_at(payload, {"use_pickle"}) == true));
      a_.held.tensors.push_back(std::move(e));
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

  std::shared_ptr<const MappedFile> file_;
  Zip zip_;
  ExportedArchive a_;
};

}  // namespace

ExportedArchive read_exported(const std::shared_ptr<const MappedFile>& file) { return ExportedReader(file).read(); }

std::string exported_type(int64_t number) {
  if (number >= 0 && number < std::ssize(kTypeNames)) return std::string(kTypeNames[number]);
  if (number >= kFirstLaterType && number < kFirstLaterType + std::ssize(kLaterTypeNames))
    return std::string(kLaterTypeNames[number - kFirstLaterType]);
  return fmt::format("type {}", number);
}
int64_t exported_type_number(std::string_view name) {
  for (int64_t i = 0; i < std::ssize(kTypeNames); ++i)
    if (kTypeNames[i] == name) return i;
  for (int64_t i = 0; i < std::ssize(kLaterTypeNames); ++i)
    if (kLaterTypeNames[i] == name) return kFirstLaterType + i;
  return 0;
}

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
int64_t whole_of_json(const json& j) {
  const json& n = j.is_object() ? member_at(j, {"as_int"}) : j;
  return n.is_number_integer() && n >= 0 ? n.get<int64_t>() : -1;
}
std::string exported_symbol(std::string e) {
  for (size_t at = e.find("Symbol('"); at != e.npos; at = e.find("Symbol('", at)) {
    const size_t end = e.find('\'', at + 8), close = e.find(')', at);
    if (end == e.npos || close == e.npos || end > close) break;
    e.replace(at, close + 1 - at, e.substr(at + 8, end - at - 8));
  }
  return e;
}
/// "key,path,type" triples from the outermost module to the innermost: the last path is the module of the node.
std::string exported_scope(const json& node) {
  const std::string stack = text_of_json(member_at(node, {"metadata", "nn_module_stack"}));
  const std::string last = stack.substr(stack.rfind(';') == stack.npos ? 0 : stack.rfind(';') + 1);
  const size_t first = last.find(','), second = first == last.npos ? last.npos : last.find(',', first + 1);
  return second == last.npos ? std::string() : last.substr(first + 1, second - first - 1);
}

}  // namespace tenon::formats
