#include "tests/views/shell/watchdog.h"

#include <execinfo.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace tenon::views::testing {

namespace {
constexpr int kTellStack = SIGUSR2;

void print_stack(int) {
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
}

void print_all_stacks() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const pid_t thread = std::atoi(task.path().filename().c_str());
    std::fprintf(stderr, "thread %d%s\n", thread, thread == getpid() ? ", the window's" : "");
    syscall(SYS_tgkill, getpid(), thread, kTellStack);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // one stack after the other
  }
}
}  // namespace

Watchdog::Watchdog() {
  void* first[1];
  backtrace(first, 1);  // loads what it needs here, and not in the signal's handler
  std::signal(kTellStack, print_stack);
  thread_ = std::thread([this] {
    constexpr int kLooksPerSecond = 5, kSeconds = 240;
    int64_t seen = -1;
    for (int still = 0; !over_;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1000 / kLooksPerSecond));
      still = acts_ == seen ? still + 1 : 0;
      seen = acts_;
      if (still < kLooksPerSecond * kSeconds) continue;
      std::fflush(stdout);  // whatever the test said before it hung
      std::fprintf(stderr, "the window hangs: no act came to its end in four minutes, after %lld of them\n",
                   static_cast<long long>(seen));
      print_all_stacks();
      std::abort();
    }
  });
}

Watchdog::~Watchdog() {
  over_ = true;
  thread_.join();
}

}  // namespace tenon::views::testing
