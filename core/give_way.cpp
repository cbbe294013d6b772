#include "core/give_way.h"

#include <algorithm>

#include "core/parallel.h"

#ifdef __linux__
#include <sys/resource.h>
#endif

namespace tenon {

void detail::lower_priority() {
  parallel_for(2, 1, [](int64_t, int64_t) {});  // its workers, where nobody made them yet, are not to be this thread's
#ifdef __linux__
  constexpr int kNicer = 5, kNicest = 19;  // a quarter of a core that a thread of the caller's wants, too
  // On Linux both calls are about the calling thread alone.
  setpriority(PRIO_PROCESS, 0, std::min(getpriority(PRIO_PROCESS, 0) + kNicer, kNicest));
#endif
}

}  // namespace tenon
