#include "core/give_way.h"

#include "core/parallel.h"

#ifdef __linux__
#include <sys/resource.h>
#endif

namespace tenon {

void detail::lower_priority() {
  parallel_for(2, 1, [](int64_t, int64_t) {});  // its workers, where nobody made them yet, are not to be this thread's
#ifdef __linux__
  constexpr int kNice = 5;              // a third of the time of a core that another thread wants too
  setpriority(PRIO_PROCESS, 0, kNice);  // on Linux it is the calling thread's own
#endif
}

}  // namespace tenon
