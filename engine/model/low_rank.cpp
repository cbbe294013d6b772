#include "engine/model/low_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/backend.h"
#include "core/error.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/model/examine.h"
#include "engine/model/layer_sizes.h"
#include "engine/ops/create.h"
#include "engine/ops/linalg.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

/// A layer as two.
struct Factors {
  int64_t rank = 0, full = 0;  ///< full: the smaller side of the matrix
  double error = 0;            ///< norm of what is lost, over that of the weights
  Tensor down, up;             ///< [rank, others...] and [outputs, rank, 1...]
};

bool can_be_two(const LayerSpec& l) {
  return l.type == "Linear" || l.type == "Conv1d" || l.type == "Conv2d" || l.type == "Conv3d";
}

/// Why a layer stays one; empty where it need not.
std::string why_one(const LayerSpec& l, const Tensor& w, const FactorChoice& choice) {
  if (!choice.named(l.name)) return "not named";
  if (l.off) return "switched off";
  if (!w || w.ndim() < 2 || !is_floating(w.dtype())) return "its weights are no matrix of their own";
  const AttrValue* groups = l.find("groups");
  if (groups && *groups != AttrValue(int64_t{1})) return "its groups are matrices each";
  return {};
}

Factors factors_of(const Tensor& given, double energy) {
  const Tensor w = clone(to_host(cast(detach(given), DType::f64)), Order::contiguous);
  const int64_t rows = w.size(0), columns = w.numel() / rows;
  const Svd d = svd(reshape(w, {rows, columns}));
  const Tensor u = contiguous(d.u), s = contiguous(d.s), vh = contiguous(d.vh);
  Factors f;
  f.full = s.numel();
  double sum = 0, kept = 0;
  for (int64_t i = 0; i < f.full; ++i) sum += s.data<double>()[i] * s.data<double>()[i];
  // The last digit of a sum that is added up in another order is not worth a rank.
  while (f.rank < f.full && kept < energy * sum * (1 - 1e-12)) {
    kept += s.data<double>()[f.rank] * s.data<double>()[f.rank];
    ++f.rank;
  }
  f.rank = std::max<int64_t>(1, f.rank);
  f.error = sum > 0 ? std::sqrt(std::max(0.0, sum - kept) / sum) : 0;
  Shape down = w.size(), up{rows, f.rank};
  down[0] = f.rank;
  for (int i = 2; i < w.ndim(); ++i) up.push_back(1);
  f.down = empty(down, DType::f64);
  f.up = empty(up, DType::f64);
  for (int64_t k = 0; k < f.rank; ++k) {
    const double root = std::sqrt(std::max(0.0, s.data<double>()[k]));
    for (int64_t j = 0; j < columns; ++j)
      f.down.data<double>()[k * columns + j] = root * vh.data<double>()[k * columns + j];
    for (int64_t i = 0; i < rows; ++i) f.up.data<double>()[i * f.rank + k] = root * u.data<double>()[i * f.full + k];
  }
  f.down = cast(f.down, given.dtype());
  f.up = cast(f.up, given.dtype());
  return f;
}

/// LAYER.down and LAYER.up in the place of a layer, wired as it was.
void split_layer(ModelSpec& model, const std::string& name, int64_t rank, bool bias) {
  const auto at = std::find_if(model.layers.begin(), model.layers.end(), [&](const auto& l) { return l.name == name; });
  LayerSpec down = *at, up = *at;
  down.name = name + ".down";
  up.name = name + ".up";
  up.comment.clear();
  if (at->x != 0 || at->y != 0) up.y += 60;
  const bool linear = at->type == "Linear";
  set_anyway(down, linear ? "out_features" : "out_channels", rank);
  set_anyway(down, "bias", false);
  // What moves the window is the first half's; the second sees one place.
  std::erase_if(up.attrs, [](const Attr& a) {
    return a.name != "out_features" && a.name != "out_channels" && a.name != "in_features" && a.name != "in_channels" &&
           a.name != "bias";
  });
  set_where_said(up, linear ? "in_features" : "in_channels", rank);
  if (!linear) set_anyway(up, "kernel_size", std::vector<int64_t>(static_cast<size_t>(at->type[4] - '0'), 1));
  set_anyway(up, "bias", bias);
  for (WireSpec& w : model.wires) {
    if (w.to == name) w.to = down.name;
    if (w.from == name) w.from = up.name;
  }
  model.wires.push_back({down.name, 0, up.name, 0});
  *at = std::move(down);
  model.layers.insert(at + 1, std::move(up));
}

}  // namespace

Shrunk factor(const ModelSpec& spec, const std::vector<nn::Named>& state, const FactorChoice& choice) {
  if (!(choice.energy > 0 && choice.energy <= 1))
    throw Error::usage(fmt::format("{:g} is no share of a layer's energy that can stay", choice.energy),
                       "it is above 0 and at most 1: 0.9 keeps nine tenths of the squares of its singular values");
  const NoGrad off;
  std::map<std::string, Tensor> tensors;
  for (const nn::Named& n : state) tensors[n.name] = n.tensor;
  const auto own = [&](const std::string& name) {
    const auto at = tensors.find(name);
    return at == tensors.end() ? Tensor() : at->second;
  };
  std::map<std::string, Factors> split;
  std::map<std::string, std::string> kept;
  Shrunk out;
  out.model = spec;
  for (const LayerSpec& l : spec.layers) {
    if (!can_be_two(l)) continue;
    const Tensor w = own(l.name + ".weight");
    std::string why = why_one(l, w, choice);
    for (const LayerSpec& o : spec.layers)
      if (why.empty() && o.shares == l.name) why = fmt::format("{} shares its weights", o.name);
    if (why.empty()) {
      Factors f = factors_of(w, choice.energy);
      const int64_t rows = w.size(0), columns = w.numel() / rows;
      if (f.rank * (rows + columns) < rows * columns) {
        split_layer(out.model, l.name, f.rank, own(l.name + ".bias").defined());
        split.emplace(l.name, std::move(f));
      } else {
        why = fmt::format("of rank {} it would not be smaller", f.rank);
      }
    }
    kept[l.name] = why;
  }
  if (split.empty())
    throw Error::usage("no layer gets smaller at this energy", "name a smaller share of the energy, or other layers");
  for (const nn::Named& n : state) {
    const size_t dot = n.name.rfind('.');
    const auto f = split.find(n.name.substr(0, dot));
    const std::string last = n.name.substr(dot + 1);
    if (f == split.end() || (last != "weight" && last != "bias")) {
      out.tensors.emplace_back(n.name, clone(to_host(detach(n.tensor)), Order::contiguous));
    } else if (last == "bias") {
      out.tensors.emplace_back(f->first + ".up.bias", clone(to_host(detach(n.tensor)), Order::contiguous));
    } else {
      out.tensors.emplace_back(f->first + ".down.weight", f->second.down);
      out.tensors.emplace_back(f->first + ".up.weight", f->second.up);
    }
  }
  std::map<std::string, LayerReport> is;
  for (LayerReport& r : examine(out.model, 1)) {
    if (!r.error.empty()) throw Error("layer " + r.layer + " of the smaller model: " + r.error, r.hint);
    is[r.layer] = std::move(r);
  }
  for (const LayerReport& was : examine(spec, 1)) {
    if (was.parameters == 0) {
      out.other_flops += was.flops, out.other_flops_after += is.at(was.layer).flops;
      continue;
    }
    const auto f = split.find(was.layer);
    ShrinkRow r{.layer = was.layer, .type = spec.find(was.layer)->type};
    r.parameters = was.parameters;
    r.flops = was.flops;
    if (const auto k = kept.find(was.layer); k != kept.end()) r.kept = k->second;
    if (f == split.end()) {
      r.parameters_after = is.at(was.layer).parameters;
      r.flops_after = is.at(was.layer).flops;
    } else {
      const LayerReport &down = is.at(was.layer + ".down"), &up = is.at(was.layer + ".up");
      r.parameters_after = down.parameters + up.parameters;
      r.flops_after = down.flops + up.flops;
      r.rank = f->second.rank;
      r.full_rank = f->second.full;
      r.error = f->second.error;
    }
    out.rows.push_back(std::move(r));
  }
  return out;
}

}  // namespace tenon
