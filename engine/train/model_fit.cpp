#include "engine/train/model_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/model/examine.h"
#include "engine/model/graph_module.h"
#include "engine/model/layer_sizes.h"
#include "engine/train/recipe.h"
#include "engine/train/task.h"

namespace tenon {
namespace {

/// Empty where the model can learn from the data.
std::string misfit(const ModelSpec& model, const Recipe& recipe, const data::Dataset& train, std::string& hint) {
  try {
    const GraphModule trial(model, {DeviceType::meta});
    Task(recipe, train, trial.input(), trial.output());
    return {};
  } catch (const Error& e) {
    hint = e.hint();
    return e.message();
  }
}

class Mender {
 public:
  Mender(const ModelSpec& model, const Recipe& recipe, const data::Dataset& train)
      : recipe_(recipe), train_(train), model_(model) {}

  void mend_ends() {
    for (LayerSpec& l : model_.layers)
      if (l.type == "Input") {
        const Meta sample = train_.input();
        give(l, "shape", std::vector<int64_t>(sample.shape.begin(), sample.shape.end()));
        give(l, "dtype", std::string(name(sample.dtype)));
        mend_tokens(l.name);
      }
    mend_last();
  }
  /// Sizes of what arrives that were said for other samples: what is there is found by itself.
  void mend_between() {
    for (size_t tries = 0; tries < model_.layers.size(); ++tries) {
      const std::vector<LayerReport> reports = examine(model_, 2);
      const auto bad = std::find_if(reports.begin(), reports.end(), [](const auto& r) { return !r.error.empty(); });
      if (bad == reports.end()) return;
      LayerSpec* layer = model_.find(bad->layer);
      bool changed = false;
      for (const char* attr : {"in_features", "in_channels", "num_features", "input_size"})
        if (const AttrValue* said = layer ? layer->find(attr) : nullptr; said && *said != AttrValue{int64_t{0}})
          changed |= give(*layer, attr, int64_t{0});
      if (!changed) return;
    }
  }
  ModelSpec& model() { return model_; }
  std::vector<ModelFit::Change>& changes() { return changes_; }

 private:
  bool give(LayerSpec& layer, const char* attr, AttrValue value) {
    const LayerInfo* info = find_layer_type(layer.type);
    const AttrValue* said = layer.find(attr);
    AttrValue now = value;
    if (said) {
      now = *said;
    } else if (info) {
      const auto def =
          std::find_if(info->attrs.begin(), info->attrs.end(), [&](const auto& a) { return a.name == attr; });
      if (def == info->attrs.end()) return false;
      now = def->fallback;
    }
    if (now == value) return false;
    changes_.push_back({layer.name, attr, attr_text(now), attr_text(value)});
    set_anyway(layer, attr, std::move(value));
    return true;
  }
  void mend_tokens(const std::string& input) {
    if (train_.task() != "language") return;
    for (const WireSpec& w : model_.wires)
      if (w.from == input)
        if (LayerSpec* reader = model_.find(w.to); reader && reader->type == "Embedding")
          give(*reader, "num_embeddings", train_.classes());
  }
  /// The last layer that makes channels, which layers without any of their own may follow.
  void mend_last() {
    const bool itself = recipe_.text("data.target") == "input";
    const Shape target = itself ? train_.input().shape : train_.target().shape;
    const int64_t wanted = train_.classes() > 0 && !itself ? train_.classes() : target.n > 0 ? target[0] : 1;
    std::string here;
    for (const LayerSpec& l : model_.layers)
      if (l.type == "Output") here = l.name;
    std::set<std::string> seen;
    while (seen.insert(here).second) {
      std::vector<std::string> from;
      for (const WireSpec& w : model_.wires)
        if (w.to == here) from.push_back(w.from);
      if (from.size() != 1) return;
      here = from[0];
      LayerSpec* layer = model_.find(here);
      if (!layer || layer->type == "Input") return;
      if (const char* attr = channels_attr(*layer); *attr) {
        give(*layer, attr, wanted);
        return;
      }
    }
  }

  const Recipe& recipe_;
  const data::Dataset& train_;
  ModelSpec model_;
  std::vector<ModelFit::Change> changes_;
};

}  // namespace

std::string ModelFit::changes_text() const {
  std::string text;
  for (const Change& c : changes)
    text += fmt::format("{}{}.{} {} → {}", text.empty() ? "" : ", ", c.layer, c.attr, c.from, c.to);
  return text;
}

ModelFit fit_model(const ModelSpec& model, const Recipe& recipe, const data::Dataset& train) {
  ModelFit fit{.mended = model};
  fit.bare = std::all_of(model.layers.begin(), model.layers.end(),
                         [](const LayerSpec& l) { return l.type == "Input" || l.type == "Output"; });
  fit.problem = misfit(model, recipe, train, fit.hint);
  if (fit.problem.empty()) return fit;
  Mender mender(model, recipe, train);
  mender.mend_ends();
  mender.mend_between();
  std::string ignored;
  // Of a model without layers the input is right at least, and layers can be built behind it.
  if (!fit.bare && !misfit(mender.model(), recipe, train, ignored).empty()) return fit;
  fit.mended = std::move(mender.model());
  fit.changes = std::move(mender.changes());
  return fit;
}

}  // namespace tenon
