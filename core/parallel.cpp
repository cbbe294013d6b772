#include "core/parallel.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tenon {
namespace {

struct Task {
  int64_t n = 0, grain = 1, pieces = 0;
  detail::PieceFn call = nullptr;
  const void* fn = nullptr;
  std::atomic<int64_t> next{0};
  std::mutex error_mutex;
  std::exception_ptr error;
  int64_t error_piece = -1;

  void work() {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < pieces;) {
      int64_t begin = i * grain, end = begin + grain < n ? begin + grain : n;
      try {
        call(fn, begin, end);
      } catch (...) {
        std::lock_guard lock(error_mutex);
        if (error_piece < 0 || i < error_piece) {
          error = std::current_exception();
          error_piece = i;
        }
      }
    }
  }
};

thread_local bool t_inside = false;

// Note [Several callers]
// Work is handed out through a few places. A caller takes a free one, puts its task there, and works on it beside the
// workers, who look for pieces in every place; a caller that finds none free works alone. Who computes a piece never
// changes what comes out, see parallel.h.
class Crew {
 public:
  ~Crew() { resize(0); }

  /// Holds every place meanwhile: callers work alone until it is done.
  void resize(int workers) {
    for (Place& p : places_)
      while (!p.take()) std::this_thread::yield();
    {
      std::lock_guard lock(mutex_);
      quit_ = true;
    }
    generation_.fetch_add(1, std::memory_order_release);
    wake_.notify_all();
    for (auto& t : threads_) t.join();
    threads_.clear();
    quit_ = false;
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { loop(); });
    workers_.store(workers, std::memory_order_relaxed);
    for (Place& p : places_) p.give();
  }
  int workers() const { return workers_.load(std::memory_order_relaxed); }

  /// False where no place was free: nothing was done then.
  bool run(Task& task) {
    Place* mine = nullptr;
    for (Place& p : places_)
      if (p.take()) {
        mine = &p;
        break;
      }
    if (!mine) return false;
    mine->task.store(&task, std::memory_order_release);
    generation_.fetch_add(1, std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_seq_cst) > 0) {
      { std::lock_guard lock(mutex_); }
      wake_.notify_all();
    }
    t_inside = true;
    task.work();
    t_inside = false;
    mine->task.store(nullptr, std::memory_order_seq_cst);
    // Pieces are short, so the last one is nearly done; but its worker may have lost its core to someone else.
    for (int i = 0; mine->busy.load(std::memory_order_seq_cst) != 0; ++i)
      i < 2000 ? pause() : std::this_thread::yield();
    mine->give();
    return true;
  }

  std::mutex resizing;  // one at a time

 private:
  struct alignas(64) Place {
    std::atomic<Task*> task{nullptr};
    std::atomic<int> busy{0};  // workers that look at the task
    std::atomic<bool> taken{false};
    bool take() { return !taken.load(std::memory_order_relaxed) && !taken.exchange(true, std::memory_order_acquire); }
    void give() { taken.store(false, std::memory_order_release); }
  };

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  void loop() {
    t_inside = true;
    uint64_t seen = 0;
    for (;;) {
      // Ops follow each other within microseconds: look a while before sleeping.
      for (int i = 0; i < 4000 && generation_.load(std::memory_order_acquire) == seen; ++i) pause();
      if (generation_.load(std::memory_order_acquire) == seen) {
        std::unique_lock lock(mutex_);
        sleeping_.fetch_add(1, std::memory_order_seq_cst);
        wake_.wait(lock, [&] { return generation_.load(std::memory_order_seq_cst) != seen || quit_; });
        sleeping_.fetch_sub(1, std::memory_order_seq_cst);
      }
      seen = generation_.load(std::memory_order_acquire);
      {
        std::lock_guard lock(mutex_);
        if (quit_) return;
      }
      for (Place& p : places_) {
        if (!p.task.load(std::memory_order_relaxed)) continue;
        // busy is raised before the task is read: run() clears the task and then waits for busy, so one seen here stays
        // alive.
        p.busy.fetch_add(1, std::memory_order_seq_cst);
        if (Task* task = p.task.load(std::memory_order_seq_cst)) task->work();
        p.busy.fetch_sub(1, std::memory_order_release);
      }
    }
  }

  std::vector<std::thread> threads_;
  std::atomic<int> workers_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> sleeping_{0};
  std::array<Place, 8> places_;
  bool quit_ = false;
};

std::atomic<int> g_threads{0};

Crew& crew() {
  static auto* c = [] {
    auto* made = new Crew;  // leaked: joining workers while statics die invites deadlock
    made->resize(num_threads() - 1);
    return made;
  }();
  return *c;
}

}  // namespace

int num_threads() {
  int n = g_threads.load(std::memory_order_relaxed);
  if (n <= 0) {
    n = static_cast<int>(std::thread::hardware_concurrency());
    n = n < 1 ? 1 : n;
    g_threads.store(n, std::memory_order_relaxed);
  }
  return n;
}

void set_num_threads(int n) {
  if (n <= 0) n = static_cast<int>(std::thread::hardware_concurrency());
  Crew& c = crew();
  std::lock_guard lock(c.resizing);
  g_threads.store(n < 1 ? 1 : n, std::memory_order_relaxed);
  if (c.workers() != num_threads() - 1) c.resize(num_threads() - 1);
}

void detail::run_pieces(int64_t n, int64_t grain, PieceFn call, const void* fn) {
  Task task;
  task.n = n;
  task.grain = grain < 1 ? 1 : grain;
  task.pieces = (n + task.grain - 1) / task.grain;
  task.call = call;
  task.fn = fn;
  if (t_inside || num_threads() == 1 || crew().workers() == 0 || !crew().run(task)) task.work();
  if (task.error) std::rethrow_exception(task.error);
}

}  // namespace tenon
