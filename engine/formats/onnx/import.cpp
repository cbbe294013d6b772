#include "engine/formats/onnx/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <unordered_set>

#include "core/error.h"
#include "core/pool.h"
#include "core/state.h"
#include "core/utf8.h"
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

/// Where the file leaves it open, and the other one: numbers that hardly are another size of a model.
constexpr AtTwoBatches<int64_t> kBatch = {29, 31};

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

bool same_values(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.size() == b.size())) return false;
  const Tensor x = contiguous(a), y = contiguous(b);
  return std::memcmp(x.raw(), y.raw(), x.nbytes()) == 0;
}

/// Operators that repeat an input's single rows.
bool repeats_rows(const std::string& op) {
  static const std::unordered_set<std::string> all = {"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Where"};
  return all.contains(op);
}

std::vector<int64_t> whole_numbers(const Tensor& of) {
  const Tensor t = contiguous(cast(of, DType::i64));
  return {t.data<int64_t>(), t.data<int64_t>() + t.numel()};
}

std::string not_of_any_batch(int64_t batch, const std::string& why) {
  return fmt::format("as layers it does not take a batch of another size than {}: {}", batch, why);
}
constexpr const char* kFreeBatch =
    "Export it with a batch axis that is free (torch.onnx.export: dynamic_axes or dynamic_shapes).";

Tensor as_f32(const Tensor& t) { return contiguous(is_floating(t.dtype()) ? cast(t, DType::f32) : t); }

}  // namespace

bool register_import(const std::string& op_type, std::function<bool(Importer&)> make, Place place) {
  return rules().add({op_type, std::move(make)}, place);
}
const Registry<ImportRule>& import_rules() { return rules(); }

Importer::Importer(const OnnxModel& onnx, const std::string& name, const std::vector<int64_t>& sample) : onnx_(onnx) {
  const OnnxGraph& g = onnx.graph;
  model_.name = name;
  for (const auto& [weight, tensor] : g.initializers) values_[weight] = {tensor, {}, tensor};
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
  batch_ = kBatch;
  if (const int64_t said = input->shape[0].value; said > 0) {
    said_ = said;
    batch_ = {said, said == kBatch.at ? kBatch.again : kBatch.at};
  }
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
  const auto of_batch = [&](int64_t batch) {
    std::vector<int64_t> all = {batch};
    all.insert(all.end(), sizes.begin(), sizes.end());
    return empty(Shape(all), whole ? DType::i64 : DType::f32, {DeviceType::meta});
  };
  values_[input->name] = {of_batch(batch_.at), "input", of_batch(batch_.again)};
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
  if (!v || v->dynamic() || v->varies() || v->tensor.numel() != 1) return {};
  return item(v->tensor);
}
std::vector<int64_t> Importer::list(size_t i, const std::string& attribute,
                                    const std::vector<int64_t>& fallback) const {
  if (!has(i)) return node_->integers(attribute, fallback);
  if (in(i).dynamic()) throw Error(fmt::format("input {} is known only at a run", i));
  if (in(i).varies()) throw Error(fmt::format("input {} depends on the number of samples", i));
  return whole_numbers(in(i).tensor);
}

void Importer::read_as_batch(int64_t number) {
  if (written_for_ && *written_for_ != number)
    throw Error(fmt::format("its sizes are for {} samples, those of a node before it for {}", number, *written_for_));
  written_for_ = number;
  if (written_in_.empty() || written_in_.back() != node_) written_in_.push_back(node_);
}

std::vector<int64_t> Importer::sizes_of_any_batch() {
  const AtTwoBatches<Shape> from = {in(0).tensor.size(), in(0).again.size()};
  AtTwoBatches<std::vector<int64_t>> to;
  if (has(1))
    to = {whole_numbers(in(1).tensor), whole_numbers(in(1).again)};
  else
    to.at = to.again = node_->integers("shape");
  const bool reshape = node_->op_type == "Reshape";
  if (reshape && !node_->integer("allowzero", 0))
    for (size_t i = 0; i < std::min(to.at.size(), static_cast<size_t>(from.at.n)); ++i) {
      if (to.at[i] == 0) to.at[i] = from.at[static_cast<int>(i)];
      if (i < to.again.size() && to.again[i] == 0) to.again[i] = from.again[static_cast<int>(i)];
    }
  BatchSizes made = reshape ? reshape_of_any_batch(from, to, batch_) : expand_of_any_batch(from, to, batch_);
  if (made.written_for) read_as_batch(*made.written_for);
  return std::move(made.sizes);
}

std::vector<int64_t> Importer::sizes_behind_batch(size_t i) const {
  if (in(i).dynamic() || !in(i).varies()) return list(i, "");
  std::vector<int64_t> at = whole_numbers(in(i).tensor), again = whole_numbers(in(i).again);
  if (at.empty() || at.size() != again.size() || at[0] != batch_.at || again[0] != batch_.again ||
      !std::equal(at.begin() + 1, at.end(), again.begin() + 1))
    throw Error(fmt::format("input {} depends on the number of samples", i));
  return at;
}

Tensor Importer::row_of_samples(size_t i) {
  if (!has(i) || in(i).dynamic() || in(i).shape().n == 0) return {};
  const Value& v = in(i);
  const Tensor row = contiguous(narrow(v.tensor, 0, 0, 1));
  const int64_t rows = v.shape()[0];
  if (rows == 1 && !v.varies()) return row;
  if (v.varies() && (rows != batch_.at || v.again.size(0) != batch_.again)) return {};
  for (const Tensor& t : {v.tensor, v.again})
    for (int64_t k = 0; k < t.size(0); ++k)
      if (!same_values(contiguous(narrow(t, 0, k, 1)), row)) return {};
  if (!v.varies()) read_as_batch(rows);
  return row;
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
  std::vector<Tensor> in, again;
  for (const Value& v : from) {
    if (v.tensor && !v.dynamic()) throw Error("a constant where a layer's result is wanted");
    metas.push_back(v.tensor ? v.tensor.meta() : Meta{});
    in.push_back(v.tensor);
    again.push_back(v.again);
  }
  if (const LayerInfo* info = find_layer_type(type)) {  // the inputs that may be left out
    metas.resize(static_cast<size_t>(info->inputs));
    in.resize(metas.size());
    again.resize(metas.size());
  }
  NoGrad off;
  const auto made = make_layer(layer, metas, {DeviceType::meta});
  Value out{(*made)(in), layer.name, (*made)(again)};
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
  static const std::unordered_set<std::string> ask = {"Reshape", "Concat", "Resize", "LSTM", "GRU", "RNN"};
  for (size_t i = 0; i < node_->inputs.size(); ++i)  // the other rules take a constant for one of any batch
    if (has(i) && in(i).varies() && !ask.contains(node_->op_type)) return false;
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
  std::optional<Tensor> sizes;
  if ((node_->op_type == "Reshape" || node_->op_type == "Expand") && dynamic(0) && has(1) && !dynamic(1)) {
    const std::vector<int64_t> any = sizes_of_any_batch();
    sizes = empty({static_cast<int64_t>(any.size())}, DType::i64);
    std::copy(any.begin(), any.end(), sizes->data<int64_t>());
  }
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
    if (sizes && i == 1)
      value = *sizes;
    else if (v.varies() && repeats_rows(node_->op_type))
      value = row_of_samples(i);
    else if (v.varies())
      value.reset();
    if (!value) throw OnnxUnsupported(fmt::format("its input {} depends on the number of samples", i));
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
  for (size_t k = 0; k < node_->outputs.size(); ++k) {
    if (node_->outputs[k].empty() || !readers(node_->outputs[k])) continue;
    op.output = k;
    result(add("OnnxOp", {{"node", op.text()}}, from, weights), k);
  }
}

/// What the node at work makes of constants, at the one batch or `again` at the other.
std::vector<Tensor> Importer::computed(bool again) const {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < node_->inputs.size(); ++i)
    inputs.push_back(!has(i) ? Tensor() : again ? in(i).again : in(i).tensor);
  return run_onnx_node(*node_, inputs, onnx_.opset);
}

void Importer::step(const OnnxNode& node) {
  node_ = &node;
  bool known = true, constants = true, varies = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!has(i)) continue;
    const Value* v = find(node.inputs[i]);
    known &= v != nullptr;
    constants &= v && !v->dynamic();
    varies |= v && (v->dynamic() || v->varies());
  }
  if (!known) return;  // behind a node that is told of
  try {
    NoGrad off;
    if (constants || node.op_type == "Shape" || node.op_type == "Size") {
      const std::vector<Tensor> out = computed(false), again = varies ? computed(true) : out;
      for (size_t k = 0; k < out.size(); ++k)
        result({out[k], {}, out[k] && again[k] && !same_values(out[k], again[k]) ? again[k] : out[k]}, k);
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
  if (written_for_ && (out->shape()[0] != batch_.at || out->again.size(0) != batch_.again))
    throw OnnxUnsupported(not_of_any_batch(batch_.at, "its output is not one row a sample"), kFreeBatch);
  if (written_for_) {
    const size_t count = written_in_.size();
    const std::string& first = written_in_[0]->name.empty() ? written_in_[0]->op_type : written_in_[0]->name;
    note(fmt::format(
        "It was written for {} sample{}: that number in the sizes of {} node{} ({}{}) is read as the batch.",
        *written_for_, *written_for_ == 1 ? "" : "s", count, count == 1 ? "" : "s", first, count == 1 ? "" : ", ..."));
  }
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
    throw OnnxUnsupported(not_of_any_batch(batch_.at, e.message()), kFreeBatch);
  }
  made.widened = widened_;
  made.model = std::move(model_);
  made.notes = std::move(notes_);
  return made;
}

ImportedModel import_model(const OnnxModel& onnx, const std::string& name, const std::vector<int64_t>& sample) {
  expect_utf8(onnx.graph);  // a project keeps it as JSON
  const AllocationLimit bound(tensor_bound({}));
  return Importer(onnx, as_utf8(name), sample).run();
}

}  // namespace tenon::formats
