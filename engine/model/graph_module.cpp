#include "engine/model/graph_module.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/state.h"
#include "engine/model/shared_layer.h"
#include "engine/nn/checkpoint.h"
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
  std::map<std::string, LayerMake> makes;
  std::map<std::string, std::shared_ptr<nn::Module>> modules;
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
        result_ = static_cast<int>(i);
        output_ = in[0].meta();
        output_.device = {};
        if (output_.shape.n > 0) output_.shape.erase(0);
      } else {
        std::vector<Meta> metas;
        for (const Tensor& t : in) metas.push_back(t ? t.meta() : Meta{});
        std::vector<Attr> resolved;
        const auto trial = make_layer(layer, metas, {DeviceType::meta}, &resolved);
        values.push_back((*trial)(in));
        makes.emplace(layer.name, LayerMake(layer, std::move(resolved), *trial));
        auto module = layer.shares.empty() ? make_layer(layer, metas, device) : std::make_shared<SharedLayer>();
        step.module = module.get();
        modules[layer.name] = module;
        add_child(layer.name, std::move(module));
      }
      steps_.push_back(std::move(step));
      last_use.push_back(-1);
    } catch (const Error& e) {
      throw e.in("layer " + layer.name);
    }
  }
  // Behind all others: who has the weights may come behind who shares them.
  for (const LayerSpec* layer : wiring.order) {
    if (layer->shares.empty() || !makes.contains(layer->name)) continue;
    try {
      const LayerSpec& owner = owner_of(spec, *layer);
      const auto made = makes.find(owner.name);
      if (made == makes.end()) throw Error(owner.type + " \"" + owner.name + "\" has no weights to share");
      check_sharing(makes.at(layer->name), made->second);
      static_cast<SharedLayer&>(*modules.at(layer->name)).set_owner(modules.at(owner.name));
    } catch (const Error& e) {
      throw e.in("layer " + layer->name);
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
  if (stretches_.empty() || !training() || !grad_enabled()) {
    run(0, static_cast<int>(steps_.size()), x, values);
    return values[static_cast<size_t>(result_)];
  }
  for (const Stretch& s : stretches_) {
    std::vector<Tensor> taken;
    for (int t : s.takes) taken.push_back(values[static_cast<size_t>(t)]);
    const bool last = &s == &stretches_.back();
    const std::vector<Tensor> given =
        last ? run(s, x, taken)
             : nn::checkpoint([this, &s, x](const std::vector<Tensor>& in) { return run(s, x, in); }, taken);
    taken.clear();
    for (int i = s.begin; i < s.end; ++i)
      for (int t : steps_[static_cast<size_t>(i)].last) values[static_cast<size_t>(t)].reset();
    for (size_t i = 0; i < s.gives.size(); ++i) values[static_cast<size_t>(s.gives[i])] = given[i];
  }
  return values[static_cast<size_t>(result_)];
}

/// Steps of a stretch (or of all). What a step gives is let go behind the last step that takes it, but for the result.
void GraphModule::run(int begin, int end, const Tensor& x, std::vector<Tensor>& values) const {
  std::vector<Tensor> in;
  for (int i = begin; i < end; ++i) {
    const Step& step = steps_[static_cast<size_t>(i)];
    in.clear();
    for (int s : step.inputs) in.push_back(s < 0 ? Tensor() : values[static_cast<size_t>(s)]);
    for (int s : step.last) values[static_cast<size_t>(s)].reset();
    Tensor& out = values[static_cast<size_t>(i)];
    if (step.module)
      out = (*step.module)(in);
    else
      out = in.empty() ? x : in[0];
  }
}

std::vector<Tensor> GraphModule::run(const Stretch& s, const Tensor& x, const std::vector<Tensor>& taken) const {
  std::vector<Tensor> values(steps_.size()), given;
  for (size_t i = 0; i < taken.size(); ++i) values[static_cast<size_t>(s.takes[i])] = taken[i];
  run(s.begin, s.end, x, values);
  for (int g : s.gives) given.push_back(values[static_cast<size_t>(g)]);
  return given;
}

GraphModule::Stretch GraphModule::stretch(int begin, int end) const {
  Stretch s{begin, end, {}, {}};
  const auto note = [](std::vector<int>& list, int step) {
    if (std::find(list.begin(), list.end(), step) == list.end()) list.push_back(step);
  };
  for (int i = begin; i < static_cast<int>(steps_.size()); ++i)
    for (int from : steps_[static_cast<size_t>(i)].inputs) {
      if (from < 0) continue;
      if (i < end && from < begin) note(s.takes, from);
      if (i >= end && from >= begin && from < end) note(s.gives, from);
    }
  if (result_ >= begin && result_ < end) note(s.gives, result_);
  return s;
}

void GraphModule::recompute(int64_t stretches) {
  stretches_.clear();
  int64_t layers = 0, passed = 0;
  for (const Step& s : steps_) layers += s.module != nullptr;
  const int64_t count = std::min(stretches, layers);
  if (count < 2) return;
  int begin = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    passed += steps_[i].module != nullptr;
    const auto done = static_cast<int64_t>(stretches_.size());
    if (done + 1 < count && steps_[i].module && passed * count >= (done + 1) * layers) {
      stretches_.push_back(stretch(begin, static_cast<int>(i) + 1));
      begin = static_cast<int>(i) + 1;
    }
  }
  stretches_.push_back(stretch(begin, static_cast<int>(steps_.size())));
}

}  // namespace tenon
