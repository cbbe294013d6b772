#include <unistd.h>

#include <cstdlib>

#include "core/error.h"
#include "core/file.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/store_file.h"

// A saved store whose bytes have changed on the disk. Whatever opens is also looked at by every analysis.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  static const std::string path = [] {
    char name[] = "/tmp/tenon-store-XXXXXX";
    int fd = mkstemp(name);
    if (fd >= 0) close(fd);
    return std::string(name);
  }();
  try {
    write_file(path, {reinterpret_cast<const char*>(data), size});
    tracing::TraceRequest r;
    r.traces.push_back(trace::open_store(path, {"/a/trace.json", 1256, 7, "00ff"}));
    if (r.traces[0])
      for (const auto& a : tracing::trace_analyses())
        if (a.min_traces == 1) a.run(r);
  } catch (const Error&) {
  }
  unlink(path.c_str());
  return 0;
}
