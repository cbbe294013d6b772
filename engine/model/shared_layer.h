#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/nn/module.h"
#include "engine/spec/model_spec.h"

namespace tenon {

/// What decides whether a layer can have the weights of another: what it would be by itself.
struct LayerMake {
  const LayerSpec* layer = nullptr;
  std::vector<Attr> resolved;                              ///< sizes that come from what arrives
  std::vector<std::pair<std::string, std::string>> sizes;  ///< of its parameters and buffers, as text
  LayerMake() = default;
  LayerMake(const LayerSpec& layer, std::vector<Attr> resolved, const nn::Module& module);
};

/// The layer whose weights a layer shares. Throws Error where the model has none of that name that has its own.
const LayerSpec& owner_of(const ModelSpec& spec, const LayerSpec& layer);
/// Throws Error naming what differs: they are of one type, with the same attributes and sizes.
void check_sharing(const LayerMake& layer, const LayerMake& owner);

/// A layer that runs another one's module in its own place, and has no parameters of its own: PyTorch's
/// `self.b = self.a`, but that the state has the names of a alone.
class SharedLayer : public nn::Module {
 public:
  std::string describe() const override;
  void set_owner(std::shared_ptr<nn::Module> owner) { owner_ = std::move(owner); }

 protected:
  using nn::Module::forward;
  Tensor forward(const Tensor& x) override;
  Tensor forward(std::span<const Tensor> inputs) override;

 private:
  std::shared_ptr<nn::Module> owner_;
};

}  // namespace tenon
