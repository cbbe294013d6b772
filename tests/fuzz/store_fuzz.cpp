#include "core/error.h"
#include "tests/fuzz/sealed_store.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/store_file.h"

// A saved store of a trace that someone made. Whatever opens is also looked at by every analysis.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  const SealedStore store(data, size);
  if (!store.written()) return 0;
  try {
    tracing::TraceRequest r;
    r.traces.push_back(traces::open_store(store.path(), {"/a/trace.json", 1256, 7, "00ff"}));
    if (r.traces[0])
      for (const auto& a : tracing::trace_analyses())
        if (a.min_traces == 1) a.run(r);
  } catch (const Error&) {
  }
  return 0;
}
