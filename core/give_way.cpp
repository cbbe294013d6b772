#include "core/give_way.h"

#include <algorithm>

#include "core/parallel.h"

#ifdef __linux__
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace tenon {

namespace {
#ifdef __linux__
/// What sched_setattr() takes, as sched(7) has it; the C library names neither.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes), policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0, deadline = 0, period = 0;  ///< nanoseconds
};

/// Of the calling thread. Linux takes the time that a thread would like to run at a stretch (from 6.12 on): whoever
/// wants less, as a window and the server that draws it do, is let in at once when it wakes. Otherwise it waits for a
/// turn to end: up to nine milliseconds for each of the dozen answers of the server that a new picture takes.
void run_in_long_turns(int nice) {
  if (sched_getscheduler(0) != SCHED_OTHER) return;  // somebody has chosen another order
  SchedulingAttributes wanted;
  wanted.nice = nice;
  wanted.runtime = 50'000'000;
  syscall(SYS_sched_setattr, 0, &wanted, 0U);
}
#endif
}  // namespace

void detail::lower_priority() {
  parallel_for(2, 1, [](int64_t, int64_t) {});  // its workers, where nobody made them yet, are not to be this thread's
#ifdef __linux__
  constexpr int kNicer = 5, kNicest = 19;  // a quarter of a core that a thread of the caller's wants, too
  // On Linux both calls are about the calling thread alone.
  const int nice = std::min(getpriority(PRIO_PROCESS, 0) + kNicer, kNicest);
  setpriority(PRIO_PROCESS, 0, nice);
  run_in_long_turns(nice);
#endif
}

}  // namespace tenon
