#include "engine/model/graph_module.h"

#include <map>

#include "core/error.h"
#include "core/state.h"
#include "engine/spec/layer_registry.h"
#include "engine/spec/wiring.h"

namespace tenon {

GraphModule::GraphModule(const ModelSpec& spec, Device device) : name_(spec.name.empty() ? "model" : spec.name) {
  PhaseScope build(Phase::build, Category::parameter);
  NoGrad no_grad;
  Wiring wiring(spec);
  std::map<std::string, int> step_of;
  std::vector<Tensor> values;  // meta tensors of a batch of 2, by step
  std::vector<int> last_use;
  for (size_t i = 0; i < wiring.order.size(); ++i) {
    const LayerSpec& layer = *wiring.order[i];
    step_of[layer.name] = static_cast<int>(i);
    try {
      Step step{nullptr, {}, {}};
      std::vector<Tensor> in;
      for (const LayerSpec* from : wiring.inputs_of(layer)) {
        if (!from) {
          step.inputs.push_back(-1);
          in.emplace_back();
          continue;
        }
        int source = step_of[from->name];
        step.inputs.push_back(source);
        in.push_back(values[static_cast<size_t>(source)]);
        last_use[static_cast<size_t>(source)] = static_cast<int>(i);
      }
      if (layer.type == "Input") {
        input_ = input_meta(layer);
        values.push_back(with_batch(input_, 2));
      } else if (layer.type == "Output") {
        values.push_back(in[0]);
        output_ = in[0].meta();
        output_.device = {};
        if (output_.shape.n > 0) output_.shape.erase(0);
      } else {
        std::vector<Meta> metas;
        for (const Tensor& t : in) metas.push_back(t ? t.meta() : Meta{});
        values.push_back((*make_layer(layer, metas, {DeviceType::meta}))(in));
        auto module = make_layer(layer, metas, device);
        step.module = module.get();
        add_child(layer.name, std::move(module));
      }
      steps_.push_back(std::move(step));
      last_use.push_back(-1);
    } catch (const Error& e) {
      throw e.in("layer " + layer.name);
    }
  }
  for (size_t i = 0; i < last_use.size(); ++i)
    if (last_use[i] >= 0) steps_[static_cast<size_t>(last_use[i])].last.push_back(static_cast<int>(i));
}

Tensor GraphModule::forward(const Tensor& x) {
  if (x.ndim() != input_.shape.n + 1)
    throw Error("the model takes a batch of samples of shape " + to_string(input_.shape) + ", not a tensor of size " +
                to_string(x.size()));
  for (int i = 0; i < input_.shape.n; ++i)
    if (x.size(i + 1) != input_.shape[i])
      throw Error("the model takes samples of shape " + to_string(input_.shape) + "; the batch has size " +
                  to_string(x.size()));
  std::vector<Tensor> values(steps_.size());
  Tensor result;
  std::vector<Tensor> in;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    in.clear();
    for (int s : step.inputs) in.push_back(s < 0 ? Tensor() : values[static_cast<size_t>(s)]);
    for (int s : step.last) values[static_cast<size_t>(s)].reset();
    if (step.module)
      values[i] = (*step.module)(in);
    else if (in.empty())
      values[i] = x;
    else
      result = in[0];
  }
  return result;
}

}  // namespace tenon
