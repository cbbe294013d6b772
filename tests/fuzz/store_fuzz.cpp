#include "core/error.h"
#include "tests/fuzz/sealed_store.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/analyses/whole_overview.h"
#include "tracing/trace/store_file.h"

// A saved store of a trace that someone made. Whatever opens is also looked at by every analysis.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  const SealedStore store(data, size);
  if (!store.written()) return 0;
  try {
    tracing::TraceRequest r;
    r.traces.push_back(traces::open_store(store.path(), {"/a/trace.json", 1256, 7, "00ff"}));
    if (!r.traces[0]) return 0;
    for (const auto& a : tracing::trace_analyses())
      if (a.min_traces == 1) a.run(r);
    const auto overview = tracing::whole_overview(r.traces[0]);
    for (const tracing::Table& table : overview->finding.tables)
      for (const tracing::Sight& s : table.sights)
        if (s.event >= 0) r.traces[0]->event_name(static_cast<traces::EventId>(s.event));
  } catch (const Error&) {
  }
  return 0;
}
