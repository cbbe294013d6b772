#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "engine/spec/layer_registry.h"

// Losses by name: what a recipe's loss.type may be. One definition each, in the file that computes it:
//   const bool registered = register_loss({{.type = "mse", .group = "Values", .help = "...", .inputs = 2, .attrs =
//   {...}}, Targets{.values = true},
//       [](const LayerArgs& a, std::span<const Tensor> in) { return mse_loss(in[0], in[1]); }});
// The function form with PyTorch's arguments is declared in engine/ops/loss.h.
namespace tenon::nn {

/// What the second input of a loss may be beside the model's output of size [n, ...].
struct Targets {
  bool classes = false;  ///< i64 numbers of classes, one for every row: the output's size without its class axis
  bool values = false;   ///< numbers, one for every element: the output's size
};

struct LossDef {
  LayerInfo info;  ///< type is the loss' name; inputs: the output first, then the target and what else it takes
  Targets targets;
  std::function<Tensor(const LayerArgs& a, std::span<const Tensor> in)> compute;
};
bool register_loss(LossDef def, Place place = Place::current());
/// Sorted by name.
const Registry<LossDef>& losses();

/// A loss with its attributes: PyTorch's names and defaults; those left out have the definition's.
class Loss {
 public:
  /// Throws Error naming near ones where there is no loss of that name, or the attribute that does not fit.
  explicit Loss(const std::string& name, std::vector<Attr> attrs = {});
  /// A tensor without axes, or of the attribute reduction = "none" one value an element or row.
  Tensor operator()(const Tensor& output, const Tensor& target) const;
  /// For losses of other than two inputs.
  Tensor operator()(std::span<const Tensor> inputs) const;
  const LossDef& def() const { return *def_; }

 private:
  const LossDef* def_;
  LayerSpec spec_;
  AttrValues values_;
};

}  // namespace tenon::nn
