#pragma once
#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

/// The working memory of one call of a kernel, cut into parts in a fixed order. Over no memory it only counts: a kernel
/// lays its parts out in one function, which tells how many bytes they need before the kernel finds them there.
class Room {
 public:
  explicit Room(void* at = nullptr) : at_(static_cast<char*>(at)) {}
  /// `count` values, on a cache line of their own; null where it only counts.
  template <class T>
  T* take(int64_t count) {
    char* part = at_ ? at_ + used_ : nullptr;
    used_ += (static_cast<size_t>(count < 0 ? 0 : count) * sizeof(T) + 63) & ~size_t{63};
    return reinterpret_cast<T*>(part);
  }
  size_t used() const { return used_; }
  /// What was not handed out; null where it only counts.
  void* rest() const { return at_ ? at_ + used_ : nullptr; }

 private:
  char* at_;
  size_t used_ = 0;
};

}  // namespace tenon::kernels
