#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "core/error.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/store_file.h"

// A saved store whose bytes have changed on the disk. Whatever opens is also looked at by every analysis.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  const int fd = memfd_create("store", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size)) return 0;
  try {
    tracing::TraceRequest r;
    r.traces.push_back(traces::open_store("/proc/self/fd/" + std::to_string(fd), {"/a/trace.json", 1256, 7, "00ff"}));
    if (r.traces[0])
      for (const auto& a : tracing::trace_analyses())
        if (a.min_traces == 1) a.run(r);
  } catch (const Error&) {
  }
  close(fd);
  return 0;
}
