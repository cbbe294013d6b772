#pragma once
#include <map>
#include <string>
#include <vector>

namespace tenon::traces {
class Trace;
}

namespace tenon::views {

/// What of a document is looked at. Every view of the document dims or leaves out the rest.
struct Filter {
  std::string name;         ///< part of a name, in any case of letters
  std::string module;       ///< of a step: this module, and those below it
  int64_t row = -1;         ///< a thread or stream, as the trace counts its rows; -1: all of them
  double from = 0, to = 0;  ///< nanoseconds, as Selection::range has them; to <= from: all of the time

  bool has_range() const { return to > from; }
  explicit operator bool() const { return !name.empty() || !module.empty() || row >= 0 || has_range(); }
  bool operator==(const Filter&) const = default;
};

/// One condition of a filter, in words: "stream 7", "12.1 ms to 14.0 ms"; and the filter without it.
struct FilterPart {
  std::string text;
  Filter without;
};
/// `trace` knows the names of rows; it may be null.
std::vector<FilterPart> parts_of(const Filter& f, const traces::Trace* trace);

/// The filters of all documents, each with its way back.
class Filters {
 public:
  const Filter& of(int document) const;
  /// `typed`: takes the place of one that was typed before it, so that a word is one step back, not one a letter.
  void set(int document, const Filter& f, bool typed = false);
  bool can_undo(int document) const;
  bool can_redo(int document) const;
  void undo(int document);
  void redo(int document);
  void forget(int document) { ways_.erase(document); }

 private:
  struct Way {
    std::vector<Filter> all{Filter{}};
    size_t at = 0;
    bool typing = false;  ///< the one it is at came by typing
  };
  const Way* way(int document) const;
  std::map<int, Way> ways_;
};

}  // namespace tenon::views
