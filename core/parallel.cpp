#include "core/parallel.h"

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
  std::atomic<int> inside{0};  // workers between seeing the task and leaving it
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

class Crew {
 public:
  ~Crew() { resize(0); }

  void resize(int workers) {
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
  }
  int workers() const { return static_cast<int>(threads_.size()); }

  void run(Task& task) {
    current_.store(&task, std::memory_order_release);
    generation_.fetch_add(1, std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_seq_cst) > 0) {
      { std::lock_guard lock(mutex_); }
      wake_.notify_all();
    }
    t_inside = true;
    task.work();
    t_inside = false;
    current_.store(nullptr, std::memory_order_seq_cst);
    // Pieces are short, so the last one is nearly done; but its worker may have lost its core to someone else.
    for (int i = 0; busy_.load(std::memory_order_seq_cst) != 0; ++i) i < 2000 ? pause() : std::this_thread::yield();
  }

  std::mutex owner;  // who may hand out work

 private:
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
      // busy_ is raised before the task is read: run() clears current_ and then waits for busy_, so a task seen here
      // stays alive.
      busy_.fetch_add(1, std::memory_order_seq_cst);
      if (Task* task = current_.load(std::memory_order_seq_cst)) task->work();
      busy_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<Task*> current_{nullptr};
  std::atomic<int> sleeping_{0}, busy_{0};
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
  std::lock_guard lock(c.owner);
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
  std::unique_lock<std::mutex> lock;
  if (!t_inside && num_threads() > 1) lock = std::unique_lock(crew().owner, std::try_to_lock);
  if (lock.owns_lock() && crew().workers() > 0)
    crew().run(task);
  else
    task.work();
  if (task.error) std::rethrow_exception(task.error);
}

}  // namespace tenon
