#pragma once
#include <functional>
#include <utility>

#include "core/tensor.h"

namespace tenon {

/// While it lives, sees every tensor whose value item() is asked for on its thread: what is computed next may depend on
/// it. Innermost first, and only that.
class ValueWatch {
 public:
  explicit ValueWatch(std::function<void(const Tensor&)> read)
      : read_(std::move(read)), outer_(std::exchange(current_, this)) {}
  ~ValueWatch() { current_ = outer_; }
  ValueWatch(const ValueWatch&) = delete;
  static void tell(const Tensor& t) {
    if (current_) current_->read_(t);
  }

 private:
  std::function<void(const Tensor&)> read_;
  ValueWatch* outer_;
  static inline thread_local ValueWatch* current_ = nullptr;
};

}  // namespace tenon
