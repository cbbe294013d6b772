#include "engine/model/new_layers.h"

#include <algorithm>
#include <set>

#include "engine/model/examine.h"
#include "engine/model/layer_sizes.h"
#include "engine/spec/attr.h"
#include "engine/spec/wiring.h"

namespace tenon {
namespace {

bool is_conv(const LayerSpec& l) { return l.type == "Conv1d" || l.type == "Conv2d" || l.type == "Conv3d"; }

/// Of nothing it makes nothing.
bool keeps_zero(const LayerSpec& l) {
  static const std::set<std::string> kAll = {"ReLU", "LeakyReLU", "PReLU", "ELU",   "SELU",      "CELU",    "GELU",
                                             "SiLU", "Mish",      "Tanh",  "ReLU6", "Hardswish", "Identity"};
  return kAll.contains(l.type) || l.type.find("Dropout") != std::string::npos;
}

class NewLayerFinder {
 public:
  NewLayerFinder(const ModelSpec& before, const ModelSpec& after)
      : wiring_(after), sizes_(tensor_sizes(after)), reports_(examine(after, 2)), after_(after) {
    for (const LayerSpec* l : Wiring(before).order) old_.insert(l->name + "\n" + l->type);
  }

  NewLayers result() {
    for (const LayerSpec* l : wiring_.order)
      if (l->type == "Add" && is_new(*l)) silence_branch_of(*l);
    // Before anything that reads it.
    for (const LayerSpec& l : after_.layers)
      if (is_new(l) && !l.off && l.type == "TransformerEncoderLayer" && flag(l, "norm_first"))
        for (const char* inner : {".self_attn.out_proj", ".linear2"}) found_.silent.push_back(l.name + inner);
    for (const LayerSpec* l : wiring_.order) {
      if (!is_new(*l) || in_branch_.contains(l->name)) continue;
      if (can_pass(*l)) found_.passes.push_back(l->name);
      if (l->type.starts_with("BatchNorm") && size(*l, "weight").n && size(*l, "running_mean").n)
        found_.norms.push_back(l->name);
    }
    return std::move(found_);
  }

 private:
  bool is_new(const LayerSpec& l) const { return !old_.contains(l.name + "\n" + l.type); }
  Shape size(const LayerSpec& l, const char* tensor) const {
    const auto at = sizes_.find(l.name + "." + tensor);
    return at == sizes_.end() ? Shape{} : at->second;
  }
  AttrValues values(const LayerSpec& l) const { return AttrValues(find_layer_type(l.type)->attrs, l.attrs, l.name); }
  bool flag(const LayerSpec& l, const char* name) const { return values(l).flag(name); }

  /// The new layers behind a port, one after the other, back to what was there or to where several values meet.
  std::vector<const LayerSpec*> branch_behind(const LayerSpec* at) const {
    std::vector<const LayerSpec*> branch;
    while (at && is_new(*at) && at->type != "Input") {
      std::set<const LayerSpec*> from;  // attention may read one value as queries, keys and values
      for (const LayerSpec* f : wiring_.inputs_of(*at))
        if (f) from.insert(f);
      if (from.size() != 1) break;
      branch.push_back(at);
      at = *from.begin();
    }
    return branch;
  }
  /// The modules to silence of the last layer with weights; empty where it cannot be.
  std::string last_weights(const std::vector<const LayerSpec*>& branch) const {
    for (const LayerSpec* l : branch) {
      if (size(*l, "out_proj.weight").n) return l->name + ".out_proj";
      if (l->type == "Linear" || is_conv(*l) || l->type.starts_with("BatchNorm"))
        return size(*l, "weight").n ? l->name : std::string();
      if (!keeps_zero(*l)) return {};
    }
    return {};
  }
  void silence_branch_of(const LayerSpec& add) {
    std::vector<std::vector<const LayerSpec*>> branches;
    for (const LayerSpec* from : wiring_.inputs_of(add)) branches.push_back(branch_behind(from));
    // One must stay: the branch that is silenced is the last that can be.
    for (size_t i = branches.size(); branches.size() == 2 && i-- > 0;) {
      const std::string last = last_weights(branches[i]);
      if (last.empty()) continue;
      found_.silent.push_back(last);
      for (const LayerSpec* l : branches[i]) in_branch_.insert(l->name);
      return;
    }
  }

  bool can_pass(const LayerSpec& l) const {
    const Shape w = size(l, "weight");
    if (l.type == "Linear") return w.n == 2 && w[0] >= w[1];
    if (!is_conv(l) || w.n < 3) return false;
    const AttrValues v = values(l);
    const int64_t groups = v.integer("groups"), in = w[1] * groups;
    for (int axis = 2; axis < w.n; ++axis)
      if (w[axis] % 2 == 0) return false;
    for (const int64_t s : v.ints("stride"))
      if (s != 1) return false;
    if (groups > 1 ? w[0] != in : w[0] < in) return false;
    return spatial(l, true) == spatial(l, false);
  }
  /// "28, 28]" of "f32 [2, 32, 28, 28]"
  std::string spatial(const LayerSpec& l, bool arrives) const {
    const auto at = std::find_if(reports_.begin(), reports_.end(), [&](const auto& r) { return r.layer == l.name; });
    if (at == reports_.end()) return {};
    const auto& ports = arrives ? at->inputs : at->outputs;
    if (ports.size() != 1) return arrives ? "in" : "out";
    size_t from = ports[0].find(", ");
    from = from == std::string::npos ? from : ports[0].find(", ", from + 1);
    return from == std::string::npos ? std::string() : ports[0].substr(from);
  }

  const Wiring wiring_;
  const Sizes sizes_;
  const std::vector<LayerReport> reports_;
  const ModelSpec& after_;
  std::set<std::string> old_, in_branch_;
  NewLayers found_;
};

}  // namespace

NewLayers new_layers(const ModelSpec& before, const ModelSpec& after) { return NewLayerFinder(before, after).result(); }

}  // namespace tenon
