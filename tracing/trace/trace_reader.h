#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tracing/trace/trace_store.h"

namespace tenon::traces {

/// Some events of a file that is still being read, in the order of the file: enough to draw with until the whole is
/// there.
struct Chunk {
  struct Slice {
    int64_t start, duration;
    uint32_t name, row;  ///< into the chunk's own names and rows
  };
  std::vector<Slice> slices;
  std::vector<std::string_view> names;
  std::vector<std::pair<std::string_view, std::string_view>> rows;  ///< pid and tid
};

struct ReadOptions {
  int threads = 0;         ///< 0: every core
  bool read_cache = true;  ///< take the store saved beside the file, where it belongs to these bytes
  bool write_cache = true;
  /// Called with (bytes done, bytes in all), on any thread, one call at a time; returning false throws Error
  /// "cancelled".
  std::function<bool(uint64_t done, uint64_t total)> progress;
  /// Called with each part once it is read, in the order of the file, one call at a time.
  std::function<void(const Chunk&)> chunk;
};

/// Reads a trace: PyTorch's (Kineto) of any version, or any other in Chrome's trace format; plain, gzip, zstd, or a
/// member of a zip. What is broken is mended or passed over, and counted. Memory is bounded by the number of events
/// that the text really holds. Throws Error naming the file where it is no trace at all, or cannot be read.
std::shared_ptr<const Trace> read_trace(const std::string& path, const ReadOptions& options = {});
/// Of text in memory.
std::shared_ptr<const Trace> parse_trace(std::string text, const ReadOptions& options = {});

/// The files of a session: `paths` with folders replaced by the traces in them and zips by their members, sorted by
/// name.
std::vector<std::string> trace_files(const std::vector<std::string>& paths);

/// Where the store of a file is saved: beside it, or in the user's cache folder where that cannot be written.
std::string cache_path(const std::string& trace_path);

}  // namespace tenon::traces
