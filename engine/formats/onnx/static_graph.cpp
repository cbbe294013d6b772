#include "engine/formats/onnx/static_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/state.h"
#include "engine/formats/onnx/run.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon::formats {
namespace {

/// One run on zeros. Values that nothing reads any more are let go, as in any run.
class StaticRun {
 public:
  StaticRun(const OnnxModel& model, const std::vector<Shape>& sizes, Folded folded) : model_(model), folded_(folded) {
    graph_.opset = model.opset;
    for (const auto& [name, tensor] : model.graph.initializers) constant(name, tensor);
    size_t next = 0;
    for (const OnnxValue& v : model.graph.inputs) {
      if (numbers_.contains(v.name)) continue;
      if (v.form != OnnxValue::Form::tensor || !v.typed || next >= sizes.size())
        throw Error(fmt::format("its input {} is no tensor of a known type and size", v.name));
      graph_.inputs.push_back(add(v.name, zeros(sizes[next++], v.dtype)));
    }
    for (const OnnxNode& n : model.graph.nodes)
      for (const std::string& in : n.inputs) ++readers_[in];
    for (const OnnxValue& v : model.graph.outputs) ++readers_[v.name];
  }

  StaticGraph run() {
    for (const OnnxNode& n : model_.graph.nodes) step(n);
    for (const OnnxValue& v : model_.graph.outputs) graph_.outputs.push_back(numbers_.at(v.name));
    return std::move(graph_);
  }

 private:
  /// What is made of it is a view of it where it shares its memory, and then counts from its first element.
  static Tensor as_made(const Tensor& t) {
    return t.is_contiguous() && t.offset() == 0 ? t : clone(t, Order::contiguous);
  }

  int add(const std::string& name, const Tensor& t) {
    const int number = static_cast<int>(graph_.values.size());
    graph_.values.push_back({name, t.dtype(), t.size(), {}});
    tensors_.push_back(as_made(t));
    numbers_[name] = number;
    return number;
  }
  void constant(const std::string& name, const Tensor& t) {
    const int number = add(name, t);
    graph_.values[static_cast<size_t>(number)].constant = tensors_[static_cast<size_t>(number)];
  }

  void step(const OnnxNode& n) {
    StaticNode made{&n, {}, -1};
    std::vector<Tensor> in;
    bool known = true, sizes_known = true;
    for (const std::string& name : n.inputs) {
      const int number = name.empty() ? -1 : numbers_.at(name);
      made.inputs.push_back(number);
      in.push_back(number < 0 ? Tensor() : tensors_[static_cast<size_t>(number)]);
      const bool constant = number < 0 || graph_.values[static_cast<size_t>(number)].constant;
      known = known && constant;
      sizes_known = sizes_known && (constant || in.size() == 1);
    }
    const std::vector<Tensor> out = run_onnx_node(n, in, model_.opset);
    for (size_t k = 1; k < n.outputs.size(); ++k)
      if (readers_.contains(n.outputs[k]))
        throw OnnxUnsupported(fmt::format("{} '{}': its output {} is read", n.op_type, n.name, k));
    const Tensor& y = out.at(0);
    if (known && folded_ == Folded::yes) {
      constant(n.outputs[0], y);
    } else {
      if (sizes_known && in[0] && y.storage() == in[0].storage()) made.view = y.layout();
      made.output = add(n.outputs[0], y);
      graph_.nodes.push_back(std::move(made));
    }
    for (const std::string& name : n.inputs)
      if (!name.empty() && --readers_[name] == 0) tensors_[static_cast<size_t>(numbers_.at(name))].reset();
  }

  const OnnxModel& model_;
  const Folded folded_;
  StaticGraph graph_;
  std::vector<Tensor> tensors_;  ///< of the values, while they are read
  std::unordered_map<std::string, int> numbers_, readers_;
};

}  // namespace

std::vector<Shape> sizes_at_batch(const OnnxModel& model, int64_t batch) {
  std::vector<Shape> sizes;
  for (const OnnxValue& v : model.graph.inputs) {
    if (model.graph.initializer(v.name)) continue;
    Shape s;
    for (const OnnxDim& d : v.shape) {
      if (d.value < 0 && s.n > 0) throw OnnxUnsupported("its input " + v.name + " leaves a size open");
      s.push_back(d.value < 0 ? batch : d.value);
    }
    sizes.push_back(s);
  }
  return sizes;
}

StaticGraph static_graph(const OnnxModel& model, const std::vector<Shape>& sizes, Folded folded) {
  const NoGrad off;
  return StaticRun(model, sizes, folded).run();
}

}  // namespace tenon::formats
