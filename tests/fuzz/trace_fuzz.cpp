#include "core/error.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/trace_reader.h"

// Whatever opens is also looked at by every analysis.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  try {
    tracing::TraceRequest r;
    traces::ReadOptions one;
    one.threads = 1;
    r.traces.push_back(traces::parse_trace({reinterpret_cast<const char*>(data), size}, one));
    for (const auto& a : tracing::trace_analyses())
      if (a.min_traces == 1) a.run(r);
  } catch (const Error&) {
  }
  return 0;
}
