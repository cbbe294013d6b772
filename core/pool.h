#pragma once
#include <cstddef>
#include <cstdint>

#include "core/tensor.h"

namespace tenon {

/// A storage with its bytes in one block (header first, data 64-byte aligned) from the CPU pool. Throws Error when
/// memory is out. See Note [CPU pool].
inline Ref<Storage> pool_take(size_t bytes);
/// A storage on a device that a backend serves: its memory is taken from the backend and given back to it. Throws Error
/// when the device's memory is out.
Ref<Storage> backend_take(size_t bytes, Device device);

/// While it lives, a block above `bytes` that the calling thread asks for from the system is an Error: what comes from
/// outside may name any size.
class AllocationLimit {
 public:
  explicit AllocationLimit(size_t bytes);
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;

 private:
  size_t saved_;
};

/// The bound that holds on this thread; SIZE_MAX where there is none.
size_t allocation_limit();

struct PoolStats {
  int64_t live_bytes = 0;    ///< in blocks that are in use
  int64_t peak_bytes = 0;    ///< highest live_bytes, taken at every allocation above the small-block limit
  int64_t cached_bytes = 0;  ///< in blocks kept for reuse
};
PoolStats pool_stats();
void pool_reset_peak();
/// Gives cached large blocks back to the system.
void pool_trim();

/// Sees every block that is taken and given back while it is added. Called from any thread.
class MemoryObserver {
 public:
  virtual ~MemoryObserver() = default;
  virtual void taken(const Storage& s) = 0;
  virtual void given_back(const Storage& s) = 0;
};
/// Several may look at a time: each sees all. Throws Error where more do than anyone needs.
void add_memory_observer(MemoryObserver& observer);
/// Waits until no thread is inside it. One that was not added is left alone.
void remove_memory_observer(MemoryObserver& observer);

/// The storage's number, given on the first call and kept for its life.
uint32_t storage_id(Storage* s);

namespace detail {
Storage* take_block(size_t bytes);  // with the reference that pool_take() gives away: in a register
}
inline Ref<Storage> pool_take(size_t bytes) { return Ref<Storage>::adopt(detail::take_block(bytes)); }

}  // namespace tenon
