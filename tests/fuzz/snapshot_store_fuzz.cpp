#include "core/error.h"
#include "tests/fuzz/sealed_store.h"
#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/snapshot/snapshot_store.h"
#include "tracing/snapshot/stacked_usage.h"

// A saved store of a memory snapshot that someone made. Whatever opens is also looked at by every analysis, and drawn.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  const SealedStore store(data, size);
  if (!store.written()) return 0;
  try {
    tracing::SnapshotRequest r;
    r.snapshots.push_back(snapshot::open_store(store.path(), {"/a/snapshot.pickle", 4109, 7, "00ff"}));
    if (!r.snapshots[0]) return 0;
    for (const auto& a : tracing::snapshot_analyses())
      if (a.min_files == 1) a.run(r);
    for (size_t i = 0; i < r.first().traces.size(); ++i) {
      const snapshot::Timeline timeline(r.first(), i);
      const snapshot::StackedUsage usage(r.first().divisions.at(i), r.first(), timeline);
      for (uint32_t id = 0; id < timeline.elements(); ++id)
        if (usage.band_of(id) >= usage.bands().size()) __builtin_trap();
      if (timeline.events() == 0) continue;
      usage.highest(0, timeline.events());
      usage.bytes(timeline.events() - 1);
    }
  } catch (const Error&) {
  }
  return 0;
}
