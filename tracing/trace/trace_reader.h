#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tracing/trace/trace_store.h"

namespace tenon::traces {

struct ReadOptions {
  int threads = 0;         ///< 0: every core
  bool read_cache = true;  ///< take the store that was saved of it, where it belongs to these bytes
  bool write_cache = true;
  bool keep_text = true;  ///< of parse_trace(): false: events have no text
  /// Called with (bytes done, bytes in all), on any thread, one call at a time; returning false throws Error
  /// "cancelled".
  std::function<bool(uint64_t done, uint64_t total)> progress;
};

/// Reads a trace: PyTorch's (Kineto) of any version, or any other in Chrome's trace format; plain, gzip, zstd, or a
/// member of a zip; or the store that was saved of one. What is broken is mended or passed over, and counted. Memory is
/// bounded by the number of events that the text really holds. Throws Error naming the file where it is no trace at
/// all, or cannot be read.
std::shared_ptr<const Trace> read_trace(const std::string& path, const ReadOptions& options = {});
/// The events at the beginning of a trace, from so many bytes of its text: something to see while the whole is read.
/// Null where it has a store, which opens at once, or where nothing can be told of a file's beginning (a zip). Throws
/// Error as read_trace().
std::shared_ptr<const Trace> read_beginning(const std::string& path, size_t bytes);
/// Saves the store of a trace that was read without: it opens at once the next time. Nothing where it has one, or is
/// small, or its file has changed. `kept`: what Trace::kept() shall be the next time; where it is something, it takes
/// the place of a store that there is.
void keep_store(const Trace& trace, std::string_view kept = {});
/// Of text in memory.
std::shared_ptr<const Trace> parse_trace(std::string text, const ReadOptions& options = {});

/// The files of a session: `paths` with folders replaced by the traces in them and zips by their members, sorted by
/// name.
std::vector<std::string> trace_files(const std::vector<std::string>& paths);

/// Where the store of a file is saved: in the user's cache folder.
std::string cache_path(const std::string& trace_path);

}  // namespace tenon::traces
