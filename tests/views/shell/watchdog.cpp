#include "tests/views/shell/watchdog.h"

#include <execinfo.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
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

// The handler writes what it has and nothing else: the heap may be what is broken.
void tell_end(int signal) {
  static constexpr char kSaid[] = "the program ends by signal ";
  const char number[] = {static_cast<char>('0' + signal / 10), static_cast<char>('0' + signal % 10), '\n'};
  const bool written =
      write(STDERR_FILENO, kSaid, sizeof kSaid - 1) > 0 && write(STDERR_FILENO, number, sizeof number) > 0;
  if (written) print_stack(signal);
  raise(signal);  // the default again, see SA_RESETHAND
}
}  // namespace

void tell_what_ends_the_program() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  void* first[1];
  backtrace(first, 1);                       // loads what it needs here, and not in the handler
  static std::array<char, 256 << 10> aside;  // for a stack that is full
  const stack_t stack{.ss_sp = aside.data(), .ss_flags = 0, .ss_size = aside.size()};
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = tell_end;
  action.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND);
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigaction(signal, &action, nullptr);
#endif
}

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
