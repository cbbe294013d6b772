#include "engine/model/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "core/backend.h"
#include "core/error.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/model/examine.h"
#include "engine/model/layer_sizes.h"
#include "engine/ops/create.h"
#include "engine/ops/index.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

using Tensors = std::map<std::string, Tensor>;

/// Adds |values| of each channel of a slot to `sums`.
void add_norms(const ChannelSlot& slot, const Tensor& tensor, std::vector<double>& sums) {
  const Tensor t = clone(to_host(cast(detach(tensor), DType::f32)), Order::contiguous);
  int64_t inner = 1, outer = 1;
  for (int i = 0; i < t.ndim(); ++i)
    if (i != slot.axis) (i < slot.axis ? outer : inner) *= t.size(i);
  const int64_t size = t.size(slot.axis);
  const float* v = t.data<float>();
  for (int64_t o = 0; o < outer; ++o)
    for (size_t c = 0; c < sums.size(); ++c) {
      const int64_t from = slot.begin + static_cast<int64_t>(c) * slot.repeat;
      const float* at = v + (o * size + from) * inner;
      for (int64_t i = 0; i < slot.repeat * inner; ++i) sums[c] += std::abs(static_cast<double>(at[i]));
    }
}

/// The channels that stay.
std::vector<bool> chosen(const std::vector<double>& norms, const ShrinkChoice& choice) {
  const size_t n = norms.size();
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return norms[a] > norms[b]; });
  size_t stay = 0;
  if (choice.zeros)
    stay = static_cast<size_t>(std::count_if(norms.begin(), norms.end(), [](double v) { return v != 0; }));
  else
    stay = n - std::min(n, static_cast<size_t>(std::llround(choice.amount * static_cast<double>(n))));
  std::vector<bool> keep(n, false);
  for (size_t i = 0; i < std::max<size_t>(1, stay); ++i) keep[order[i]] = true;
  return keep;
}

/// Of each axis of each tensor, which elements stay.
using Cuts = std::map<std::pair<std::string, int>, std::vector<bool>>;

void cut(Cuts& cuts, const ChannelSlot& slot, const std::vector<bool>& keep, const Tensors& tensors) {
  std::vector<bool>& at = cuts[{slot.tensor, slot.axis}];
  if (at.empty()) at.assign(static_cast<size_t>(tensors.at(slot.tensor).size(slot.axis)), true);
  for (size_t c = 0; c < keep.size(); ++c)
    for (int64_t r = 0; r < slot.repeat; ++r)
      if (!keep[c]) at[static_cast<size_t>(slot.begin + static_cast<int64_t>(c) * slot.repeat + r)] = false;
}

std::string why_kept(const ChannelGroup& g, const ShrinkChoice& choice) {
  if (!g.fixed.empty()) return g.fixed;
  if (!g.bound.empty()) return g.bound;
  const auto named = [&](const std::string& l) { return choice.named(l); };
  if (std::all_of(g.makers.begin(), g.makers.end(), named)) return {};
  if (std::none_of(g.makers.begin(), g.makers.end(), named)) return "not named";
  const auto other = std::find_if_not(g.makers.begin(), g.makers.end(), named);
  return fmt::format("goes together with {}, which is not named", *other);
}

/// Fills what `out` says of the layers.
void compare_layers(const ModelSpec& before, const std::map<std::string, const ChannelGroup*>& made_by,
                    const std::map<std::string, std::string>& kept, const std::map<const ChannelGroup*, int64_t>& left,
                    Shrunk& out) {
  const std::vector<LayerReport> was = examine(before, 1), is = examine(out.model, 1);
  for (size_t i = 0; i < was.size(); ++i) {
    if (!is[i].error.empty()) throw Error("layer " + is[i].layer + " of the smaller model: " + is[i].error, is[i].hint);
    if (was[i].parameters == 0) {
      out.other_flops += was[i].flops, out.other_flops_after += is[i].flops;
      continue;
    }
    ShrinkRow r;
    r.layer = was[i].layer;
    r.type = before.layers[i].type;
    r.parameters = was[i].parameters, r.parameters_after = is[i].parameters;
    r.flops = was[i].flops, r.flops_after = is[i].flops;
    if (const auto g = made_by.find(r.layer); g != made_by.end()) {
      r.channels = g->second->channels;
      r.channels_after = left.at(g->second);
      r.kept = kept.at(r.layer);
    }
    out.rows.push_back(std::move(r));
  }
}

template <class T>
T total(const std::vector<ShrinkRow>& rows, T ShrinkRow::*of) {
  T sum = 0;
  for (const ShrinkRow& r : rows) sum += r.*of;
  return sum;
}

}  // namespace

int64_t Shrunk::parameters() const { return total(rows, &ShrinkRow::parameters); }
int64_t Shrunk::parameters_after() const { return total(rows, &ShrinkRow::parameters_after); }
double Shrunk::flops() const { return total(rows, &ShrinkRow::flops) + other_flops; }
double Shrunk::flops_after() const { return total(rows, &ShrinkRow::flops_after) + other_flops_after; }

std::vector<double> channel_norms(const ChannelGroup& group, const std::function<Tensor(const std::string&)>& tensor) {
  std::vector<double> sums(static_cast<size_t>(group.channels), 0.0);
  for (const ChannelSlot& s : group.made)
    if (s.tensor.ends_with(".weight")) add_norms(s, tensor(s.tensor), sums);
  return sums;
}

Shrunk shrink(const ModelSpec& spec, const std::vector<nn::Named>& state, const ShrinkChoice& choice) {
  if (!(choice.amount >= 0 && choice.amount < 1))
    throw Error::usage(fmt::format("{:g} is no share of channels that can go", choice.amount),
                       "it is at least 0 and less than 1: 0.5 takes half of them out");
  const NoGrad no_grad;
  Tensors tensors;
  for (const nn::Named& n : state) tensors[n.name] = n.tensor;
  const auto tensor = [&](const std::string& name) {
    const auto at = tensors.find(name);
    if (at == tensors.end()) throw Error(fmt::format("the state has no tensor \"{}\"", name), "it is of another model");
    return at->second;
  };

  const std::vector<ChannelGroup> groups = channel_groups(spec);
  Cuts cuts;
  std::map<std::string, const ChannelGroup*> made_by;
  std::map<std::string, std::string> kept;
  std::map<const ChannelGroup*, int64_t> left;
  int64_t gone = 0;
  for (const ChannelGroup& g : groups) {
    const std::string why = why_kept(g, choice);
    std::vector<bool> keep(static_cast<size_t>(g.channels), true);
    if (why.empty()) {
      std::vector<double> norms = channel_norms(g, tensor);
      if (choice.zeros)
        for (const ChannelSlot& s : g.made)
          if (!s.tensor.ends_with(".weight")) add_norms(s, tensor(s.tensor), norms);
      keep = chosen(norms, choice);
    }
    left[&g] = std::count(keep.begin(), keep.end(), true);
    gone += g.channels - left[&g];
    for (const std::string& m : g.makers) made_by[m] = &g, kept[m] = why;
    if (left[&g] == g.channels) continue;
    for (const auto* list : {&g.made, &g.along, &g.read})
      for (const ChannelSlot& s : *list) cut(cuts, s, keep, tensors);
  }
  if (gone == 0)
    throw Error::usage(choice.zeros ? "no channel of the model is all zero"
                                    : "no channel of the model can go: what was named makes none, or all must stay",
                       choice.zeros ? "train with the callback \"prune kind=channels\" first, or name an amount"
                                    : "name layers whose outputs others read, and a larger amount");

  Shrunk out;
  for (const nn::Named& n : state) {
    Tensor t = to_host(detach(n.tensor));
    for (int axis = 0; axis < t.ndim(); ++axis) {
      const auto at = cuts.find({n.name, axis});
      if (at == cuts.end()) continue;
      std::vector<int64_t> rows;
      for (size_t i = 0; i < at->second.size(); ++i)
        if (at->second[i]) rows.push_back(static_cast<int64_t>(i));
      t = index_select(t, axis, integers(rows));
    }
    out.tensors.emplace_back(n.name, clone(t, Order::contiguous));
  }
  Sizes now;
  for (const auto& [name, t] : out.tensors) now[name] = t.size();
  out.model = spec;
  for (LayerSpec& layer : out.model.layers)
    if (std::any_of(cuts.begin(), cuts.end(),
                    [&](const auto& c) { return layer_of(spec, c.first.first)->name == layer.name; }))
      fit_to_tensors(layer, now);
  compare_layers(spec, made_by, kept, left, out);
  return out;
}

}  // namespace tenon
