#pragma once
#include <functional>

#include "engine/nn/module.h"

namespace tenon::nn {

/// A module that is one function of its inputs, without parameters.
class Functional : public Module {
 public:
  using F = std::function<Tensor(std::span<const Tensor>)>;
  Functional(std::string text, int inputs, F f) : text_(std::move(text)), inputs_(inputs), f_(std::move(f)) {}
  std::string describe() const override { return text_; }

 protected:
  using Module::forward;
  Tensor forward(std::span<const Tensor> in) override;

 private:
  std::string text_;
  int inputs_;
  F f_;
};

std::shared_ptr<Module> unary(std::string text, std::function<Tensor(const Tensor&)> f);
std::shared_ptr<Module> nary(std::string text, int inputs, Functional::F f);

}  // namespace tenon::nn
