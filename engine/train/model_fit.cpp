#include "engine/train/model_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/model/examine.h"
#include "engine/model/graph_module.h"
#include "engine/model/layer_sizes.h"
#include "engine/spec/layer_registry.h"
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

namespace {

class LayerMender {
 public:
  LayerMender(const ModelSpec& model, const std::string& layer)
      : model_(model), layer_(layer), reports_(examiner_.examine(model, kBatch)) {}

  std::vector<Mend> result() {
    const LayerSpec* own = model_.find(layer_);
    const LayerInfo* info = own ? find_layer_type(own->type) : nullptr;
    if (!info || report_of(layer_).error.empty()) return {};
    follow_what_arrives(*own, *info);
    divide(*own);
    even_out_inputs(*own);
    pad(*own);
    if (info->inputs == 1) flatten(*own);
    return std::move(found_);
  }

 private:
  static constexpr int64_t kBatch = 2;
  const LayerReport& report_of(const std::string& layer) const {
    return *std::find_if(reports_.begin(), reports_.end(), [&](const LayerReport& r) { return r.layer == layer; });
  }
  /// Keeps an edit that makes the layer fit and breaks nothing.
  bool take(std::string words, ModelSpec changed) {
    const auto now = examiner_.examine(changed, kBatch);
    const auto own = std::find_if(now.begin(), now.end(), [&](const LayerReport& r) { return r.layer == layer_; });
    if (own == now.end() || !own->error.empty()) return false;
    // What was not reached before may have an error of its own; what worked must not.
    for (const LayerReport& r : now) {
      const auto was =
          std::find_if(reports_.begin(), reports_.end(), [&](const auto& b) { return b.layer == r.layer; });
      if (!r.error.empty() && (was == reports_.end() || (was->error.empty() && !was->outputs.empty()))) return false;
    }
    const bool there = std::any_of(found_.begin(), found_.end(), [&](const Mend& m) { return m.model == changed; });
    if (!there) found_.push_back({std::move(words), std::move(changed)});
    return true;
  }
  bool set(const std::string& layer, const char* attr, const AttrValue& value) {
    ModelSpec changed = model_;
    LayerSpec& l = *changed.find(layer);
    const AttrDef def = def_of(l, attr);
    const AttrValue was = l.find(attr) ? *l.find(attr) : def.fallback;
    if (was == value) return false;
    set_anyway(l, attr, value);
    return take(fmt::format("{}.{} {} → {}", layer, attr, attr_text(was), attr_text(value)), std::move(changed));
  }
  static AttrDef def_of(const LayerSpec& l, const std::string& attr) {
    for (const AttrDef& a : find_layer_type(l.type)->attrs)
      if (a.name == attr) return a;
    return {};
  }

  /// Sizes for which 0 stands for what arrives.
  void follow_what_arrives(const LayerSpec& own, const LayerInfo& info) {
    for (const AttrDef& def : info.attrs) {
      if (def.help.find("arrives") == std::string::npos || !own.find(def.name)) continue;
      if (std::holds_alternative<int64_t>(def.fallback)) set(layer_, def.name.c_str(), int64_t{0});
      if (const auto* sizes = std::get_if<std::vector<int64_t>>(own.find(def.name)))
        set(layer_, def.name.c_str(), std::vector<int64_t>(sizes->size(), 0));
    }
  }
  void divide(const LayerSpec& own) {
    for (const char* attr : {"num_heads", "nhead", "num_groups", "groups"})
      if (const AttrValue* said = own.find(attr); said && std::holds_alternative<int64_t>(*said))
        for (int64_t n = std::get<int64_t>(*said) - 1; n > 0; --n)
          if (set(layer_, attr, n)) break;
  }

  /// The layer that makes the channels of a value.
  std::string maker_of(std::string at) const {
    std::set<std::string> seen;
    while (seen.insert(at).second) {
      const LayerSpec* l = model_.find(at);
      if (!l || *channels_attr(*l)) return l ? at : std::string();
      std::vector<std::string> from;
      for (const WireSpec& w : model_.wires)
        if (w.to == at) from.push_back(w.from);
      if (from.empty()) return {};
      at = from[0];
    }
    return {};
  }
  /// "f32 [2, 64, 28, 28]" without the batch.
  static std::vector<int64_t> sizes_in(const std::string& port) {
    std::vector<int64_t> sizes;
    for (size_t at = port.find(", "); at != std::string::npos; at = port.find(", ", at + 1))
      sizes.push_back(std::atoll(port.c_str() + at + 2));
    return sizes;
  }
  void even_out_inputs(const LayerSpec& own) {
    std::vector<std::string> from;
    for (const WireSpec& w : model_.wires)
      if (w.to == own.name) from.push_back(w.from);
    for (const std::string& one : from)
      for (const std::string& other : from) {
        const std::string maker = maker_of(one);
        if (one == other || maker.empty() || report_of(other).outputs.empty()) continue;
        const char* attr = channels_attr(*model_.find(maker));
        const AttrValue* was = model_.find(maker)->find(attr);
        for (const int64_t n : sizes_in(report_of(other).outputs[0]))
          if (take(fmt::format("{}.{} {} → {}", maker, attr, was ? attr_text(*was) : "", n),
                   with_channels(model_, maker, n)))
            break;
      }
  }

  void pad(const LayerSpec& own) {
    const AttrValue* kernel = own.find("kernel_size");
    if (!kernel || !std::holds_alternative<std::vector<int64_t>>(*kernel) || def_of(own, "padding").name.empty())
      return;
    std::vector<int64_t> padding = std::get<std::vector<int64_t>>(*kernel);
    for (int64_t& p : padding) p /= 2;
    set(layer_, "padding", padding);
  }

  void flatten(const LayerSpec& own) {
    ModelSpec changed = model_;
    LayerSpec flat;
    flat.type = "Flatten";
    for (int i = 0; i == 0 || changed.find(flat.name); ++i) flat.name = "flatten" + (i ? std::to_string(i) : "");
    const auto in =
        std::find_if(changed.wires.begin(), changed.wires.end(), [&](const WireSpec& w) { return w.to == own.name; });
    if (in == changed.wires.end()) return;
    changed.wires.push_back({flat.name, 0, own.name, in->to_port});
    const auto first =
        std::find_if(changed.wires.begin(), changed.wires.end(), [&](const WireSpec& w) { return w.to == own.name; });
    first->to = flat.name, first->to_port = 0;
    flat.x = own.x, flat.y = own.y;
    const auto at = std::find_if(changed.layers.begin(), changed.layers.end(),
                                 [&](const LayerSpec& l) { return l.name == own.name; });
    const std::string words = fmt::format("Flatten in front of {}", own.name);
    changed.layers.insert(at, std::move(flat));
    take(words, std::move(changed));
  }

  const ModelSpec& model_;
  const std::string layer_;
  Examiner examiner_;
  const std::vector<LayerReport> reports_;
  std::vector<Mend> found_;
};

}  // namespace

std::vector<Mend> mends_of(const ModelSpec& model, const std::string& layer) {
  return model.find(layer) ? LayerMender(model, layer).result() : std::vector<Mend>();
}

std::optional<Mend> mend_of_edit(const ModelSpec& before, const ModelSpec& after) {
  if (before.layers.size() != after.layers.size() || before.wires != after.wires) return {};
  const LayerSpec *was = nullptr, *is = nullptr;
  for (const LayerSpec& l : after.layers) {
    const LayerSpec* old = before.find(l.name);
    if (!old) return {};
    if (*old == l) continue;
    if (is) return {};
    was = old, is = &l;
  }
  const char* attr = is ? channels_attr(*is) : "";
  const AttrValue *from = is ? was->find(attr) : nullptr, *to = is ? is->find(attr) : nullptr;
  if (!from || !to || *from == *to || !std::holds_alternative<int64_t>(*to)) return {};
  LayerSpec no_more = *was;
  set_anyway(no_more, attr, *to);
  if (!(no_more == *is)) return {};
  Mend mend;
  try {
    mend.model = with_channels(before, is->name, std::get<int64_t>(*to));
  } catch (const Error&) {  // heads that do not divide it, a model that was no whole one
    return {};
  }
  const auto others = std::count_if(mend.model.layers.begin(), mend.model.layers.end(), [&](const LayerSpec& l) {
    return l.name != is->name && !(*before.find(l.name) == l);
  });
  const auto fits = [](const LayerReport& r) { return r.error.empty(); };
  if (others == 0 || !std::ranges::all_of(examine(mend.model, 2), fits)) return {};
  mend.words = fmt::format("{}.{} {} → {}, and {} layer{} that go{} with it", is->name, attr, attr_text(*from),
                           attr_text(*to), others, others == 1 ? "" : "s", others == 1 ? "es" : "");
  return mend;
}

}  // namespace tenon
