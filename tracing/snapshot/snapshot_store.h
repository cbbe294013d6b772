#pragma once
#include <memory>
#include <string>

#include "tracing/snapshot/snapshot.h"
#include "tracing/trace/column_file.h"

namespace tenon::snapshot {

inline constexpr traces::StoreKind kSnapshotStore{"TENONMS2", ".tenon-memory", "snapshots"};

/// Writes a store to a file of its own; throws Error where it cannot be written.
void write_store(const Snapshot& snapshot, const traces::FileKey& key, const std::string& store_path);
/// Maps a store written for the file of that key; null where it is damaged or belongs to other bytes.
std::shared_ptr<const Snapshot> open_store(const std::string& store_path, const traces::FileKey& key);
/// Maps a store that is given as a file itself, wherever it lies now. Throws Error where it is damaged.
std::shared_ptr<const Snapshot> open_given_store(const std::string& store_path);

}  // namespace tenon::snapshot
