#include "core/error.h"
#include "tracing/analyses/snapshot_analysis.h"

// Whatever opens is also looked at by every analysis.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  try {
    tracing::SnapshotRequest r;
    r.snapshots.push_back(snapshot::parse_snapshot({reinterpret_cast<const char*>(data), size}));
    for (const auto& a : tracing::snapshot_analyses())
      if (a.min_files == 1) a.run(r);
  } catch (const Error&) {
  }
  return 0;
}
