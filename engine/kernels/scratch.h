#pragma once
#include "core/pool.h"
#include "core/state.h"

namespace tenon::kernels {

/// Working memory of a kernel: from the pool, so that it is seen and reused like any other memory, and given back at
/// the end of the scope.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count) {
    CategoryScope workspace(Category::workspace);
    storage_ = pool_take(static_cast<size_t>(count < 1 ? 1 : count) * sizeof(T));
  }
  Scratch(const Scratch&) = delete;
  T* data() const { return static_cast<T*>(storage_->data); }
  T& operator[](int64_t i) const { return data()[i]; }

 private:
  Ref<Storage> storage_;
};

}  // namespace tenon::kernels
