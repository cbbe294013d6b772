#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tracing/snapshot/snapshot.h"

namespace tenon::snapshot {

/// Numbers by address, for millions that come and go: one flat table, neighbours beside each other.
class AddressMap {
 public:
  /// kNone: not there.
  uint32_t find(uint64_t address) const {
    if (slots_.empty()) return kNone;
    const Slot& s = slots_[place(address)];
    return s.number;
  }
  /// `number` must not be kNone. What was there before, or kNone.
  uint32_t put(uint64_t address, uint32_t number) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    Slot& s = slots_[place(address)];
    const uint32_t before = s.number;
    count_ += before == kNone;
    s = {address, number};
    return before;
  }
  /// What was there, or kNone.
  uint32_t take(uint64_t address) {
    if (slots_.empty()) return kNone;
    size_t hole = place(address);
    const uint32_t number = slots_[hole].number;
    if (number == kNone) return kNone;
    --count_;
    // What was put behind the hole because its own place was taken moves up.
    for (size_t i = next(hole); slots_[i].number != kNone; i = next(i)) {
      const size_t home = first(slots_[i].address);
      if (((i - home) & mask()) < ((i - hole) & mask())) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole].number = kNone;
    return number;
  }

 private:
  struct Slot {
    uint64_t address = 0;
    uint32_t number = kNone;
  };
  size_t mask() const { return slots_.size() - 1; }
  size_t first(uint64_t address) const { return (address * 0x9E3779B97F4A7C15ull >> 20) & mask(); }
  size_t next(size_t i) const { return (i + 1) & mask(); }
  size_t place(uint64_t address) const {
    size_t i = first(address);
    while (slots_[i].number != kNone && slots_[i].address != address) i = next(i);
    return i;
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 1024 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& s : old)
      if (s.number != kNone) slots_[place(s.address)] = s;
  }
  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace tenon::snapshot
