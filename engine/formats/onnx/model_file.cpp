// An ONNX model as a model file. What fills such a file are its initializers: they are found by walking over the fields
// of the message, and parsed one by one, so that their values stay in the file until they are asked for. A model that
// cannot be run (an operator or a type that is not supported) is shown all the same.
#include "engine/formats/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <unordered_set>

#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/onnx/model_bytes.h"
#include "engine/formats/onnx/proto.h"

namespace tenon::formats {
namespace {

ModelFile::Value shown(const OnnxValue& v) {
  ModelFile::Value out{v.name, type_text(v)};
  for (const OnnxDim& d : v.shape) out.shape.push_back(std::max<int64_t>(d.value, -1));
  return out;
}

bool holds_values(uint64_t field) {
  using T = onnx::TensorProto;
  for (int number :
       {T::kRawDataFieldNumber, T::kFloatDataFieldNumber, T::kInt32DataFieldNumber, T::kStringDataFieldNumber,
        T::kInt64DataFieldNumber, T::kDoubleDataFieldNumber, T::kUint64DataFieldNumber})
    if (field == static_cast<uint64_t>(number)) return true;
  return false;
}

std::string tensor_text(const onnx::TensorProto& t) {
  DType dtype;
  const std::string type = dtype_from_onnx(t.data_type(), dtype) ? tenon::name(dtype) : onnx_type_name(t.data_type());
  if (t.dims_size() == 0) {  // one number: itself
    const std::string& raw = t.raw_data();
    if (t.data_type() == onnx::TensorProto::BOOL && (raw.size() == 1 || t.int32_data_size() == 1))
      return fmt::format("{} {}", type, raw.size() == 1 ? raw[0] != 0 : t.int32_data(0) != 0);
    if (t.data_type() == onnx::TensorProto::FLOAT && (raw.size() == sizeof(float) || t.float_data_size() == 1)) {
      float v = t.float_data_size() == 1 ? t.float_data(0) : 0;
      if (raw.size() == sizeof v) std::memcpy(&v, raw.data(), sizeof v);
      return fmt::format("{} {:g}", type, v);
    }
    if (t.data_type() == onnx::TensorProto::INT64 && (raw.size() == sizeof(int64_t) || t.int64_data_size() == 1)) {
      int64_t v = t.int64_data_size() == 1 ? t.int64_data(0) : 0;
      if (raw.size() == sizeof v) std::memcpy(&v, raw.data(), sizeof v);
      return fmt::format("{} {}", type, v);
    }
  }
  return fmt::format("{} [{}]", type, fmt::join(t.dims(), ", "));
}

template <class List>
std::string list_text(const List& list) {
  constexpr int kMost = 16;
  std::string out = "[";
  for (int i = 0; i < list.size() && i < kMost; ++i) out += fmt::format("{}{}", i ? ", " : "", list.Get(i));
  return out + (list.size() > kMost ? fmt::format(", … {} in all]", list.size()) : "]");
}

std::string attribute_text(const onnx::AttributeProto& a) {
  using A = onnx::AttributeProto;
  constexpr size_t kMostLetters = 200;
  switch (a.type()) {
    case A::FLOAT:
      return fmt::format("{}", a.f());
    case A::INT:
      return std::to_string(a.i());
    case A::STRING:
      return a.s().substr(0, kMostLetters);
    case A::TENSOR:
      return tensor_text(a.t());
    case A::GRAPH:
      return fmt::format("a graph of {} nodes", a.g().node_size());
    case A::FLOATS:
      return list_text(a.floats());
    case A::INTS:
      return list_text(a.ints());
    case A::STRINGS:
      return list_text(a.strings()).substr(0, kMostLetters);
    default:
      return a.ref_attr_name().empty() ? "…" : "of the function: " + a.ref_attr_name();
  }
}

class Outline {
 public:
  explicit Outline(const std::shared_ptr<const MappedFile>& file) : file_(file) {}

  ModelFile read() {
    ModelBytes parts;
    if (!split_model(file_->bytes(), parts)) fail();
    for (const std::string_view one : parts.initializers) read_initializer(one);
    read_graph(parts.graph);
    read_facts(parts.model);
    m_.values = [file = file_, places = std::move(places_)](size_t i) {
      ExternalData external = ExternalData::beside(file->name());
      return read_initializer_bytes(places.at(i), file->name(), external).second;
    };
    return std::move(m_);
  }

 private:
  [[noreturn]] void fail() const { throw Error(fmt::format("{} is not an ONNX model, or is damaged", file_->name())); }

  void read_facts(const onnx::ModelProto& model) {
    int64_t opset = model.opset_import_size() ? 0 : 1;
    std::string others;
    for (const auto& o : model.opset_import()) {
      if (o.domain().empty() || o.domain() == "ai.onnx")
        opset = o.version();
      else
        others += fmt::format("{}{} {}", others.empty() ? "" : ", ", o.domain(), o.version());
    }
    m_.facts.push_back({"producer", model.producer_name()});
    if (!model.producer_version().empty()) m_.facts.push_back({"producer_version", model.producer_version()});
    m_.facts.push_back({"opset", opset});
    if (!others.empty()) m_.facts.push_back({"other_opsets", others});
    m_.facts.push_back({"ir_version", static_cast<int64_t>(model.ir_version())});
    if (model.functions_size()) m_.facts.push_back({"functions", int64_t{model.functions_size()}});
    if (!model.doc_string().empty()) m_.facts.push_back({"doc", model.doc_string()});
    for (const auto& p : model.metadata_props()) m_.texts.emplace_back(p.key(), p.value());
  }

  void read_graph(const onnx::GraphProto& graph) {
    std::unordered_set<std::string> constants;
    for (const ModelFile::Entry& e : m_.tensors) constants.insert(e.name);
    for (const auto& v : graph.input())  // an input that an initializer gives a value need not be given
      if (!constants.contains(v.name())) m_.inputs.push_back(shown(read_value(v)));
    for (const auto& v : graph.output()) m_.outputs.push_back(shown(read_value(v)));
    for (const auto& s : graph.sparse_initializer()) {
      ModelFile::Entry e{.name = s.values().name(), .dtype = onnx_type_name(s.values().data_type())};
      e.shape.assign(s.dims().begin(), s.dims().end());
      e.problem = "is sparse";
      m_.tensors.push_back(std::move(e));
      places_.emplace_back();
    }
    for (const auto& n : graph.node()) m_.nodes.push_back(node(n, constants));
  }

  void read_initializer(std::string_view bytes) {
    std::string head;
    uint64_t stored = 0;
    std::string_view rest = bytes;
    for (ProtoField f; !rest.empty();) {
      if (!take_field(rest, f)) fail();
      if (holds_values(f.number))
        stored += f.content.size();
      else
        head += f.whole;
    }
    onnx::TensorProto t;
    if (!t.ParseFromString(head)) fail();
    ModelFile::Entry e{.name = t.name(), .dtype = onnx_type_name(t.data_type()), .bytes = stored};
    for (int64_t d : t.dims()) e.shape.push_back(std::max<int64_t>(d, 0));
    DType dtype;
    if (four_bit_from_onnx(t.data_type(), dtype))
      e.bytes = static_cast<uint64_t>(e.elements()) / 2 + static_cast<uint64_t>(e.elements()) % 2;
    else if (!dtype_from_onnx(t.data_type(), dtype))
      e.problem = fmt::format("has the type {}, which is not supported", e.dtype);
    else if (__builtin_mul_overflow(static_cast<uint64_t>(e.elements()), itemsize(dtype), &e.bytes))
      e.bytes = UINT64_MAX;
    if (e.problem.empty() && t.dims_size() > kMaxDims)
      e.problem = fmt::format("has {} dimensions; at most {} are supported", t.dims_size(), kMaxDims);
    for (const auto& entry : t.external_data())
      if (entry.key() == "location") e.storage = entry.value();
    m_.tensors.push_back(std::move(e));
    places_.push_back(bytes);
  }

  /// Exporters name a node by its modules, "/layer1/layer1.0/conv1/Conv", each of them after the one it stands in; or
  /// give it a weight of the module, "layer1.0.conv1.weight".
  static std::string scope_of(const onnx::NodeProto& n, const std::unordered_set<std::string>& constants) {
    std::string scope, before;
    std::string_view rest = n.name();
    if (rest.starts_with('/')) {
      rest.remove_prefix(1);
      for (size_t slash; (slash = rest.find('/')) != rest.npos; rest.remove_prefix(slash + 1)) {
        std::string part(rest.substr(0, slash));
        const std::string own =
            part.starts_with(before + ".") && !before.empty() ? part.substr(before.size() + 1) : part;
        if (!own.empty()) scope += (scope.empty() ? "" : ".") + own;
        before = std::move(part);
      }
      return scope;
    }
    for (const std::string& in : n.input())
      if (const size_t dot = in.rfind('.'); dot != in.npos && constants.contains(in)) return in.substr(0, dot);
    return {};
  }

  static ModelFile::Node node(const onnx::NodeProto& n, const std::unordered_set<std::string>& constants) {
    ModelFile::Node out;
    out.name = n.name();
    out.op = n.op_type();
    out.domain = n.domain() == "ai.onnx" ? std::string() : n.domain();
    out.scope = scope_of(n, constants);
    out.inputs.assign(n.input().begin(), n.input().end());
    out.outputs.assign(n.output().begin(), n.output().end());
    for (const auto& a : n.attribute()) out.attributes.emplace_back(a.name(), attribute_text(a));
    return out;
  }

  std::shared_ptr<const MappedFile> file_;
  ModelFile m_;
  std::vector<std::string_view> places_;  ///< of the initializers, within the file
};

const bool registered_onnx_file = register_model_file(
    {"onnx", FileKind::onnx, [](const std::shared_ptr<const MappedFile>& file) { return Outline(file).read(); }});

}  // namespace
}  // namespace tenon::formats
