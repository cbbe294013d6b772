#include "engine/model/examine.h"

#include <map>
#include <unordered_map>

#include "core/error.h"
#include "core/state.h"
#include "engine/model/shared_layer.h"
#include "engine/nn/module.h"
#include "engine/op/op.h"
#include "engine/spec/layer_registry.h"
#include "engine/spec/model_spec.h"
#include "engine/spec/wiring.h"

namespace tenon {

struct Examiner::Known {
  struct Tried {
    LayerReport report;
    std::vector<std::string> parameters;  ///< without the layer's name
    LayerMake make;                       ///< of no layer
    Tensor out;
  };
  std::unordered_map<std::string, Tried> tried;
};

namespace {

std::string type_text(const Tensor& t) { return std::string(name(t.dtype())) + " " + to_string(t.size()); }

struct FlopCounter : OpObserver {
  double flops = 0;
  void after(const Call& call, int64_t, int64_t) override { flops += cost_of(call).flops; }
};

void fail(LayerReport& r, const Error& e) {
  r.error = e.message();
  r.hint = e.hint();
}

/// What decides what a layer does to shapes: its type and attributes, and the layout of what it reads.
std::string key_of(const LayerSpec& layer, const std::vector<Tensor>& in, bool train) {
  std::string key = layer.type;
  for (const Attr& a : layer.attrs) key += "\n" + a.name + "=" + attr_text(a.value);
  for (const Tensor& t : in) key += t ? "\n" + type_text(t) + to_string(t.stride()) : "\n-";
  return key + (train ? "\ntrain" : "");
}

Examiner::Known::Tried try_layer(const LayerSpec& layer, const std::vector<Tensor>& in, bool train) {
  Examiner::Known::Tried t;
  std::vector<Meta> metas;
  for (const Tensor& x : in) metas.push_back(x ? x.meta() : Meta{});
  auto module = make_layer(layer, metas, {DeviceType::meta}, &t.report.resolved);
  module->train(train);
  t.report.parameters = module->parameter_count();
  for (const nn::Named& p : module->parameters()) t.parameters.push_back(p.name);
  t.make = LayerMake(layer, t.report.resolved, *module);
  FlopCounter counter;
  ObserveScope observe(counter);
  t.out = (*module)(in);
  t.report.flops = counter.flops;
  return t;
}

}  // namespace

Examiner::Examiner() : known_(std::make_unique<Known>()) {}
Examiner::~Examiner() = default;

std::vector<LayerReport> examine(const ModelSpec& spec, int64_t batch) { return Examiner().examine(spec, batch); }

std::vector<LayerReport> Examiner::examine(const ModelSpec& spec, int64_t batch) {
  NoGrad no_grad;
  PhaseScope build(Phase::build);
  constexpr size_t kMostKnown = 20'000;
  if (known_->tried.size() > kMostKnown) known_->tried.clear();
  uint32_t seq = t_state.origin.seq;
  std::vector<LayerReport> reports(spec.layers.size());
  for (size_t i = 0; i < spec.layers.size(); ++i) reports[i].layer = spec.layers[i].name;
  auto report_of = [&](const LayerSpec& l) -> LayerReport& {
    return reports[static_cast<size_t>(&l - spec.layers.data())];
  };
  try {
    Wiring wiring(spec);
    std::map<const LayerSpec*, Tensor> values;
    std::map<const LayerSpec*, LayerMake> makes;
    for (const LayerSpec* layer : wiring.order) {
      LayerReport& report = report_of(*layer);
      try {
        std::vector<Tensor> in;
        bool complete = true;  // a layer behind a faulty one has no fault of its own
        for (const LayerSpec* from : wiring.inputs_of(*layer)) {
          if (!from) {
            in.emplace_back();
            continue;
          }
          auto found = values.find(from);
          complete &= found != values.end();
          if (found != values.end()) in.push_back(found->second);
        }
        if (!complete) continue;
        for (const Tensor& t : in) report.inputs.push_back(t ? type_text(t) : "");
        if (layer->type == "Output") continue;
        Tensor out;
        if (layer->type == "Input") {
          out = with_batch(input_meta(*layer), batch);
        } else {
          std::string key = key_of(*layer, in, batch > 1);
          auto known = known_->tried.find(key);
          if (known == known_->tried.end()) {
            Known::Tried tried = try_layer(*layer, in, batch > 1);  // one that fails is not kept: its error may name it
            known = known_->tried.emplace(std::move(key), std::move(tried)).first;
          }
          const Known::Tried& tried = known->second;
          LayerMake& make = makes[layer] = tried.make;
          make.layer = layer;
          report.has_weights = !make.sizes.empty();
          report.parameters = layer->shares.empty() ? tried.report.parameters : 0;
          report.flops = tried.report.flops;
          report.resolved = tried.report.resolved;
          for (const std::string& p : tried.parameters)
            if (layer->shares.empty()) report.parameter_names.push_back(layer->name + "." + p);
          out = tried.out;
        }
        report.outputs.push_back(type_text(out));
        report.output_bytes = static_cast<int64_t>(out.nbytes());
        values[layer] = out;
      } catch (const Error& e) {
        fail(report, e);
      }
    }
    for (const auto& [layer, make] : makes) {
      if (layer->shares.empty()) continue;
      try {
        const auto owner = makes.find(&owner_of(spec, *layer));
        if (owner != makes.end()) check_sharing(make, owner->second);  // else it has a fault of its own
      } catch (const Error& e) {
        fail(report_of(*layer), e);
      }
    }
  } catch (const Error& e) {
    // The wires themselves: said at every layer the message names, or else at the first.
    bool said = false;
    for (size_t i = 0; i < spec.layers.size(); ++i)
      if (e.message().find("\"" + spec.layers[i].name + "\"") != std::string::npos) {
        fail(reports[i], e);
        said = true;
      }
    if (!said && reports.empty()) reports.push_back({});
    if (!said) fail(reports[0], e);
  }
  t_state.origin.seq = seq;
  return reports;
}

void forget_idle_shares(ModelSpec& spec, const std::vector<LayerReport>& reports) {
  for (size_t i = 0; i < spec.layers.size(); ++i)
    if (!reports[i].has_weights && !reports[i].outputs.empty()) spec.layers[i].shares.clear();
}

}  // namespace tenon
