// A callback that holds more and more weights at zero: pruning while training.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/backend.h"
#include "core/base64.h"
#include "core/error.h"
#include "core/name_pattern.h"
#include "engine/autograd/autograd.h"
#include "engine/model/graph_module.h"
#include "engine/model/shrink.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "engine/train/callback.h"

namespace tenon {
namespace {

using Named = std::vector<nn::Named>;

std::vector<float> host_values(const Tensor& t) {
  const Tensor h = clone(to_host(cast(detach(t), DType::f32)), Order::contiguous);
  return {h.data<float>(), h.data<float>() + h.numel()};
}

/// Which weights of a tensor stay.
struct WeightMask {
  std::vector<uint8_t> keep;
  Tensor factor = {};  ///< the same as 1 and 0, of the weight's size and type, where that lies

  int64_t gone() const { return std::count(keep.begin(), keep.end(), uint8_t{0}); }
  void apply(Tensor t, const std::string& name) {
    if (static_cast<int64_t>(keep.size()) != t.numel())
      throw Error(fmt::format("the mask of {} that was kept is of {} weights, not {}", name, keep.size(), t.numel()),
                  "it belongs to another model");
    if (!factor) {
      Tensor f = empty(t.size());
      std::copy(keep.begin(), keep.end(), f.data<float>());
      factor = to_device(cast(f, t.dtype()), t.device());
    }
    mul_(t, factor);
  }
  std::string text() const {
    std::string bits((keep.size() + 7) / 8, '\0');
    for (size_t i = 0; i < keep.size(); ++i)
      if (keep[i]) bits[i / 8] = static_cast<char>(bits[i / 8] | (1 << (i % 8)));
    return to_base64(bits);
  }
  static WeightMask of(const std::string& bits, size_t count) {
    WeightMask m{std::vector<uint8_t>(count)};
    for (size_t i = 0; i < count; ++i) m.keep[i] = (bits[i / 8] >> (i % 8)) & 1;
    return m;
  }
};

struct PruneSettings {
  double amount;
  std::string kind;
  std::vector<std::string> layers;
  int64_t from, over, every, n, m;

  /// A weight or its layer was named.
  bool names(const std::string& parameter) const {
    const std::string layer = parameter.substr(0, parameter.rfind('.'));
    return std::any_of(layers.begin(), layers.end(),
                       [&](const auto& p) { return fits_pattern(p, parameter) || fits_pattern(p, layer); });
  }
  /// Zhu & Gupta: To prune, or not to prune (2017): s (1 - (1 - (t - t0) / n)^3).
  double share_at(int64_t step) const {
    if (step >= from + over) return amount;
    return amount * (1 - std::pow(1 - static_cast<double>(step - from) / static_cast<double>(over), 3));
  }
};

struct PruneWeights : Callback {
  PruneSettings set;
  std::vector<ChannelGroup> groups;  ///< of kind = channels: those that are pruned
  std::map<std::string, WeightMask> masks;
  std::map<std::string, std::vector<float>> scores;  ///< of kind = movement, until the last mask is made

  explicit PruneWeights(PruneSettings s) : set(std::move(s)) {}

  bool due(int64_t step) const {
    const int64_t end = set.from + set.over;
    if (step < set.from) return false;
    return masks.empty() || (step <= end && ((step - set.from) % set.every == 0 || step == end));
  }
  bool prunes(const nn::Named& p) const { return p.tensor.ndim() >= 2 && set.names(p.name); }

  void on_gradients(const Named& trained, int64_t step) override {
    for (const nn::Named& p : trained) {
      const Tensor g = grad_of(p.tensor);
      if (!g) continue;
      if (set.kind == "movement" && step <= set.from + set.over && prunes(p)) {
        const std::vector<float> w = host_values(p.tensor), d = host_values(g);
        std::vector<float>& s = scores[p.name];
        s.resize(w.size(), 0.0f);
        for (size_t i = 0; i < w.size(); ++i) s[i] -= w[i] * d[i];
      }
      if (const auto at = masks.find(p.name); at != masks.end()) at->second.apply(g, p.name);
    }
  }

  void on_update(const Named& trained, int64_t step) override {
    if (due(step)) {
      if (set.kind == "channels")
        choose_channels(trained, set.share_at(step));
      else
        for (const nn::Named& p : trained)
          if (prunes(p)) choose_weights(p, set.share_at(step));
      if (step >= set.from + set.over) scores.clear();
    }
    for (const nn::Named& p : trained)
      if (const auto at = masks.find(p.name); at != masks.end()) at->second.apply(p.tensor, p.name);
  }

  void choose_weights(const nn::Named& p, double share) {
    std::vector<float> worth = host_values(p.tensor);
    for (float& v : worth) v = std::abs(v);
    if (const auto at = scores.find(p.name); at != scores.end()) worth = at->second;
    WeightMask& mask = masks[p.name];
    const std::vector<uint8_t> before = mask.keep;
    mask = {std::vector<uint8_t>(worth.size(), 1)};
    std::vector<size_t> order(worth.size());
    std::iota(order.begin(), order.end(), size_t{0});
    // What is gone stays gone; of equal ones the first goes.
    const auto less = [&](size_t a, size_t b) {
      const bool gone_a = !before.empty() && !before[a], gone_b = !before.empty() && !before[b];
      if (gone_a != gone_b) return gone_a;
      return worth[a] != worth[b] ? worth[a] < worth[b] : a < b;
    };
    const auto drop = [&](size_t begin, size_t end, size_t count) {
      const auto first = order.begin() + static_cast<int64_t>(begin), last = order.begin() + static_cast<int64_t>(end);
      std::nth_element(first, first + static_cast<int64_t>(count), last, less);
      for (size_t i = begin; i < begin + count; ++i) mask.keep[order[i]] = 0;
    };
    if (set.kind != "n_m") {
      const auto count = static_cast<size_t>(std::llround(share * static_cast<double>(worth.size())));
      return drop(0, worth.size(), std::min(count, worth.size()));
    }
    const size_t row = worth.size() / static_cast<size_t>(p.tensor.size(0)), m = static_cast<size_t>(set.m);
    for (size_t r = 0; r < worth.size(); r += row)
      for (size_t at = 0; at + m <= row; at += m) drop(r + at, r + at + m, m - static_cast<size_t>(set.n));
  }

  void choose_channels(const Named& trained, double share) {
    std::map<std::string, Tensor> tensors;
    for (const nn::Named& p : trained) tensors[p.name] = p.tensor;
    for (const ChannelGroup& g : groups) {
      const std::vector<double> norms = channel_norms(g, [&](const std::string& name) {
        const auto at = tensors.find(name);
        if (at == tensors.end())
          throw Error(fmt::format("callbacks: prune: {} is frozen, its channels cannot be pruned", name),
                      "leave its layer out of init.freeze, or out of the callback's layers");
        return at->second;
      });
      std::vector<size_t> order(norms.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return norms[a] < norms[b]; });
      const auto count = static_cast<size_t>(std::llround(share * static_cast<double>(norms.size())));
      order.resize(std::min(count, norms.size() - 1));
      for (const auto* list : {&g.made, &g.along})
        for (const ChannelSlot& slot : *list)
          if (const auto at = tensors.find(slot.tensor); at != tensors.end()) drop_channels(at->second, slot, order);
    }
  }
  void drop_channels(const Tensor& t, const ChannelSlot& slot, const std::vector<size_t>& channels) {
    WeightMask& mask = masks[slot.tensor];
    if (mask.keep.empty()) mask.keep.assign(static_cast<size_t>(t.numel()), 1);
    mask.factor = {};
    int64_t inner = 1, outer = 1;
    for (int i = 0; i < t.ndim(); ++i)
      if (i != slot.axis) (i < slot.axis ? outer : inner) *= t.size(i);
    for (int64_t o = 0; o < outer; ++o)
      for (const size_t c : channels) {
        const int64_t at = o * t.size(slot.axis) + slot.begin + static_cast<int64_t>(c) * slot.repeat;
        std::fill_n(mask.keep.begin() + at * inner, slot.repeat * inner, uint8_t{0});
      }
  }

  std::vector<std::pair<std::string, double>> figures() const override {
    int64_t gone = 0, all = 0;
    for (const auto& [name, mask] : masks) gone += mask.gone(), all += static_cast<int64_t>(mask.keep.size());
    return {{"sparsity", all ? static_cast<double>(gone) / static_cast<double>(all) : 0}};
  }

  nlohmann::json state() const override {
    nlohmann::json j = {{"masks", nlohmann::json::object()}, {"scores", nlohmann::json::object()}};
    for (const auto& [name, mask] : masks) j["masks"][name] = {mask.keep.size(), mask.text()};
    for (const auto& [name, s] : scores)
      j["scores"][name] = to_base64({reinterpret_cast<const char*>(s.data()), s.size() * sizeof(float)});
    return j;
  }
  void load(const nlohmann::json& state) override {
    const Error other("the checkpoint has no masks of the callback prune");
    std::map<std::string, WeightMask> new_masks;
    std::map<std::string, std::vector<float>> new_scores;
    if (!state.is_null()) {
      if (!state.is_object() || !state.contains("masks") || !state.contains("scores")) throw other;
      for (const auto& [name, mask] : state["masks"].items()) {
        if (!mask.is_array() || mask.size() != 2 || !mask[0].is_number_unsigned() || !mask[1].is_string()) throw other;
        const auto bits = from_base64(mask[1].get<std::string>());
        const auto count = mask[0].get<size_t>();
        if (!bits || bits->size() != count / 8 + (count % 8 != 0)) throw other;
        new_masks[name] = WeightMask::of(*bits, count);
      }
      for (const auto& [name, text] : state["scores"].items()) {
        const auto bytes = text.is_string() ? from_base64(text.get<std::string>()) : std::nullopt;
        if (!bytes || bytes->size() % sizeof(float) != 0) throw other;
        std::vector<float>& s = new_scores[name];
        s.resize(bytes->size() / sizeof(float));
        std::copy(bytes->begin(), bytes->end(), reinterpret_cast<char*>(s.data()));
      }
    }
    masks = std::move(new_masks);
    scores = std::move(new_scores);
  }
  /// Where one mask does not fit, all are chosen again at the next update: what was held at zero is least there.
  void forget_others(const Named& trained) override {
    std::map<std::string, size_t> sizes;
    for (const nn::Named& p : trained) sizes[p.name] = static_cast<size_t>(p.tensor.numel());
    const auto other = [&](const std::string& name, size_t count) {
      const auto at = sizes.find(name);
      return at == sizes.end() || at->second != count;
    };
    if (std::any_of(masks.begin(), masks.end(), [&](const auto& m) { return other(m.first, m.second.keep.size()); }))
      masks.clear();
    std::erase_if(scores, [&](const auto& s) { return other(s.first, s.second.size()); });
  }
};

std::unique_ptr<Callback> make_prune(const AttrValues& v, const CallbackRun& run) {
  PruneSettings s{v.number("amount"), v.text("kind"), {}, v.integer("from"), v.integer("over"), v.integer("every"),
                  v.integer("n"),     v.integer("m")};
  std::string patterns = v.text("layers");
  std::replace(patterns.begin(), patterns.end(), ',', ';');
  s.layers = split_list(patterns);
  if (s.kind == "n_m" && s.n >= s.m)
    throw Error::usage(fmt::format("callbacks: prune n={} m={}: {} of {} weights is all of them", s.n, s.m, s.n, s.m),
                       "n=2 m=4 keeps two of four");
  auto made = std::make_unique<PruneWeights>(s);
  if (!run.model) return made;
  bool any = false;
  if (s.kind == "channels") {
    std::string why;
    for (ChannelGroup& g : channel_groups(*run.model)) {
      const bool named =
          std::all_of(g.makers.begin(), g.makers.end(), [&](const auto& l) { return s.names(l + ".weight"); });
      const std::string& stays = g.fixed.empty() ? g.bound : g.fixed;
      if (named && !stays.empty()) why = fmt::format("; those of {} must stay: {}", g.makers[0], stays);
      if (named && stays.empty()) made->groups.push_back(std::move(g));
    }
    any = !made->groups.empty();
    if (!any)
      throw Error::usage(
          fmt::format("callbacks: prune layers={}: no channels can go{}", v.text("layers"), why),
          "layers that are added up go together, so all of them must be named; layers=* names every one");
  } else {
    const GraphModule model(*run.model, {DeviceType::meta});
    for (const nn::Named& p : model.parameters()) any |= made->prunes(p);
    if (!any)
      throw Error::usage(
          fmt::format("callbacks: prune layers={}: the model has no weight of such a name", v.text("layers")),
          "patterns are separated by commas, as in layers=features.*,classifier.0");
  }
  return made;
}

using S = std::string;
const bool registered_prune = register_callback(
    {.name = "prune",
     .title = "Prune while it trains",
     .help = "holds more and more weights at zero",
     .moment = Moment::gradients,
     .attrs = {{"amount", 0.5, 0, 0.999, "share of the weights, or channels, of each tensor that are zero at the end"},
               {"kind",
                S("magnitude"),
                0,
                0,
                "what goes: the smallest weights (magnitude), all but n of m neighbours (n_m, at once), whole channels "
                "of least 1-norm (channels, which `tenon prune --zeros` then takes out), or weights that training "
                "moves towards zero (movement)",
                {"magnitude", "n_m", "channels", "movement"}},
               {"layers", S("*"), 0, 0, "layers or weights, separated by commas; * stands for any text", {}},
               {"from", int64_t{1}, 1, 9e15, "the first step that prunes", {}, "steps"},
               {"over", int64_t{0}, 0, 9e15, "steps until the amount is reached, fast first; 0: at once", {}, "steps"},
               {"every", int64_t{10}, 1, 9e15, "steps between choices meanwhile", {}, "steps"},
               {"n", int64_t{2}, 1, 63, "n_m: weights that stay"},
               {"m", int64_t{4}, 2, 64, "n_m: of so many neighbours among those that one output reads"}},
     .make = make_prune});

}  // namespace
}  // namespace tenon
