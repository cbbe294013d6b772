#include "core/pool.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/backend.h"
#include "core/dry_device.h"
#include "core/error.h"
#include "core/machine_memory.h"
#include "core/pool_block.h"
#include "core/state.h"

// Note [CPU pool]
// Uncached temporaries make a chain of pointwise ops several times slower (page faults), so CPU blocks are cached like
// device blocks. Sizes are rounded up to 4 classes per power of two. Blocks up to kSmall live in lists of the thread
// that frees them (no lock, a few nanoseconds); larger ones in shared lists under one mutex. A thread that ends gives
// its lists to the shared ones. The block's class is kept in its header, in front of the Storage. Blocks from kHuge on
// ask the system for huge pages: reading 64 MB by pages of 4 KB waits for as many translations as for values.

namespace tenon {
namespace {

constexpr size_t kSmall = 32 << 10;
constexpr size_t kHuge = 16 << 20;
constexpr int kClasses = 4 * 48;
constexpr int kThreadKeep = 64;  // blocks of one class a thread keeps before it shares

struct alignas(64) Block {
  Storage storage;
  uint32_t size_class = 0;
  Block* next = nullptr;
  void* data() { return this + 1; }
};
static_assert(sizeof(Block) == kPoolHeaderBytes);

int class_of(size_t bytes) {
  if (bytes <= 64) return 0;
  int top = std::bit_width(bytes - 1) - 1;  // bytes - 1 in [2^top, 2^(top+1))
  size_t quarter = ((bytes - 1) >> (top - 2)) & 3;
  return 4 * (top - 6) + static_cast<int>(quarter) + 1;
}
size_t class_bytes(int c) {
  if (c == 0) return 64;
  int top = (c - 1) / 4 + 6, quarter = (c - 1) % 4;
  return (size_t{1} << top) + (static_cast<size_t>(quarter) + 1) * (size_t{1} << (top - 2));
}

struct Thread;

struct Central {
  std::mutex mutex;
  Block* free[kClasses] = {};
  int64_t cached = 0;
  int64_t large_live = 0, small_live_gone = 0;  // of threads that ended
  std::atomic<int64_t> peak{0};
  std::vector<Thread*> threads;
};
Central& central() {
  static auto* c = new Central;  // leaked: tensors in other statics may outlive any order of destruction
  return *c;
}

struct Thread {
  Block* free[kClasses] = {};
  int count[kClasses] = {};
  std::atomic<int64_t> live{0};  // written by its thread only; may go negative when it frees others' blocks
  Thread() {
    auto& c = central();
    std::lock_guard lock(c.mutex);
    c.threads.push_back(this);
  }
  ~Thread();
};
thread_local bool t_gone = false;

Thread::~Thread() {
  t_gone = true;
  auto& c = central();
  std::lock_guard lock(c.mutex);
  std::erase(c.threads, this);
  c.small_live_gone += live.load(std::memory_order_relaxed);
  for (int k = 0; k < kClasses; ++k)
    while (Block* b = free[k]) {
      free[k] = b->next;
      b->next = c.free[k];
      c.free[k] = b;
      c.cached += static_cast<int64_t>(class_bytes(k));
    }
}

Thread& thread_cache() {
  thread_local Thread t;
  return t;
}

int64_t small_live_locked(Central& c) {
  int64_t sum = c.small_live_gone;
  for (Thread* t : c.threads) sum += t->live.load(std::memory_order_relaxed);
  return sum;
}

// Seq_cst throughout: whoever reads an observer raises g_looking first, and whoever takes it away waits for that count
// to fall, so an observer is never told anything after remove_memory_observer() has returned.
std::array<std::atomic<MemoryObserver*>, 16> g_observers{};
std::mutex g_observers_change;  // of the list and the bit of the process word together
std::atomic<int> g_looking{0};

template <class F>
[[gnu::noinline]] void tell_observers(const F& f) {
  g_looking.fetch_add(1);
  for (const auto& slot : g_observers)
    if (MemoryObserver* o = slot.load()) f(*o);
  g_looking.fetch_sub(1);
}
std::atomic<uint32_t> g_next_id{1};

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCache = false;  // so that the sanitizer sees a use after free
#else
constexpr bool kCache = true;
#endif

void trim_locked(Central& c) {
  for (int k = 0; k < kClasses; ++k)
    while (Block* b = c.free[k]) {
      c.free[k] = b->next;
      std::free(b);
    }
  c.cached = 0;
}

thread_local size_t t_allocation_limit = SIZE_MAX;

[[noreturn]] void refuse(size_t bytes) {
  throw Error(
      fmt::format("a tensor of {} bytes was asked for; at most {} are allowed here", bytes, t_allocation_limit));
}

// Note [Memory that is not there]
// Linux promises more memory than there is, and ends a program when it runs out: without a word, with all that was not
// saved. So whenever blocks of 64 MiB together were taken from the system it is asked how much is left, and a block
// that would leave nothing is refused: that is an error of one op, whose run ends with a message. What was promised and
// not touched yet is not seen; kernels write their outputs at once.
bool is_there(size_t bytes) {
  constexpr size_t kAskAgain = 64 << 20, kReserve = 64 << 20;
  static std::atomic<size_t> unasked{0};
  if (unasked.fetch_add(bytes, std::memory_order_relaxed) + bytes < kAskAgain) return true;
  if (static_cast<size_t>(available_memory()) <= bytes + kReserve) return false;  // and asked again the next time
  unasked.store(0, std::memory_order_relaxed);
  return true;
}

/// Memory of the system for a block, or null: Note [Memory that is not there].
void* system_memory(size_t bytes) {
  if (bytes > (size_t{1} << 46) || !is_there(bytes)) return nullptr;
  void* p = std::aligned_alloc(64, sizeof(Block) + bytes);
#if defined(MADV_HUGEPAGE)
  if (p && bytes >= kHuge) {  // whole pages alone may be asked for; a refusal costs speed, no more
    constexpr uintptr_t kPage = 4096;
    const uintptr_t first = (reinterpret_cast<uintptr_t>(p) + kPage - 1) & ~(kPage - 1),
                    last = (reinterpret_cast<uintptr_t>(p) + sizeof(Block) + bytes) & ~(kPage - 1);
    madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
  }
#endif
  return p;
}

Block* fresh(size_t bytes) {
  if (bytes > t_allocation_limit) refuse(bytes);
  bytes = (bytes + 63) & ~size_t{63};  // aligned_alloc wants a multiple of the alignment
  void* p = system_memory(bytes);
  if (!p) {
    auto& c = central();
    std::lock_guard lock(c.mutex);
    trim_locked(c);
    p = system_memory(bytes);
    if (!p)
      throw Error(
          fmt::format("out of memory: a tensor of {} bytes was asked for in {} of module '{}', {} bytes are in use, "
                      "and the machine has {} left",
                      bytes, name(t_state.origin.phase), module_path(t_state.origin.module),
                      c.large_live + small_live_locked(c), available_memory()),
          "a smaller batch (data.batch_size) or a smaller model needs less");
  }
  return new (p) Block;
}

void count_large(Central& c, int64_t bytes) {
  c.large_live += bytes;
  if (bytes < 0) return;
  int64_t now = c.large_live + small_live_locked(c);
  if (now > c.peak.load(std::memory_order_relaxed)) c.peak.store(now, std::memory_order_relaxed);
}

Block* take_shared(Central& c, int k) {
  Block* b = c.free[k];
  if (b) {
    c.free[k] = b->next;
    c.cached -= static_cast<int64_t>(class_bytes(k));
  }
  return b;
}

void give_back(Storage* s) {
  auto* b = reinterpret_cast<Block*>(s);
  if (process_mode.load(std::memory_order_relaxed) & mode::memory) [[unlikely]]
    tell_observers([&](MemoryObserver& o) { o.given_back(*s); });
  int k = static_cast<int>(b->size_class);
  auto bytes = static_cast<int64_t>(class_bytes(k));
  bool small = class_bytes(k) <= kSmall;
  if (small && !t_gone) {
    Thread& t = thread_cache();
    t.live.store(t.live.load(std::memory_order_relaxed) - bytes, std::memory_order_relaxed);
    if (!kCache) return std::free(b);
    if (t.count[k] < kThreadKeep) {
      b->next = t.free[k];
      t.free[k] = b;
      ++t.count[k];
      return;
    }
  }
  auto& c = central();
  std::lock_guard lock(c.mutex);
  if (!small)
    count_large(c, -bytes);
  else if (t_gone)
    c.small_live_gone -= bytes;
  if (!kCache) return std::free(b);
  b->next = c.free[k];
  c.free[k] = b;
  c.cached += bytes;
}

}  // namespace

size_t pool_block_bytes(size_t bytes) { return class_bytes(class_of(bytes)); }

Storage* detail::take_block(size_t bytes) {
  int k = class_of(bytes);
  size_t rounded = class_bytes(k);
  Block* b = nullptr;
  if (rounded <= kSmall && !t_gone) [[likely]] {
    Thread& t = thread_cache();
    b = t.free[k];
    if (b) [[likely]] {
      t.free[k] = b->next;
      --t.count[k];
    } else {
      auto& c = central();
      std::lock_guard lock(c.mutex);
      b = take_shared(c, k);
    }
    if (!b) b = fresh(rounded);
    t.live.store(t.live.load(std::memory_order_relaxed) + static_cast<int64_t>(rounded), std::memory_order_relaxed);
  } else {
    auto& c = central();
    {
      std::lock_guard lock(c.mutex);
      b = take_shared(c, k);
    }
    if (!b) b = fresh(rounded);
    std::lock_guard lock(c.mutex);
    count_large(c, static_cast<int64_t>(rounded));
  }
  b->size_class = static_cast<uint32_t>(k);
  Storage& s = b->storage;
  s.refs.store(1, std::memory_order_relaxed);
  s.version = 0;
  s.data = b->data();
  s.bytes = bytes;
  s.device = {};
  s.id = 0;
  s.release = give_back;
  if (process_mode.load(std::memory_order_relaxed) & mode::memory) [[unlikely]]
    tell_observers([&](MemoryObserver& o) {
      storage_id(&s);
      o.taken(s);
    });
  return &s;
}

Ref<Storage> backend_take(size_t bytes, Device device) {
  if (bytes > t_allocation_limit && !is_dry(device)) refuse(bytes);
  auto s = std::make_unique<Storage>();
  s->data = backend_of(device).take(device, bytes);
  s->bytes = bytes;
  s->device = device;
  s->release = [](Storage* dead) {
    if (process_mode.load(std::memory_order_relaxed) & mode::memory)
      tell_observers([&](MemoryObserver& o) { o.given_back(*dead); });
    backend_of(dead->device).give(dead->device, dead->data, dead->bytes);
    delete dead;
  };
  if (process_mode.load(std::memory_order_relaxed) & mode::memory)
    tell_observers([&](MemoryObserver& o) {
      storage_id(s.get());
      o.taken(*s);
    });
  return Ref<Storage>::adopt(s.release());
}

void release_last(Storage* s) {
  if (s->has_forms.load(std::memory_order_relaxed)) [[unlikely]]
    drop_kept_forms(*s);
  if (s->release) s->release(s);
}

AllocationLimit::AllocationLimit(size_t bytes) : saved_(t_allocation_limit) {
  t_allocation_limit = std::min(saved_, bytes);
}
size_t allocation_limit() { return t_allocation_limit; }
AllocationLimit::~AllocationLimit() { t_allocation_limit = saved_; }

PoolStats pool_stats() {
  auto& c = central();
  std::lock_guard lock(c.mutex);
  PoolStats s;
  s.live_bytes = c.large_live + small_live_locked(c);
  s.peak_bytes = std::max(s.live_bytes, c.peak.load(std::memory_order_relaxed));
  s.cached_bytes = c.cached;
  return s;
}

void pool_reset_peak() { central().peak.store(0, std::memory_order_relaxed); }

void pool_trim() {
  {
    auto& c = central();
    std::lock_guard lock(c.mutex);
    trim_locked(c);
  }
  // Once it has been given back large blocks, the C library takes further ones from its heap and keeps those.
  give_back_freed_memory();
}

void add_memory_observer(MemoryObserver& observer) {
  std::lock_guard lock(g_observers_change);
  const auto free = std::find(g_observers.begin(), g_observers.end(), nullptr);
  if (free == g_observers.end())
    throw Error(fmt::format("memory is looked at {} times at once", g_observers.size()),
                "wait until one of the recordings has ended");
  *free = &observer;
  process_mode.fetch_or(mode::memory);
}

void remove_memory_observer(MemoryObserver& observer) {
  std::lock_guard lock(g_observers_change);
  const auto at = std::find(g_observers.begin(), g_observers.end(), &observer);
  if (at != g_observers.end()) *at = nullptr;
  if (std::all_of(g_observers.begin(), g_observers.end(), [](const auto& o) { return o == nullptr; }))
    process_mode.fetch_and(~mode::memory);
  while (g_looking.load() != 0) std::this_thread::yield();
}

uint32_t storage_id(Storage* s) {
  if (!s->id) s->id = g_next_id.fetch_add(1, std::memory_order_relaxed);
  return s->id;
}

}  // namespace tenon
