#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "tracing/trace/trace_store.h"

namespace tenon::traces {

/// What says whether a saved store still belongs to its file.
struct FileKey {
  std::string path;  ///< absolute
  uint64_t bytes = 0;
  int64_t changed_ns = 0;  ///< time of the last change
  std::string hash;        ///< SHA-256 of the first and last 64 KiB
};
FileKey file_key(const std::string& path);
/// Whether the file still has the size and the time of its last change; the bytes are not looked at.
bool unchanged(const FileKey& key);

/// Writes a store to a file of its own; throws Error where it cannot be written.
void write_store(const Trace& trace, const FileKey& key, const std::string& store_path);
/// Maps a store written for the file of that key; null where it is damaged or belongs to other bytes.
std::shared_ptr<const Trace> open_store(const std::string& store_path, const FileKey& key);

/// Whether a file's first bytes are those of a store.
bool is_store(std::string_view bytes);
/// Maps a store that is given as a file itself, wherever it lies now; texts of events come from the trace that it was
/// saved for, while that is as it was. Throws Error where it is damaged.
std::shared_ptr<const Trace> open_given_store(const std::string& store_path);

/// Saves the store of a text of some megabytes or more where cache_path() says, or in the user's cache folder; quietly
/// not at all where neither can be written.
void save_store(const Trace& trace, const FileKey& key);
/// The saved store of a file, mapped; null where there is none, or it belongs to other bytes, or is damaged.
std::shared_ptr<const Trace> load_store(const std::string& path);

}  // namespace tenon::traces
