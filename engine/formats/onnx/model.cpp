#include "engine/formats/onnx/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <functional>
#include <memory>

#include "core/error.h"
#include "core/file.h"
#include "core/mapped_file.h"
#include "core/utf8.h"
#include "engine/formats/onnx/model_bytes.h"
#include "engine/formats/onnx/proto.h"

namespace tenon::formats {
namespace {

constexpr size_t kProtobufLimit = size_t{2000} << 20;  // a little under 2^31 - 1
constexpr int kMaxDepth = 32;                          // of graphs within graphs

struct Reader {
  std::string name;
  ExternalData& external;

  OnnxAttribute attribute(const onnx::AttributeProto& p, const std::string& where, int depth) const {
    using A = onnx::AttributeProto;
    OnnxAttribute a;
    a.name = p.name();
    if (!p.ref_attr_name().empty())
      throw Error(fmt::format("{}: attribute {} refers to a function's attribute outside of one", where, a.name));
    switch (p.type()) {
      case A::FLOAT:
        a.value = static_cast<double>(p.f());
        break;
      case A::INT:
        a.value = static_cast<int64_t>(p.i());
        break;
      case A::STRING:
        a.value = p.s();
        break;
      case A::TENSOR:
        a.value = read_tensor(p.t(), fmt::format("{}: attribute {}", where, a.name), external);
        break;
      case A::GRAPH:
        a.value = std::make_shared<OnnxGraph>(graph(p.g(), depth + 1));
        break;
      case A::FLOATS:
        a.value = std::vector<double>(p.floats().begin(), p.floats().end());
        break;
      case A::INTS:
        a.value = std::vector<int64_t>(p.ints().begin(), p.ints().end());
        break;
      case A::STRINGS:
        a.value = std::vector<std::string>(p.strings().begin(), p.strings().end());
        break;
      default:
        throw OnnxUnsupported(fmt::format("{}: attribute {} is of a kind that is not supported ({})", where, a.name,
                                          static_cast<int>(p.type())));
    }
    return a;
  }

  /// `own` takes the initializers of the outermost graph, whose messages are not in `p`.
  OnnxGraph graph(const onnx::GraphProto& p, int depth, const std::function<void(OnnxGraph&)>& own = {}) const {
    if (depth > kMaxDepth) throw Error(fmt::format("{}: graphs are nested more than {} deep", name, kMaxDepth));
    if (p.sparse_initializer_size())
      throw OnnxUnsupported(fmt::format("{}: sparse initializers are not supported", name));
    OnnxGraph g;
    g.name = p.name();
    if (own) own(g);
    for (const auto& t : p.initializer()) {
      g.initializers.emplace_back(t.name(),
                                  read_tensor(t, fmt::format("{}: initializer {}", name, t.name()), external));
      if (DType dtype; four_bit_from_onnx(t.data_type(), dtype)) g.four_bit.insert(t.name());
    }
    for (const auto& v : p.input()) g.inputs.push_back(read_value(v));
    for (const auto& v : p.output()) g.outputs.push_back(read_value(v));
    for (const auto& v : p.value_info()) g.values.push_back(read_value(v));
    int number = 0;
    for (const auto& n : p.node()) {
      OnnxNode node;
      node.name = n.name();
      node.op_type = n.op_type();
      node.domain = n.domain() == "ai.onnx" ? std::string() : n.domain();
      node.inputs.assign(n.input().begin(), n.input().end());
      node.outputs.assign(n.output().begin(), n.output().end());
      const std::string where = fmt::format("{}: node {} ({})", name,
                                            node.name.empty() ? fmt::format("#{}", number) : node.name, node.op_type);
      if (node.op_type.empty()) throw Error(where + " has no operator");
      for (const auto& a : n.attribute())
        if (a.type() != onnx::AttributeProto::TYPE_PROTO)  // the type of an empty optional: nothing reads it
          node.attributes.push_back(attribute(a, where, depth));
      g.nodes.push_back(std::move(node));
      ++number;
    }
    return g;
  }
};

void write_value(const OnnxValue& v, onnx::ValueInfoProto& p) {
  p.set_name(v.name);
  if (!v.typed) return;
  auto* type = p.mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx_type(v.dtype));
  if (!v.ranked) return;
  auto* shape = type->mutable_shape();
  for (const OnnxDim& d : v.shape) {
    auto* dim = shape->add_dim();
    if (d.value >= 0)
      dim->set_dim_value(d.value);
    else if (!d.name.empty())
      dim->set_dim_param(d.name);
  }
}

void write_graph(const OnnxGraph& g, onnx::GraphProto& p);

void write_initializer(const OnnxGraph& g, const std::string& name, const Tensor& t, onnx::TensorProto& p) {
  if (g.four_bit.contains(name))
    write_four_bit(t, name, p);
  else
    write_tensor(t, name, p);
}

size_t weight_bytes(const OnnxModel& model) {
  size_t bytes = 0;
  for (const auto& [name, t] : model.graph.initializers)
    bytes += model.graph.four_bit.contains(name) ? (t.nbytes() + 1) / 2 : t.nbytes();
  return bytes;
}

void write_attribute(const OnnxAttribute& a, onnx::AttributeProto& p) {
  using A = onnx::AttributeProto;
  p.set_name(a.name);
  struct Visit {
    A& p;
    void operator()(double v) { p.set_type(A::FLOAT), p.set_f(static_cast<float>(v)); }
    void operator()(int64_t v) { p.set_type(A::INT), p.set_i(v); }
    void operator()(const std::string& v) { p.set_type(A::STRING), p.set_s(v); }
    void operator()(const Tensor& v) { p.set_type(A::TENSOR), write_tensor(v, "", *p.mutable_t()); }
    void operator()(const std::shared_ptr<OnnxGraph>& v) { p.set_type(A::GRAPH), write_graph(*v, *p.mutable_g()); }
    void operator()(const std::vector<double>& v) {
      p.set_type(A::FLOATS);
      for (double x : v) p.add_floats(static_cast<float>(x));
    }
    void operator()(const std::vector<int64_t>& v) {
      p.set_type(A::INTS);
      for (int64_t x : v) p.add_ints(x);
    }
    void operator()(const std::vector<std::string>& v) {
      p.set_type(A::STRINGS);
      for (const std::string& x : v) p.add_strings(x);
    }
  };
  std::visit(Visit{p}, a.value);
}

void write_graph(const OnnxGraph& g, onnx::GraphProto& p) {
  p.set_name(g.name.empty() ? "graph" : g.name);  // the checker wants a name
  for (const OnnxNode& n : g.nodes) {
    auto* node = p.add_node();
    node->set_name(n.name);
    node->set_op_type(n.op_type);
    if (!n.domain.empty()) node->set_domain(n.domain);
    for (const std::string& s : n.inputs) node->add_input(s);
    for (const std::string& s : n.outputs) node->add_output(s);
    for (const OnnxAttribute& a : n.attributes) write_attribute(a, *node->add_attribute());
  }
  for (const auto& [name, t] : g.initializers) write_initializer(g, name, t, *p.add_initializer());
  for (const OnnxValue& v : g.inputs) write_value(v, *p.add_input());
  for (const OnnxValue& v : g.outputs) write_value(v, *p.add_output());
  for (const OnnxValue& v : g.values) write_value(v, *p.add_value_info());
}

void write_model(const OnnxModel& model, onnx::ModelProto& p) {
  p.set_ir_version(model.ir_version);
  p.set_producer_name(model.producer);
  p.set_producer_version(model.producer_version);
  if (!model.doc.empty()) p.set_doc_string(model.doc);
  auto* opset = p.add_opset_import();
  opset->set_domain("");
  opset->set_version(model.opset);
  for (const auto& [domain, version] : model.other_opsets) {
    opset = p.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version);
  }
  write_graph(model.graph, *p.mutable_graph());
}

template <class T>
T value_or(const OnnxNode& node, const std::string& attribute, T fallback) {
  const OnnxAttribute::Value* v = node.find(attribute);
  if (!v) return fallback;
  if (const T* x = std::get_if<T>(v)) return *x;
  throw Error(fmt::format("node {} ({}): attribute {} is of the wrong kind", node.name, node.op_type, attribute));
}

}  // namespace

OnnxValue read_value(const onnx::ValueInfoProto& p) {
  using Form = OnnxValue::Form;
  OnnxValue v;
  v.name = p.name();
  if (!p.has_type()) return v;
  const onnx::TypeProto* inner = &p.type();
  if (inner->has_optional_type()) {
    inner = &inner->optional_type().elem_type();
    v.form = inner->has_sequence_type() ? Form::optional_sequence : Form::optional;
  }
  if (inner->has_sequence_type()) {
    inner = &inner->sequence_type().elem_type();
    if (v.form == Form::tensor) v.form = Form::sequence;
  }
  if (!inner->has_tensor_type()) {
    if (inner->value_case() != onnx::TypeProto::VALUE_NOT_SET) v.form = Form::other;
    return v;
  }
  const auto& type = inner->tensor_type();
  v.typed = dtype_from_onnx(type.elem_type(), v.dtype);
  if (!v.typed && type.elem_type() != onnx::TensorProto::UNDEFINED) v.unsupported = onnx_type_name(type.elem_type());
  v.ranked = type.has_shape();
  for (const auto& d : type.shape().dim()) v.shape.push_back({d.has_dim_value() ? d.dim_value() : -1, d.dim_param()});
  return v;
}

OnnxModel with_outputs(OnnxModel model, const std::vector<std::string>& names) {
  model.graph.outputs.clear();
  for (const std::string& name : names) model.graph.outputs.push_back({name});
  return model;
}

std::string type_text(const OnnxValue& v) {
  std::vector<std::string> dims;
  for (const auto& d : v.shape) dims.push_back(d.value >= 0 ? std::to_string(d.value) : d.name.empty() ? "?" : d.name);
  const std::string type = v.typed ? tenon::name(v.dtype) : v.unsupported.empty() ? "?" : v.unsupported;
  return fmt::format("{} [{}]", type, fmt::join(dims, ", "));
}

const OnnxAttribute::Value* OnnxNode::find(const std::string& attribute) const {
  for (const OnnxAttribute& a : attributes)
    if (a.name == attribute) return &a.value;
  return nullptr;
}
int64_t OnnxNode::integer(const std::string& a, int64_t fallback) const {
  return value_or<int64_t>(*this, a, fallback);
}
double OnnxNode::number(const std::string& a, double fallback) const { return value_or<double>(*this, a, fallback); }
std::string OnnxNode::text(const std::string& a, const std::string& fallback) const {
  return value_or<std::string>(*this, a, fallback);
}
std::vector<int64_t> OnnxNode::integers(const std::string& a, const std::vector<int64_t>& fallback) const {
  return value_or<std::vector<int64_t>>(*this, a, fallback);
}

const Tensor* OnnxGraph::initializer(const std::string& wanted) const {
  for (const auto& [name, t] : initializers)
    if (name == wanted) return &t;
  return nullptr;
}

namespace {

/// `passed` is told of each initializer whose values were taken over.
OnnxModel parse_model(std::string_view bytes, const std::string& name, ExternalData external,
                      const std::function<void(std::string_view)>& passed) {
  ModelBytes parts;
  if (!split_model(bytes, parts)) throw Error(fmt::format("{} is not an ONNX model, or is damaged", name));
  const onnx::ModelProto& p = parts.model;
  OnnxModel m;
  m.ir_version = p.ir_version();
  m.producer = p.producer_name();
  m.producer_version = p.producer_version();
  m.doc = p.doc_string();
  m.opset = 0;
  for (const auto& o : p.opset_import()) {
    if (o.domain().empty() || o.domain() == "ai.onnx")
      m.opset = o.version();
    else
      m.other_opsets.emplace_back(o.domain(), o.version());
  }
  if (p.opset_import_size() == 0) {
    if (m.ir_version >= 3)
      throw Error(fmt::format("{} is damaged: it does not say which version of the operators it uses", name));
    m.opset = 1;
  }
  m.graph = Reader{name, external}.graph(parts.graph, 0, [&](OnnxGraph& g) {
    for (const std::string_view one : parts.initializers) {
      bool four_bit = false;
      g.initializers.push_back(read_initializer_bytes(one, name, external, &four_bit));
      if (four_bit) g.four_bit.insert(g.initializers.back().first);
      if (passed) passed(one);
    }
  });
  validate(m.graph, name);
  return m;
}

}  // namespace

OnnxModel parse_onnx(std::string_view bytes, const std::string& name, const std::string& folder) {
  return parse_model(bytes, name, ExternalData(folder), {});
}

OnnxModel load_onnx(const std::string& path) {
  const auto file = MappedFile::open(path);
  return parse_model(file->bytes(), path, ExternalData::beside(path),
                     [&](std::string_view part) { file->forget(part); });
}

std::string onnx_bytes(const OnnxModel& model) {
  const size_t bytes = weight_bytes(model);
  if (bytes > kProtobufLimit)
    throw Error(fmt::format("the model's weights of {} bytes do not fit into one ONNX file", bytes),
                "Save it to a file: its weights then go beside it.");
  onnx::ModelProto p;
  write_model(model, p);
  return p.SerializeAsString();
}

size_t onnx_size(const OnnxModel& model) {
  const size_t weights = weight_bytes(model);
  if (weights <= kProtobufLimit) return onnx_bytes(model).size();
  OnnxModel small = model;
  small.graph.initializers.clear();
  return weights + onnx_bytes(small).size();
}

void save_onnx(const std::string& path, const OnnxModel& model) {
  if (weight_bytes(model) <= kProtobufLimit) return write_file(path, onnx_bytes(model));

  OnnxModel small = model;
  small.graph.initializers.clear();
  onnx::ModelProto p;
  write_model(small, p);
  const std::string location = std::filesystem::path(path).filename().string() + ".data";
  // Neither gets its name before both are on the disk: a model without its weights would be half a file.
  FileWriter weights(path + ".data"), nodes(path);
  size_t at = 0;
  for (const auto& [name, t] : model.graph.initializers) {
    const size_t begin = (at + 4095) / 4096 * 4096;  // so that a reader can map it
    weights.put(std::string(begin - at, '\0'));
    auto* proto = p.mutable_graph()->add_initializer();
    write_initializer(model.graph, name, t, *proto);
    const std::unique_ptr<std::string> values(proto->release_raw_data());
    proto->set_data_location(onnx::TensorProto::EXTERNAL);
    auto entry = [&](const char* key, const std::string& value) {
      auto* e = proto->add_external_data();
      e->set_key(key);
      e->set_value(value);
    };
    entry("location", location);
    entry("offset", std::to_string(begin));
    entry("length", std::to_string(values->size()));
    weights.put(*values);
    at = begin + values->size();
  }
  nodes.put(p.SerializeAsString());
  weights.sync();
  nodes.sync();
  weights.commit();
  nodes.commit();
}

namespace {
void expect_utf8_of(const OnnxNode& node, const std::string& text) {
  if (!is_utf8(text))
    throw OnnxUnsupported(fmt::format("a {} of it has a name or a text that is not UTF-8", node.op_type));
}
}  // namespace

void expect_utf8(const OnnxGraph& g) {
  for (const OnnxNode& n : g.nodes) {
    if (!is_utf8(n.op_type)) throw OnnxUnsupported("an operator of it has a name that is not UTF-8");
    for (const std::string* text : {&n.name, &n.domain}) expect_utf8_of(n, *text);
    for (const auto* names : {&n.inputs, &n.outputs})
      for (const std::string& value : *names) expect_utf8_of(n, value);
    for (const OnnxAttribute& a : n.attributes) {
      expect_utf8_of(n, a.name);
      if (const auto* text = std::get_if<std::string>(&a.value)) expect_utf8_of(n, *text);
      if (const auto* texts = std::get_if<std::vector<std::string>>(&a.value))
        for (const std::string& text : *texts) expect_utf8_of(n, text);
      if (const auto* body = std::get_if<std::shared_ptr<OnnxGraph>>(&a.value)) expect_utf8(**body);
    }
  }
}

}  // namespace tenon::formats
