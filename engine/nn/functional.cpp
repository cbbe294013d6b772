#include "engine/nn/functional.h"

#include "core/error.h"

namespace tenon::nn {

Tensor Functional::forward(std::span<const Tensor> in) {
  if (static_cast<int>(in.size()) != inputs_)
    throw Error(text_ + " takes " + std::to_string(inputs_) + (inputs_ == 1 ? " input, not " : " inputs, not ") +
                std::to_string(in.size()));
  return f_(in);
}

std::shared_ptr<Module> unary(std::string text, std::function<Tensor(const Tensor&)> f) {
  return std::make_shared<Functional>(std::move(text), 1,
                                      [f = std::move(f)](std::span<const Tensor> in) { return f(in[0]); });
}
std::shared_ptr<Module> nary(std::string text, int inputs, Functional::F f) {
  return std::make_shared<Functional>(std::move(text), inputs, std::move(f));
}

}  // namespace tenon::nn
