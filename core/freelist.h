#pragma once
#include <cstddef>
#include <cstdint>
#include <new>

#include "core/memory_image.h"

namespace tenon {

/// Small blocks that come and go with every recorded op, from lists of the calling thread. A block may be freed on any
/// thread.
class FreeList {
 public:
  static void* take(size_t bytes) {
    size_t k = (bytes + 63) / 64;
    if (k < kClasses) {
      Lists& l = lists();
      if (Block* b = l.head[k]) {
        l.head[k] = b->next;
        --l.count[k];
        return b;
      }
    }
    return ::operator new(k * 64);
  }
  static void give(void* p, size_t bytes) {
    size_t k = (bytes + 63) / 64;
    Lists& l = lists();
    if (k < kClasses && l.count[k] < kKeep) {
      auto* b = static_cast<Block*>(p);
      b->next = l.head[k];
      l.head[k] = b;
      ++l.count[k];
      return;
    }
    ::operator delete(p);
  }
  /// Where the lists of the calling thread begin.
  static MemorySpan heads() {
    const auto at = reinterpret_cast<uint64_t>(&lists());
    return {at, at + sizeof(Lists)};
  }

 private:
  static constexpr size_t kClasses = 24;
#if defined(__SANITIZE_ADDRESS__)
  static constexpr int kKeep = 0;  // so that the sanitizer sees a use after free
#else
  static constexpr int kKeep = 4096;
#endif
  struct Block {
    Block* next;
  };
  struct Lists {
    Block* head[kClasses] = {};
    int count[kClasses] = {};
    ~Lists() {
      for (size_t k = 0; k < kClasses; ++k) {
        while (Block* b = head[k]) {
          head[k] = b->next;
          ::operator delete(b);
        }
        count[k] = kKeep;  // blocks freed on this thread from now on go straight back
      }
    }
  };
  static Lists& lists() {
    thread_local Lists l;
    return l;
  }
};

}  // namespace tenon
