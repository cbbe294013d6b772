#include "engine/nn/layers.h"

namespace tenon::nn {

Sequential::Sequential(std::vector<std::shared_ptr<Module>> modules) {
  for (size_t i = 0; i < modules.size(); ++i) add_child(std::to_string(i), std::move(modules[i]));
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor t = x;
  for (const auto& child : children()) t = (*child.second)(t);
  return t;
}

}  // namespace tenon::nn
