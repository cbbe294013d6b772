#pragma once
#include <atomic>
#include <utility>

namespace tenon {

/// Gives up one reference; true where it was the last. A sole owner needs no locked instruction.
inline bool drop(std::atomic<int>& refs) {
  return refs.load(std::memory_order_acquire) == 1 || refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

/// A counted handle to a T that counts its references in `refs`, which begins at 1. What becomes of a T whose last
/// reference has gone is up to a function `void release_last(T*)` beside it. A plain T* is a view borrowed from whoever
/// holds the Ref.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  /// Takes over a reference that is counted already.
  static Ref adopt(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }
  /// Counts one more.
  static Ref share(T* p) {
    if (p) p->refs.fetch_add(1, std::memory_order_relaxed);
    return adopt(p);
  }
  Ref(const Ref& o) : p_(o.p_) {
    if (p_) p_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(const Ref& o) {
    Ref copy(o);
    std::swap(p_, copy.p_);
    return *this;
  }
  Ref& operator=(Ref&& o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() { reset(); }

  void reset() {
    if (T* p = std::exchange(p_, nullptr); p && drop(p->refs)) release_last(p);
  }
  /// Gives the reference away without giving it up.
  T* detach() { return std::exchange(p_, nullptr); }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(const Ref& o) const { return p_ == o.p_; }
  bool operator==(const T* o) const { return p_ == o; }
  /// Nobody else holds it.
  bool unique() const { return p_ && p_->refs.load(std::memory_order_acquire) == 1; }

 private:
  T* p_ = nullptr;
};

}  // namespace tenon
