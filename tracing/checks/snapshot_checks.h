#pragma once
#include <memory>
#include <vector>

#include "tracing/checks/check.h"
#include "tracing/snapshot/snapshot.h"

namespace tenon::tracing {

/// A memory snapshot, as the checks of one read it.
struct CheckedSnapshot {
  std::shared_ptr<const snapshot::Snapshot> snapshot;
};

/// Sorted by name.
const Registry<FileCheck<CheckedSnapshot>>& snapshot_checks();
bool register_snapshot_check(FileCheck<CheckedSnapshot> check, Place place = Place::current());
std::vector<CheckResult> check_snapshot(std::shared_ptr<const snapshot::Snapshot> snapshot);

}  // namespace tenon::tracing
