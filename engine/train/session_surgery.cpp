// Going on from a step of a session of another model: see Note [Surgery].
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "core/backend.h"
#include "core/dry_device.h"
#include "engine/autograd/autograd.h"
#include "engine/op/autocast.h"
#include "engine/op/tf32.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "engine/spec/layer_registry.h"
#include "engine/train/freeze.h"
#include "engine/train/session_impl.h"

namespace tenon {
namespace {

/// Mean and variance of each channel, axis 1.
struct ChannelMoments {
  std::vector<double> mean, var;
  explicit ChannelMoments(const Tensor& given) {
    const Tensor x = clone(to_host(cast(detach(given), DType::f64)), Order::contiguous);
    const int64_t channels = x.size(1), inner = x.numel() / std::max<int64_t>(1, x.size(0) * channels);
    const double count = static_cast<double>(x.size(0) * inner);
    mean.assign(static_cast<size_t>(channels), 0.0);
    var = mean;
    const auto each = [&](const auto& take) {
      const double* v = x.data<double>();
      for (int64_t n = 0; n < x.size(0); ++n)
        for (size_t c = 0; c < mean.size(); ++c)
          for (int64_t i = 0; i < inner; ++i) take(c, *v++);
    };
    each([&](size_t c, double v) { mean[c] += v; });
    for (double& m : mean) m /= count;
    each([&](size_t c, double v) { var[c] += (v - mean[c]) * (v - mean[c]); });
    for (double& v : var) v /= count;
  }
};

void set_values(const Tensor& to, const std::vector<double>& values) {
  const Tensor t = empty({static_cast<int64_t>(values.size())}, DType::f64);
  std::copy(values.begin(), values.end(), t.data<double>());
  copy_(to, to_device(cast(t, to.dtype()), to.device()));
}

/// A norm with what it has to undo.
struct Undone {
  nn::Module* norm;
  int hook = 0;
  std::vector<double> gain = {}, mean = {}, var = {};

  void look(const Tensor& x, double eps) {
    ChannelMoments m(x);
    gain = m.var;
    for (double& g : gain) g = std::sqrt(g + eps);
    mean = std::move(m.mean);
    var = std::move(m.var);
  }
  void set() const {
    if (gain.empty()) return;  // nothing came by
    set_values(norm->own("weight"), gain);
    set_values(norm->own("bias"), mean);
    set_values(norm->own("running_mean"), mean);
    set_values(norm->own("running_var"), var);
  }
};

}  // namespace

std::vector<SurgeryRow> TrainingSession::branch(const Checkpoint& state, const Recipe& of, const ModelSpec& before) {
  GroupScope group(impl_->group);
  Surgery done = operate(before, impl_->spec, state, save(), impl_->seed);
  impl_->branch(done.state, of);
  impl_->callbacks.forget_others(impl_->trained);
  const Freeze anew(impl_->recipe.text("init.anew"), "init.anew");
  for (SurgeryRow& r : done.rows)
    if (r.after && anew.holds(r.tensor)) r.deed = SurgeryRow::Deed::begun, r.how = "as init.anew says";
  std::erase_if(done.norms, [&](const std::string& n) { return anew.holds(n + ".weight") || anew.holds(n + ".bias"); });
  impl_->undo_norms(done.norms);
  return std::move(done.rows);
}

void TrainingSession::Impl::undo_norms(const std::vector<std::string>& layers) {
  if (layers.empty() || is_dry(device)) return;
  const NoGrad off;
  const Tf32Scope products(recipe.flag("tf32"));
  data::Batch batch = loader->next();
  seek();
  if (batch.whole == 0) return;
  std::optional<KnownOnHost> known;
  bring(batch, known);
  std::map<std::string, Tensor> running;  // this pass moves those of other norms
  for (const nn::Named& b : model->buffers()) running[b.name] = clone(b.tensor);
  std::vector<std::unique_ptr<Undone>> undone;
  for (const auto& [path, module] : model->named_modules()) {
    if (std::find(layers.begin(), layers.end(), path) == layers.end()) continue;
    const LayerSpec& layer = *spec.find(path);
    const double eps = layer_values(layer, *find_layer_type(layer.type)).number("eps");
    Undone& one = *undone.emplace_back(std::make_unique<Undone>(Undone{module}));
    one.hook = module->add_forward_pre_hook([&one, eps](nn::Module&, std::vector<Tensor>& in) {
      one.look(in.at(0), eps);
      one.set();
    });
  }
  start_training();
  {
    ModuleScope root(0);
    nn::RandomScope random(random_state());
    std::optional<AutocastScope> autocast;
    if (low) autocast.emplace(*low);
    (*model)(batch.x);
  }
  for (const nn::Named& b : model->buffers()) copy_(b.tensor, running.at(b.name));
  for (const auto& one : undone) {
    one->norm->remove_hook(one->hook);
    one->set();  // the pass moved its running statistics too
  }
  if (!average) return;
  std::map<std::string, Tensor> now;
  for (const nn::Named& n : model->state_dict()) now[n.name] = n.tensor;
  for (const nn::Named& a : average->averages())
    if (std::find(layers.begin(), layers.end(), a.name.substr(0, a.name.rfind('.'))) != layers.end())
      copy_(a.tensor, now.at(a.name));
}

}  // namespace tenon
