#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "tracing/analyses/finding.h"
#include "tracing/snapshot/snapshot.h"

namespace tenon::tracing {

/// What is analysed and how.
struct SnapshotRequest {
  std::vector<std::shared_ptr<const snapshot::Snapshot>> snapshots;  ///< for a comparison, A and B
  int64_t device = -1;                                               ///< -1: the one with most events, or most reserved
  int64_t at = -1;                                                   ///< event of the device's trace; -1: the end
  size_t top = 20;                                                   ///< rows of a table at most
  std::vector<std::string> settings;  ///< what-if: as in PYTORCH_CUDA_ALLOC_CONF; none: a list of the usual ones
  int64_t limit = 0;  ///< what-if: bytes the device can give; 0: what an out-of-memory event tells, or no limit
  const snapshot::Snapshot& first() const { return *snapshots.front(); }
};

/// One analysis of memory snapshots, registered in the file that defines it; `tenon memory NAME` is made of it.
struct SnapshotAnalysis {
  std::string name, help;
  size_t min_files = 1, max_files = 1;
  Finding (*run)(const SnapshotRequest&);
};
bool register_snapshot_analysis(SnapshotAnalysis analysis, Place place = Place::current());
/// Sorted by name.
const Registry<SnapshotAnalysis>& snapshot_analyses();

/// Index into Snapshot::traces of the asked device; npos where it has no events.
size_t asked_trace(const snapshot::Snapshot& s, int64_t device);
/// The device that is asked for: its number.
int64_t asked_device(const snapshot::Snapshot& s, int64_t device);

/// What is alive by the place that allocated it, largest first.
struct Owner {
  uint32_t stack = snapshot::kNone;
  std::string site;
  int64_t bytes = 0, count = 0;
};
std::vector<Owner> owners(const snapshot::Snapshot& s, const snapshot::Timeline& timeline,
                          const std::vector<uint32_t>& elements);
/// Of the active blocks of a device's segments.
std::vector<Owner> block_owners(const snapshot::Snapshot& s, int64_t device);

/// A place whose allocations stay and grow in number. See Note [What a leak is].
struct Leak {
  std::string site;
  uint32_t stack = snapshot::kNone;
  int64_t bytes = 0, count = 0;  ///< of those that stayed
  double bytes_per_window = 0;
  size_t windows = 0;  ///< in which some stayed, of those looked at
};
std::vector<Leak> find_leaks(const snapshot::Snapshot& s, size_t trace, size_t* windows_looked_at = nullptr);

}  // namespace tenon::tracing
