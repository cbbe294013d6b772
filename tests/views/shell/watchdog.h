#pragma once
#include <atomic>
#include <cstdint>
#include <thread>

namespace tenon::views::testing {

/// A program that a signal ends says which one, and prints the stack of the thread that it came to: where only the
/// output of a test is kept, nothing else tells what happened. Sanitizers, which tell more, keep their own.
void tell_what_ends_the_program();

/// Ends the program where one act takes minutes: a window that hangs is a finding. The log's last line says which act
/// it was, and the stack of every thread is printed, to say where.
class Watchdog {
 public:
  Watchdog();
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void act_done() { ++acts_; }

 private:
  std::atomic<int64_t> acts_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace tenon::views::testing
