#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "tracing/trace/column_file.h"
#include "tracing/trace/trace_store.h"

namespace tenon::traces {

inline constexpr StoreKind kTraceStore{"TENONTR6", ".tenon-trace", "traces"};

/// Writes a store to a file of its own; throws Error where it cannot be written.
/// `kept`: see keep_store().
void write_store(const Trace& trace, const FileKey& key, const std::string& store_path, std::string_view kept = {});
/// Maps a store written for the file of that key; null where it is damaged or belongs to other bytes.
std::shared_ptr<const Trace> open_store(const std::string& store_path, const FileKey& key);

/// Maps a store that is given as a file itself, wherever it lies now; texts of events come from the trace that it was
/// saved for, while that is as it was. Throws Error where it is damaged.
std::shared_ptr<const Trace> open_given_store(const std::string& store_path);

/// Saves the store of a text of kWorthSaving or more; quietly not at all where it cannot be.
void save_store(const Trace& trace, const FileKey& key, std::string_view kept = {});

}  // namespace tenon::traces
