#include "engine/formats/onnx/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <unordered_set>

#include "core/error.h"
#include "core/pool.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/formats/onnx/importer.h"
#include "engine/formats/onnx/op_layer.h"
#include "engine/formats/onnx/run.h"
#include "engine/model/graph_module.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"

namespace tenon::formats {
namespace {

/// Where the file leaves it open: a number that hardly is another size of a model.
constexpr int64_t kBatch = 29;

Registry<ImportRule>& rules() {
  static auto& all = *new Registry<ImportRule>("import rule");
  return all;
}

bool is_path(const std::string& s) {
  return !s.empty() && s.front() != '.' && s.back() != '.' && std::all_of(s.begin(), s.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.' || c == '-';
  });
}

/// "layer1.0.relu" of "/layer1/layer1.0/relu/Relu", as torch.onnx writes scopes.
std::string path_of(const OnnxNode& node) {
  std::string path, part;
  std::vector<std::string> parts;
  for (char c : node.name + "/")
    if (c == '/') {
      if (!part.empty()) parts.push_back(part);
      part.clear();
    } else {
      part += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ? c : '_';
    }
  std::string before;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i + 1 == parts.size() && parts.size() > 1 && parts[i].starts_with(node.op_type)) break;
    if (!before.empty() && parts[i].starts_with(before + "."))
      path.resize(path.size() - before.size());
    else if (!path.empty())
      path += ".";
    path += parts[i];
    before = parts[i];
  }
  if (is_path(path) && path.size() < 200) return path;
  path.clear();
  for (unsigned char c : node.op_type) path += static_cast<char>(std::tolower(c));
  return is_path(path) ? path : "layer";
}

Tensor as_f32(const Tensor& t) { return contiguous(is_floating(t.dtype()) ? cast(t, DType::f32) : t); }

}  // namespace

bool register_import(const std::string& op_type, std::function<bool(Importer&)> make, Place place) {
  return rules().add({op_type, std::move(make)}, place);
}
const Registry<ImportRule>& import_rules() { return rules(); }

Importer::Importer(const OnnxModel& onnx, const std::string& name, const std::vector<int64_t>& sample) : onnx_(onnx) {
  const OnnxGraph& g = onnx.graph;
  model_.name = name;
  for (const auto& [weight, tensor] : g.initializers) values_[weight] = {tensor, {}};
  for (const OnnxNode& n : g.nodes) {
    for (const std::string& out : n.outputs) makers_[out] = &n;
    for (const std::string& in : n.inputs) ++readers_[in];
  }
  for (const OnnxValue& out : g.outputs) ++readers_[out.name];
  const OnnxValue* input = nullptr;
  for (const OnnxValue& v : g.inputs) {
    if (values_.count(v.name)) continue;
    if (input)
      throw OnnxUnsupported(
          fmt::format("it has several inputs ({}, {}): a model of the builder has one", input->name, v.name));
    input = &v;
  }
  if (!input || input->form != OnnxValue::Form::tensor || !input->typed || !input->ranked || input->shape.empty())
    throw OnnxUnsupported("it has no input that is a tensor of known axes");
  if (input->shape[0].value > 0)
    batch_ = input->shape[0].value;
  else
    batch_ = kBatch;
  std::vector<int64_t> sizes;
  for (size_t i = 1; i < input->shape.size(); ++i) sizes.push_back(input->shape[i].value);
  if (!sample.empty()) {
    if (sample.size() != sizes.size())
      throw Error::usage(fmt::format("{} sizes for a sample of {} axes", sample.size(), sizes.size()));
    sizes = sample;
  }
  for (int64_t size : sizes)
    if (size < 1)
      throw OnnxUnsupported("its input " + type_text(*input) + " leaves sizes of a sample open",
                            "Say them: --shape 3x224x224.");
  const bool whole = !is_floating(input->dtype);
  if (whole && input->dtype != DType::i64 && input->dtype != DType::i32)
    throw OnnxUnsupported("its input is of the type " + type_text(*input));
  if (input->dtype == DType::f16 || input->dtype == DType::bf16) widen();
  std::vector<Attr> attrs = {{"shape", sizes}};
  if (whole) attrs.push_back({"dtype", std::string("i64")});
  model_.layers.push_back({"input", "Input", std::move(attrs), 0, 0});
  names_.insert("input");
  std::vector<int64_t> all = {batch_};
  all.insert(all.end(), sizes.begin(), sizes.end());
  values_[input->name] = {empty(Shape(all), whole ? DType::i64 : DType::f32, {DeviceType::meta}), "input"};
}

const Importer::Value* Importer::find(const std::string& value) const {
  const auto it = values_.find(value);
  return it == values_.end() ? nullptr : &it->second;
}
const Importer::Value& Importer::in(size_t i) const {
  const Value* v = has(i) ? find(node_->inputs[i]) : nullptr;
  if (!v) throw Error(fmt::format("input {} is missing", i));
  return *v;
}
const OnnxNode* Importer::maker(const std::string& value) const {
  const auto it = makers_.find(value);
  return it == makers_.end() ? nullptr : it->second;
}
int Importer::readers(const std::string& value) const {
  const auto it = readers_.find(value);
  return it == readers_.end() ? 0 : it->second;
}
std::optional<double> Importer::number_of(const std::vector<std::string>& inputs, size_t i) const {
  const Value* v = i < inputs.size() ? find(inputs[i]) : nullptr;
  if (!v || v->dynamic() || v->tensor.numel() != 1) return {};
  return item(v->tensor);
}
std::vector<int64_t> Importer::list(size_t i, const std::string& attribute,
                                    const std::vector<int64_t>& fallback) const {
  if (!has(i)) return node_->integers(attribute, fallback);
  if (in(i).dynamic()) throw Error(fmt::format("input {} is known only at a run", i));
  const Tensor t = contiguous(cast(in(i).tensor, DType::i64));
  return {t.data<int64_t>(), t.data<int64_t>() + t.numel()};
}

/// Of the weight where it has one that is named by a path, else of the node.
std::string Importer::free_name() {
  std::string name;
  for (const std::string& in : node_->inputs)
    for (const char* end : {".weight", ".running_mean"})
      if (name.empty() && in.ends_with(end) && is_path(in) && in.size() < 200)
        name = in.substr(0, in.size() - std::string(end).size());
  if (name.empty() || names_.contains(name)) {
    const std::string other = path_of(*node_);
    if (name.empty() || !names_.contains(other)) name = other;
  }
  if (!names_.contains(name) && name != "output") return name;
  int& number = numbers_.try_emplace(name, 1).first->second;
  numbered_.emplace_back(name, number);
  std::string other;
  do other = fmt::format("{}_{}", name, ++number);
  while (names_.contains(other));
  return other;
}

Importer::Value Importer::add(const std::string& type, std::vector<Attr> attrs, const std::vector<Value>& from,
                              std::vector<Weight> weights) {
  LayerSpec layer{free_name(), type, std::move(attrs), 0, 0};
  std::vector<Meta> metas;
  std::vector<Tensor> in;
  for (const Value& v : from) {
    if (v.tensor && !v.dynamic()) throw Error("a constant where a layer's result is wanted");
    metas.push_back(v.tensor ? v.tensor.meta() : Meta{});
    in.push_back(v.tensor);
  }
  if (const LayerInfo* info = find_layer_type(type)) {  // the inputs that may be left out
    metas.resize(static_cast<size_t>(info->inputs));
    in.resize(metas.size());
  }
  NoGrad off;
  Value out{(*make_layer(layer, metas, {DeviceType::meta}))(in), layer.name};
  for (size_t port = 0; port < from.size(); ++port)
    if (from[port].tensor) model_.wires.push_back({from[port].layer, 0, layer.name, static_cast<int>(port)});
  names_.insert(layer.name);
  model_.layers.push_back(std::move(layer));
  for (Weight& w : weights) give(out.layer, std::move(w));
  return out;
}

void Importer::give(const std::string& layer, Weight w) {
  if (w.value.dtype() == DType::f16 || w.value.dtype() == DType::bf16) widen();
  const auto [at, fresh] = weights_.try_emplace(layer + "." + w.name, as_f32(w.value));
  if (!fresh) throw Error("the layer has its " + w.name + " already");
  given_.push_back(at->first);
}

void Importer::result(Value v, size_t k) {
  if (k < node_->outputs.size() && !node_->outputs[k].empty()) values_[node_->outputs[k]] = std::move(v);
}

void Importer::note(const std::string& sentence) {
  if (std::find(notes_.begin(), notes_.end(), sentence) == notes_.end()) notes_.push_back(sentence);
}

void Importer::widen() {
  widened_ = true;
  note("Numbers of 16 bits are held in 32.");
}

bool Importer::by_rule() {
  const ImportRule* rule = rules().find(node_->op_type);
  if (!rule) return false;
  const size_t layers = model_.layers.size(), wires = model_.wires.size();
  given_.clear(), numbered_.clear();
  try {
    if (rule->make(*this)) return true;
  } catch (const Error&) {  // an OnnxOp layer says what it is about the node
  }
  for (size_t i = layers; i < model_.layers.size(); ++i) names_.erase(model_.layers[i].name);
  model_.layers.resize(layers);
  model_.wires.resize(wires);
  for (size_t i = numbered_.size(); i-- > 0;) numbers_[numbered_[i].first] = numbered_[i].second;
  for (const std::string& name : given_) weights_.erase(name);
  return false;
}

/// As the operator that it is.
void Importer::as_op() {
  if (!may_be_layer(*node_)) throw OnnxUnsupported("no layer is made for it yet");
  OnnxOpLayer op{*node_, onnx_.opset, 0, {}};
  std::vector<Value> from;
  std::vector<Weight> weights;
  for (size_t i = 0; i < node_->inputs.size(); ++i) {
    using Kind = OnnxOpLayer::Input::Kind;
    if (!has(i)) {
      op.inputs.push_back({});
      continue;
    }
    const Value& v = in(i);
    if (v.dynamic()) {
      op.inputs.push_back({Kind::wire});
      from.push_back(v);
      continue;
    }
    Tensor value = v.tensor;
    const bool trained = is_floating(value.dtype()) && value.numel() > 1;
    if (trained) {
      value = as_f32(value);
      weights.push_back({OnnxOpLayer::parameter_name(i), value});
    } else if (value.numel() > OnnxOpLayer::kConstant) {
      throw OnnxUnsupported(fmt::format("a constant of {} whole numbers", value.numel()));
    } else if (is_floating(value.dtype())) {
      value = as_f32(value);
    }
    op.inputs.push_back({trained ? Kind::parameter : Kind::constant, value});
  }
  if (from.size() > OnnxOpLayer::kWires)
    throw OnnxUnsupported(fmt::format("{} inputs that are no constants", from.size()));
  // What says the size of the whole batch says it for any batch.
  if ((node_->op_type == "Reshape" || node_->op_type == "Expand") && constant(1) && dynamic(0)) {
    Tensor to = contiguous(cast(in(1).tensor, DType::i64));
    to = view_of(to, to.layout());
    Tensor changed = empty(to.size(), DType::i64);
    int64_t* sizes = changed.data<int64_t>();
    std::copy_n(to.data<int64_t>(), to.numel(), sizes);
    const Shape& from = in(0).shape();
    if (to.numel() > 0 && sizes[0] == batch_ && from.n > 0 && from[0] == batch_)
      sizes[0] = node_->op_type == "Expand" ? 1 : 0;
    else if (to.numel() > 0 && sizes[0] == batch_ && from.n > 0 && from[0] % batch_ == 0 &&
             node_->op_type == "Reshape" && std::count(sizes, sizes + to.numel(), -1) == 0)
      sizes[0] = -1;  // rows of all samples below each other, that become samples again
    op.inputs[1].value = changed;
  }
  for (size_t k = 0; k < node_->outputs.size(); ++k) {
    if (node_->outputs[k].empty() || !readers(node_->outputs[k])) continue;
    op.output = k;
    result(add("OnnxOp", {{"node", op.text()}}, from, weights), k);
  }
}

void Importer::step(const OnnxNode& node) {
  node_ = &node;
  bool known = true, constants = true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!has(i)) continue;
    const Value* v = find(node.inputs[i]);
    known &= v != nullptr;
    constants &= v && !v->dynamic();
  }
  if (!known) return;  // behind a node that is told of
  try {
    NoGrad off;
    if (constants || node.op_type == "Shape" || node.op_type == "Size") {
      std::vector<Tensor> inputs;
      for (size_t i = 0; i < node.inputs.size(); ++i) inputs.push_back(has(i) ? in(i).tensor : Tensor());
      std::vector<Tensor> out = run_onnx_node(node, inputs, onnx_.opset);
      for (size_t k = 0; k < out.size(); ++k) result({out[k], {}}, k);
      return;
    }
    if (!by_rule()) as_op();
  } catch (const Error& e) {
    Missing& m = missing_[node.op_type];
    if (m.count++ == 0) {
      m.why = e.message();
      m.node = node.name;
    }
  }
}

/// Layers that nothing leads on from, and their weights.
void Importer::drop_unread() {
  std::unordered_map<std::string, std::vector<std::string>> givers;
  for (const WireSpec& w : model_.wires) givers[w.to].push_back(w.from);
  std::unordered_set<std::string> read = {"output", "input"};
  for (std::vector<std::string> next = {"output"}; !next.empty();) {
    const std::string layer = std::move(next.back());
    next.pop_back();
    for (const std::string& from : givers[layer])
      if (read.insert(from).second) next.push_back(from);
  }
  std::erase_if(model_.layers, [&](const LayerSpec& l) { return !read.count(l.name); });
  std::erase_if(model_.wires, [&](const WireSpec& w) { return !read.count(w.from) || !read.count(w.to); });
  std::erase_if(weights_, [&](const auto& w) { return !read.count(w.first.substr(0, w.first.rfind('.'))); });
}

ImportedModel Importer::run() {
  // The first output goes on; what makes the others alone need be no layer.
  std::unordered_set<std::string> read;
  if (!onnx_.graph.outputs.empty()) read.insert(onnx_.graph.outputs[0].name);
  std::vector<bool> goes_on(onnx_.graph.nodes.size(), false);
  for (size_t i = goes_on.size(); i-- > 0;) {
    const OnnxNode& n = onnx_.graph.nodes[i];
    for (const std::string& out : n.outputs) goes_on[i] = goes_on[i] || read.contains(out);
    if (goes_on[i]) read.insert(n.inputs.begin(), n.inputs.end());
  }
  for (size_t i = 0; i < goes_on.size(); ++i)
    if (goes_on[i]) step(onnx_.graph.nodes[i]);
  if (!missing_.empty()) {
    std::string list;
    for (const auto& [op, m] : missing_)
      list += fmt::format("{}{}{}{}: {}", list.empty() ? "" : "; ", op,
                          m.node.empty() ? "" : fmt::format(" ('{}')", m.node),
                          m.count > 1 ? fmt::format(" and {} more", m.count - 1) : "", m.why);
    throw OnnxUnsupported("there is no layer for " + list,
                          "The model can be looked at, and run: tenon exec, or the page Run of the model file.");
  }
  const Value* out = onnx_.graph.outputs.empty() ? nullptr : find(onnx_.graph.outputs[0].name);
  if (!out || !out->dynamic()) throw OnnxUnsupported("its output does not depend on its input");
  if (onnx_.graph.outputs.size() > 1)
    note(fmt::format("Of its {} outputs the first, {}, goes on.", onnx_.graph.outputs.size(),
                     onnx_.graph.outputs[0].name));
  model_.wires.push_back({out->layer, 0, "output", 0});
  model_.layers.push_back({"output", "Output", {}, 0, 0});
  drop_unread();
  ImportedModel made;
  made.nodes = static_cast<int64_t>(onnx_.graph.nodes.size());
  made.op_layers =
      std::count_if(model_.layers.begin(), model_.layers.end(), [](auto& l) { return l.type == "OnnxOp"; });
  try {
    GraphModule whole(model_, {DeviceType::meta});
    for (const nn::Named& n : whole.state_dict()) {
      const auto it = weights_.find(n.name);
      if (it == weights_.end()) throw Error("nothing of the file is the weight " + n.name);
      if (!(it->second.size() == n.tensor.size()))
        throw Error(fmt::format("the weight {} has size {}, the file's {}", n.name, to_string(n.tensor.size()),
                                to_string(it->second.size())));
      made.weights.emplace_back(n.name, it->second);
    }
  } catch (const Error& e) {
    throw OnnxUnsupported(
        fmt::format("as layers it does not take a batch of another size than {}: {}", batch_, e.message()),
        "Export it with a batch axis that is free (torch.onnx.export: dynamic_axes or dynamic_shapes).");
  }
  made.widened = widened_;
  made.model = std::move(model_);
  made.notes = std::move(notes_);
  return made;
}

ImportedModel import_model(const OnnxModel& onnx, const std::string& name, const std::vector<int64_t>& sample) {
  const AllocationLimit bound(tensor_bound({}));
  return Importer(onnx, name, sample).run();
}

}  // namespace tenon::formats
