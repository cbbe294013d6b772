#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::views {

/// A moment or a stretch of a document that a person marked, with what they wrote to it.
struct Bookmark {
  double from = 0, to = 0;  ///< nanoseconds on a trace's axis, or events of a snapshot; equal: a moment
  std::string note;
  bool operator==(const Bookmark&) const = default;
};

/// How a person left an opened file: kept beside the settings by the file's path, never beside the file itself.
struct DocumentState {
  double lo = 0, hi = 0;     ///< what of its axis was seen; hi <= lo: all of it
  std::vector<bool> folded;  ///< bands of its timeline
  std::vector<Bookmark> bookmarks;
  std::vector<bool> pinned = {};  ///< bands that stay at its top
  /// Of a snapshot: what of it was seen. Its axis is that of one device's events, or of their time.
  struct Memory {
    int64_t trace = -1;  ///< of the snapshot; below 0: nothing is known
    std::string by;      ///< what its memory was divided by
    bool over_time = false;
    int64_t cursor = 0;  ///< an event of the device
    bool operator==(const Memory&) const = default;
  };
  Memory memory = {};
  bool operator==(const DocumentState&) const = default;
};
/// Never throws: what cannot be read counts as a file that was never opened.
DocumentState document_state(const std::string& path);
/// Throws Error naming the file that cannot be written. A state that says nothing leaves no file.
void set_document_state(const std::string& path, const DocumentState& state);

}  // namespace tenon::views
