#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::snapshot {

/// What a pickle puts aside by number. Of millions of entries nearly all name an event that has long become a row: a
/// stretch of nothing but such entries takes no memory.
class PickleMemo {
 public:
  static constexpr uint64_t kGone = ~uint64_t{0};  ///< what is no longer there, or never was

  size_t size() const { return size_; }
  /// Below size().
  uint64_t operator[](size_t i) const {
    const Stretch* s = stretches_[i / kStretch].get();
    return s ? s->slots[i % kStretch] : kGone;
  }
  void push_back(uint64_t slot) { put(size_, slot); }
  /// Entries between the end and `i` are gone ones.
  void put(size_t i, uint64_t slot) {
    if (i >= size_) {
      size_ = i + 1;
      if (i / kStretch >= stretches_.size()) stretches_.resize(i / kStretch + 1);
    }
    auto& s = stretches_[i / kStretch];
    if (!s) {
      if (slot == kGone) return;
      s = std::make_unique<Stretch>();
    }
    s->slots[i % kStretch] = slot;
  }
  /// As it was when it had so many entries: those from there on are forgotten.
  void shrink(size_t size) {
    while (size_ > size) {
      --size_;
      if (auto& s = stretches_[size_ / kStretch]) s->slots[size_ % kStretch] = kGone;
    }
    stretches_.resize((size_ + kStretch - 1) / kStretch);
  }
  void clear() {
    size_ = 0;
    std::vector<std::unique_ptr<Stretch>>().swap(stretches_);
  }

 private:
  static constexpr size_t kStretch = 64;
  struct Stretch {
    uint64_t slots[kStretch];
    Stretch() {
      for (uint64_t& s : slots) s = kGone;
    }
  };
  std::vector<std::unique_ptr<Stretch>> stretches_;
  size_t size_ = 0;
};

}  // namespace tenon::snapshot
