#pragma once
#include <cstdint>
#include <memory>

namespace tenon::kernels {

/// Memory that a thread keeps for its next call, as oneDNN keeps its own: it is no tensor's, and the pool would tell of
/// it in an order that depends on the threads.
template <class T>
class KeptRoom {
  std::unique_ptr<char[]> kept_;
  int64_t count_ = 0;

 public:
  /// Room for so many, on a cache line of its own; what lay there is gone where it has to grow.
  T* of(int64_t count) {
    constexpr size_t kLine = 64;
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    if (count > count_) kept_.reset(new char[bytes + kLine]), count_ = count;
    size_t space = bytes + kLine;
    void* at = kept_.get();
    return static_cast<T*>(std::align(kLine, bytes, at, space));
  }
};

}  // namespace tenon::kernels
