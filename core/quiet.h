#pragma once
#include "core/state.h"

namespace tenon {

/// For what only looks, while it is in scope: it leaves no trace. No op numbers, no observer, no gradient.
class Quiet {
 public:
  Quiet() : saved_(t_state) {
    t_state.mode = (saved_.mode & ~(mode::observe | mode::interrupt)) | mode::no_grad;
    t_state.origin.category = Category::other;
  }
  ~Quiet() { t_state = saved_; }
  Quiet(const Quiet&) = delete;

 private:
  ThreadState saved_;
};

}  // namespace tenon
