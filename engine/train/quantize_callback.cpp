// A callback that lets layers compute on the grids of few bits while they train.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/dry_device.h"
#include "core/error.h"
#include "core/name_pattern.h"
#include "engine/autograd/autograd.h"
#include "engine/formats/quant_grid.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/reduce.h"
#include "engine/spec/model_spec.h"
#include "engine/train/callback.h"

// Note [Quantizing while training]
// Jacob et al.: Quantization and training of neural networks for efficient integer-arithmetic-only inference (2018).
// Convolutions and linear layers read their weights and their input rounded to the grids that a quantized model has;
// gradients go straight through (fake_quantize()). A weight's grid follows the weight. That of an input follows an
// average over the steps of the least and the largest value of the batch. Those are taken while a step computes and
// averaged when its update is made: all that is computed within a step, again for the sake of memory or in parts of a
// batch, has the same grids. The parameters stay in f32; the export rounds them as the layers did.
namespace tenon {
namespace {

using Ends = std::pair<double, double>;

struct InputRange {
  std::optional<Ends> average, seen;  ///< `seen`: in this step
};

struct QuantizeState {
  int64_t weight_bits = 8, activation_bits = 8;
  bool active = false;
  std::map<std::string, InputRange> ranges;

  void see(const std::string& layer, const Tensor& x) {
    if (x.is_meta() || is_dry(x.device()) || x.numel() == 0) return;
    const NoGrad off;
    const Tensor plain = detach(x);
    const Ends e{item(amin(plain)), item(amax(plain))};
    if (!std::isfinite(e.first) || !std::isfinite(e.second)) return;
    std::optional<Ends>& seen = ranges[layer].seen;
    seen = seen ? Ends{std::min(seen->first, e.first), std::max(seen->second, e.second)} : e;
  }
  Tensor rounded_input(const std::string& layer, const Tensor& x) const {
    const auto at = ranges.find(layer);
    if (!active || at == ranges.end() || !at->second.average) return x;
    const auto [lo, hi] = *at->second.average;
    const formats::QuantGrid g = formats::asymmetric_grid(lo, hi, static_cast<int>(activation_bits));
    return fake_quantize(x, scalar_like(g.scale, x), g.lo - g.zero, g.hi - g.zero);
  }
  /// As formats::quantize_channels() rounds it.
  Tensor rounded_weight(const Tensor& w) const {
    const double most = (1 << (weight_bits - 1)) - 1;
    Dims axes;
    for (int i = 1; i < w.ndim(); ++i) axes.push_back(i);
    Tensor scale;
    {
      const NoGrad off;
      scale = div(amax(abs(detach(w)), axes, true), most);
      constexpr double kLeast = 1.17549435082228751e-38;  // of a float that divides
      scale = where(ge(scale, kLeast), scale, scalar_like(1, scale));
    }
    return fake_quantize(w, scale, -most, most);
  }
};

/// What one layer was given, to be taken away again.
struct HookedLayer {
  nn::Module* layer;
  int hook;
  bool rounds_weight = false;
};

class QuantizeInTraining : public Callback {
 public:
  QuantizeInTraining(QuantizeState s, double momentum, int64_t after, std::vector<std::string> layers)
      : state_(std::make_shared<QuantizeState>(std::move(s))),
        momentum_(momentum),
        after_(after),
        layers_(std::move(layers)) {}
  ~QuantizeInTraining() override { detach(); }

  bool attach(const std::shared_ptr<nn::Module>& model) override {
    detach();
    model_ = model;
    for (auto& [path, layer] : model->named_modules()) {
      if (std::find(layers_.begin(), layers_.end(), path) == layers_.end()) continue;
      const auto before = [state = state_, name = path](nn::Module& m, std::vector<Tensor>& inputs) {
        if (m.training()) state->see(name, inputs.at(0));
        inputs[0] = state->rounded_input(name, inputs[0]);
      };
      hooked_.push_back({layer, layer->add_forward_pre_hook(before)});
    }
    round_weights();
    return !hooked_.empty();
  }
  void detach() override {
    if (const auto model = model_.lock())
      for (const HookedLayer& h : hooked_) {
        h.layer->remove_hook(h.hook);
        if (h.rounds_weight) h.layer->end_stand_in("weight");
      }
    hooked_.clear();
    model_.reset();
  }

  void on_update(const std::vector<nn::Named>&, int64_t step) override {
    for (auto& [name, r] : state_->ranges) {
      if (!r.seen) continue;
      r.average = r.average ? Ends{momentum_ * r.average->first + (1 - momentum_) * r.seen->first,
                                   momentum_ * r.average->second + (1 - momentum_) * r.seen->second}
                            : *r.seen;
      r.seen.reset();
    }
    state_->active = step >= after_;
    round_weights();
  }

  const formats::TrainedGrids* trained_grids() const override {
    if (!state_->active) return nullptr;
    grids_ = {static_cast<int>(state_->weight_bits), static_cast<int>(state_->activation_bits)};
    for (const auto& [name, r] : state_->ranges)
      if (r.average) grids_.inputs[name] = *r.average;
    return &grids_;
  }

  nlohmann::json state() const override {
    const auto ends = [](const std::optional<Ends>& e) { return e ? nlohmann::json(*e) : nlohmann::json(); };
    nlohmann::json j = {{"active", state_->active}, {"ranges", nlohmann::json::object()}};
    for (const auto& [name, r] : state_->ranges) j["ranges"][name] = {ends(r.average), ends(r.seen)};
    return j;
  }
  void load(const nlohmann::json& state) override {
    const Error other("the checkpoint has no ranges of the callback quantize");
    std::map<std::string, InputRange> ranges;
    bool active = false;
    if (!state.is_null()) {
      if (!state.is_object() || !state.contains("active") || !state["active"].is_boolean() ||
          !state.contains("ranges") || !state["ranges"].is_object())
        throw other;
      const auto ends = [&](const nlohmann::json& e) -> std::optional<Ends> {
        if (e.is_null()) return {};
        if (!e.is_array() || e.size() != 2 || !e[0].is_number() || !e[1].is_number()) throw other;
        return Ends{e[0].get<double>(), e[1].get<double>()};
      };
      for (const auto& [name, r] : state["ranges"].items()) {
        if (!r.is_array() || r.size() != 2) throw other;
        if (std::find(layers_.begin(), layers_.end(), name) != layers_.end()) ranges[name] = {ends(r[0]), ends(r[1])};
      }
      active = state["active"].get<bool>();
    }
    state_->ranges = std::move(ranges);
    state_->active = active;
    round_weights();
  }

 private:
  /// What stands in for a weight is there while it is rounded alone.
  void round_weights() {
    for (HookedLayer& h : hooked_) {
      if (h.rounds_weight == state_->active) continue;
      if (state_->active)
        h.layer->stand_in("weight", [state = state_](const Tensor& w) { return state->rounded_weight(w); });
      else
        h.layer->end_stand_in("weight");
      h.rounds_weight = state_->active;
    }
  }

  std::shared_ptr<QuantizeState> state_;  ///< hooks have it too
  double momentum_;
  int64_t after_;
  std::vector<std::string> layers_;
  std::weak_ptr<nn::Module> model_;
  std::vector<HookedLayer> hooked_;
  mutable formats::TrainedGrids grids_;
};

/// Layers with a weight whose first axis is that of their outputs, which multiplies what they read.
constexpr const char* kRounded[] = {"Conv1d", "Conv2d", "Conv3d", "Linear"};

std::unique_ptr<Callback> make_quantize(const AttrValues& v, const CallbackRun& run) {
  std::string text = v.text("layers");
  std::replace(text.begin(), text.end(), ',', ';');
  const std::vector<std::string> patterns = split_list(text);
  std::vector<std::string> layers;
  if (run.model)
    for (const LayerSpec& l : run.model->layers)
      if (std::find(std::begin(kRounded), std::end(kRounded), l.type) != std::end(kRounded) &&
          std::any_of(patterns.begin(), patterns.end(), [&](const auto& p) { return fits_pattern(p, l.name); }))
        layers.push_back(l.name);
  if (run.model && layers.empty())
    throw Error::usage(fmt::format("callbacks: quantize layers={}: the model has no convolution or linear layer of "
                                   "such a name",
                                   v.text("layers")),
                       "patterns are separated by commas, as in layers=features.*,classifier.0");
  QuantizeState s;
  s.weight_bits = v.integer("weight_bits"), s.activation_bits = v.integer("activation_bits");
  return std::make_unique<QuantizeInTraining>(std::move(s), v.number("momentum"), v.integer("after"),
                                              std::move(layers));
}

const bool registered_quantize = register_callback(
    {.name = "quantize",
     .title = "Quantize while it trains",
     .help = "lets convolutions and linear layers compute on the grids of few bits, so that the model learns to live "
             "with them; `tenon export --quantize int8-static` takes the grids over",
     .moment = Moment::update,
     .attrs = {{"weight_bits", int64_t{8}, 2, 8, "of the weights, symmetric, a grid an output", {}, "bits"},
               {"activation_bits", int64_t{8}, 2, 8, "of what the layers read, a grid a tensor", {}, "bits"},
               {"after", int64_t{1}, 1, 9e15, "steps in f32 before, which find the ranges", {}, "steps"},
               {"momentum", 0.95, 0, 1, "share of the old in the average that a range is"},
               {"layers", std::string("*"), 0, 0, "layers, separated by commas; * stands for any text", {}}},
     .make = make_quantize});

}  // namespace
}  // namespace tenon
