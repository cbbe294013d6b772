#include "tests/simt/simt.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

// Saves what a function must keep and the stack pointer, and goes on with another stack.
extern "C" void tenon_simt_switch(void** save, void* to);
asm(R"(.text
.globl tenon_simt_switch
.hidden tenon_simt_switch
.type tenon_simt_switch, @function
tenon_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tenon_simt_switch, .-tenon_simt_switch
)");

namespace simt {
namespace {

constexpr int kWarp = 32;
constexpr size_t kStackBytes = 256 << 10;

enum class Waits : uint8_t { no, barrier, warp };

/// A stack on which one thread of the block runs from its beginning to its end.
struct Fiber {
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  void* saved = nullptr;
  int thread = -1;  ///< none: it is free
  Waits waits = Waits::no;
  const char* at = "";
  uint64_t value = 0;
  unsigned from = 0;
};

/// A declaration of shared memory in a heap block that ends where it does.
class SharedBlock {
 public:
  SharedBlock(size_t bytes, size_t align) : align_(align), block_(static_cast<char*>(make(bytes + align))) {
    std::memset(at(), 0xff, bytes);
  }
  SharedBlock(const SharedBlock&) = delete;
  ~SharedBlock() { ::operator delete (block_, std::align_val_t{2 * align_}); }
  /// An odd multiple of the alignment.
  char* at() const { return block_ + align_; }

 private:
  void* make(size_t bytes) const { return ::operator new (bytes, std::align_val_t{2 * align_}); }
  size_t align_;
  char* block_;
};

struct Block {
  Position position;
  std::function<void()> body;
  std::vector<int> order;       ///< threads as they begin
  std::vector<int> rank;        ///< of a thread in that order
  std::vector<Fiber*> running;  ///< by thread; null before it begins and after it ended
  std::vector<int> ready;       ///< a heap of threads that may go on, the first in rank on top
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber*> free;
  std::map<const void*, SharedBlock> shared;
  Fiber* now = nullptr;
  void* scheduler = nullptr;
  std::exception_ptr error;
  int begun = 0, ended = 0;
  const void* scheduler_stack = nullptr;
  size_t scheduler_bytes = 0;
};

thread_local Block* t_block = nullptr;

struct Settings {
  std::mutex mutex;
  Turns turns;
};
Settings& settings() {
  static Settings s;
  return s;
}

// The sanitizer is told of every change of stacks. `leaves` is null where the fiber that is left has ended for good.
void go_to_scheduler() {
  Block& b = *t_block;
#if defined(__SANITIZE_ADDRESS__)
  void* own = nullptr;
  __sanitizer_start_switch_fiber(&own, b.scheduler_stack, b.scheduler_bytes);
#endif
  tenon_simt_switch(&b.now->saved, b.scheduler);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own, nullptr, nullptr);
#endif
}
void go_to(Fiber& f) {
  Block& b = *t_block;
  b.now = &f;
  const Dim3& size = b.position.block;
  const auto t = static_cast<unsigned>(f.thread);
  b.position.thread = Dim3(t % size.x, t / size.x % size.y, t / (size.x * size.y));
#if defined(__SANITIZE_ADDRESS__)
  void* own = nullptr;
  __sanitizer_start_switch_fiber(&own, f.stack.get(), kStackBytes);
#endif
  tenon_simt_switch(&b.scheduler, f.saved);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own, nullptr, nullptr);
#endif
}

// A fiber never ends: it takes the thread that it is given, returns to the scheduler, and is given the next one.
[[noreturn]] void fiber_body() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &t_block->scheduler_stack, &t_block->scheduler_bytes);
#endif
  for (;;) {
    try {
      t_block->body();
    } catch (...) {
      if (!t_block->error) t_block->error = std::current_exception();
    }
    t_block->now->thread = -1;
    go_to_scheduler();
  }
}

Fiber& take_fiber(Block& b) {
  if (b.free.empty()) {
    Fiber& f = *b.fibers.emplace_back(std::make_unique<Fiber>());
    // As if fiber_body had called tenon_simt_switch(): six registers, then where to return to.
    auto* top = reinterpret_cast<void**>((reinterpret_cast<uintptr_t>(f.stack.get()) + kStackBytes) & ~uintptr_t{63});
    top -= 2;
    *top = reinterpret_cast<void*>(&fiber_body);
    top -= 6;
    std::memset(static_cast<void*>(top), 0, 6 * sizeof(void*));
    f.saved = top;
    b.free.push_back(&f);
  }
  Fiber& f = *b.free.back();
  b.free.pop_back();
  f.waits = Waits::no;
  return f;
}

void wait(Waits what, const char* at) {
  Fiber& f = *t_block->now;
  f.waits = what;
  f.at = at;
  go_to_scheduler();
  if (t_block->error) throw Fault("stopped");
}

std::string who(const Block& b, const Fiber& f) {
  const Dim3& i = b.position.block_index;
  return "thread " + std::to_string(f.thread) + " of block (" + std::to_string(i.x) + ", " + std::to_string(i.y) +
         ", " + std::to_string(i.z) + ") at " + f.at;
}

void arrange(Block& b) {
  const auto [order, seed] = turns();
  const auto threads = static_cast<int>(b.running.size());
  std::vector<int> warps, lanes;
  for (int w = 0; w * kWarp < threads; ++w) warps.push_back(w);
  for (int l = 0; l < kWarp; ++l) lanes.push_back(l);
  std::mt19937 random(seed + b.position.block_index.x * 7919u);
  const auto turn = [&, order = order](std::vector<int>& v) {
    if (order == Order::backward) std::sort(v.rbegin(), v.rend());
    if (order == Order::shuffled) std::shuffle(v.begin(), v.end(), random);
  };
  b.order.clear();
  turn(warps);
  for (const int w : warps) {
    turn(lanes);
    for (const int l : lanes)
      if (w * kWarp + l < threads) b.order.push_back(w * kWarp + l);
  }
  b.rank.resize(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) b.rank[static_cast<size_t>(b.order[static_cast<size_t>(i)])] = i;
}

struct Scheduler {
  Block& b;

  bool later(int x, int y) const { return b.rank[static_cast<size_t>(x)] > b.rank[static_cast<size_t>(y)]; }
  void wake(int thread) {
    b.running[static_cast<size_t>(thread)]->waits = Waits::no;
    b.ready.push_back(thread);
    std::push_heap(b.ready.begin(), b.ready.end(), [this](int x, int y) { return later(x, y); });
  }
  int next_ready() {
    std::pop_heap(b.ready.begin(), b.ready.end(), [this](int x, int y) { return later(x, y); });
    const int thread = b.ready.back();
    b.ready.pop_back();
    return thread;
  }

  /// Lets a thread go on until it waits or ends.
  void run(int thread) {
    Fiber& f = *b.running[static_cast<size_t>(thread)];
    go_to(f);
    if (f.thread < 0) {
      b.running[static_cast<size_t>(thread)] = nullptr;
      b.free.push_back(&f);
      ++b.ended;
    } else if (f.waits == Waits::warp) {
      meet(thread / kWarp);
    }
  }
  /// An exchange is done when every lane of the warp has come to it.
  void meet(int warp) {
    Fiber* lanes[kWarp];
    for (int l = 0; l < kWarp; ++l) {
      const auto t = static_cast<size_t>(warp * kWarp + l);
      lanes[l] = t < b.running.size() ? b.running[t] : nullptr;
      if (!lanes[l] || lanes[l]->waits != Waits::warp) return;
    }
    uint64_t values[kWarp];
    for (int l = 0; l < kWarp; ++l) {
      values[l] = lanes[l]->value;
      if (lanes[l]->at != lanes[0]->at && !b.error)
        b.error = std::make_exception_ptr(
            Fault("lanes of one warp meet at two places: " + who(b, *lanes[0]) + "; " + who(b, *lanes[l])));
    }
    for (auto* lane : lanes) {
      if (lane->from < kWarp) {
        lane->value = values[lane->from];
      } else {  // a ballot
        lane->value = 0;
        for (int k = 0; k < kWarp; ++k) lane->value |= (values[k] & 1u) << k;
      }
    }
    for (auto* lane : lanes) wake(lane->thread);
  }
  /// Nobody may go on: all wait at one barrier, or the kernel is wrong.
  void pass_barrier() {
    const Fiber *first = nullptr, *other = nullptr;
    int waiting = 0;
    for (const Fiber* f : b.running) {
      if (!f) continue;
      if (!first) first = f;
      if (f->waits != Waits::barrier || f->at != first->at) other = f;
      ++waiting;
    }
    if (other || waiting != static_cast<int>(b.running.size())) {
      b.error = std::make_exception_ptr(
          Fault("a barrier or exchange that not every thread reaches: " + std::to_string(waiting) + " of " +
                std::to_string(b.running.size()) + " wait: " + who(b, *first) + (other ? "; " + who(b, *other) : "")));
      return;
    }
    for (size_t t = 0; t < b.running.size(); ++t) wake(static_cast<int>(t));
  }

  void run_all() {
    const auto threads = static_cast<int>(b.running.size());
    while (b.ended < threads) {
      if (b.error) {  // those that wait unwind, the others never begin
        for (Fiber* f : b.running)
          if (f && f->waits != Waits::no) wake(f->thread);
        if (b.ready.empty()) break;
        run(next_ready());
        continue;
      }
      const bool may_begin = b.begun < threads;
      if (!b.ready.empty() && (!may_begin || b.rank[static_cast<size_t>(b.ready.front())] < b.begun)) {
        run(next_ready());
      } else if (may_begin) {
        const int thread = b.order[static_cast<size_t>(b.begun++)];
        Fiber& f = take_fiber(b);
        f.thread = thread;
        b.running[static_cast<size_t>(thread)] = &f;
        run(thread);
      } else {
        pass_barrier();
      }
    }
    if (b.error) std::rethrow_exception(b.error);
  }
};

void run_block(Block& b, int threads) {
  b.running.assign(static_cast<size_t>(threads), nullptr);
  b.ready.clear();
  b.shared.clear();
  b.error = nullptr;
  b.begun = b.ended = 0;
  arrange(b);
  Scheduler{b}.run_all();
}

}  // namespace

void set_order(Order order, uint32_t seed) {
  Settings& s = settings();
  std::lock_guard lock(s.mutex);
  s.turns = {order, seed};
}
Turns turns() {
  std::lock_guard lock(settings().mutex);
  return settings().turns;
}

bool fits(Dim3 grid, Dim3 block) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  return threads >= 1 && threads <= 1024 && block.z <= 64 && grid.x <= 0x7fffffffu && grid.y <= 65535 &&
         grid.z <= 65535;
}

void launch(Dim3 grid, Dim3 block, std::function<void()> body) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const Order order = turns().order;
  static thread_local Block b;
  t_block = &b;
  b.position.grid = grid;
  b.position.block = block;
  b.body = std::move(body);
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        b.position.block_index = Dim3(order == Order::backward ? grid.x - 1 - x : x, y, z);
        run_block(b, static_cast<int>(threads));
      }
  b.body = nullptr;
}

const Position& position() { return t_block->position; }

void barrier(const char* at) { wait(Waits::barrier, at); }

unsigned lane() { return static_cast<unsigned>(t_block->now->thread) % kWarp; }

uint64_t exchange(uint64_t value, unsigned from, const char* at) {
  Fiber& f = *t_block->now;
  f.value = value;
  f.from = from % kWarp;
  wait(Waits::warp, at);
  return f.value;
}

uint32_t ballot(bool value, const char* at) {
  Fiber& f = *t_block->now;
  f.value = value;
  f.from = kWarp;
  wait(Waits::warp, at);
  return static_cast<uint32_t>(f.value);
}

void* shared_bytes(const void* place, size_t bytes, size_t align) {
  return t_block->shared.try_emplace(place, bytes, std::max(align, sizeof(void*))).first->second.at();
}

}  // namespace simt

extern "C" __attribute__((visibility("default"))) void tenon_simt_order(int order, uint32_t seed) {
  simt::set_order(static_cast<simt::Order>(order), seed);
}
