#pragma once
#include "engine/nn/module.h"

namespace tenon::nn {

/// Held by the module and by the graphs of its outputs.
struct Module::Hooks {
  template <class F>
  struct Hook {
    int id;
    F call;
  };
  std::vector<Hook<std::function<void(Module&, std::vector<Tensor>&)>>> pre;
  std::vector<Hook<std::function<void(Module&, std::span<const Tensor>, Tensor&)>>> post;
  std::vector<Hook<std::function<void(Module&, std::vector<Tensor>&, const Tensor&)>>> backward;
  int next = 1;
  Module* owner = nullptr;  ///< null once it is gone
};

}  // namespace tenon::nn
