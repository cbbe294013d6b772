#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracing/trace/scanner.h"
#include "tracing/trace/trace_store.h"

// What one thread makes of one part of the text, and how the parts become a store.
namespace tenon::traces {

/// Texts by number. of() keeps the view it is given, own() a copy.
class Interner {
 public:
  uint32_t of(std::string_view text);
  uint32_t own(std::string_view text);
  size_t size() const { return texts_.size(); }
  std::string_view operator[](uint32_t i) const { return texts_[i]; }
  const std::vector<std::string_view>& texts() const { return texts_; }

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t index = 0;  ///< plus 1; 0: empty
  };
  void grow();
  Slot& slot_of(std::string_view text, uint64_t hash);
  std::vector<std::string_view> texts_;
  std::vector<Slot> slots_;
  std::deque<std::string> owned_;
};

/// 32 bytes.
struct PartEvent {
  int64_t start, duration;
  uint64_t source;
  uint32_t name;
  uint16_t category;
  uint8_t flags;
  char phase;
};
static_assert(sizeof(PartEvent) == 32);

struct FlowEnd {
  int64_t time;
  uint32_t row;
  uint32_t id;  ///< interned text of category, name and id
  bool begin;
};
struct CounterPoint {
  uint32_t series;
  int64_t time;
  double value;
};
struct RowName {
  uint32_t row;  ///< tid empty: of the whole process
  char what;     ///< 'p' process_name, 't' thread_name, 'P' process_sort_index, 'T' thread_sort_index
  std::string text;
};

/// Begin, end or instant of an asynchronous slice.
struct AsyncEnd {
  int64_t time;
  uint64_t source;
  uint32_t row, name, id;  ///< id: interned text of category and id
  uint16_t category;
  char phase;
  bool everywhere;  ///< its id means the same in every process
};

struct Part {
  uint64_t begin = 0;  ///< where its first event stands
  uint64_t next = 0;   ///< where the event behind its last one stands
  bool array_ended = false;
  std::vector<std::vector<PartEvent>> rows;  ///< by the part's row number
  Interner names, categories, series, flow_ids;
  std::vector<std::pair<std::string_view, std::string_view>> row_ids;  ///< pid, tid as written
  Interner row_texts;
  std::unordered_map<uint64_t, uint32_t> row_by_key;
  /// (row, index in the row, correlation) of calls and of what ran on a GPU
  struct Correlated {
    uint32_t row, index;
    int64_t id;
  };
  std::vector<Correlated> correlated;
  std::vector<FlowEnd> flows;
  std::vector<CounterPoint> counters;
  std::vector<MemoryEvent> memory;
  std::vector<RowName> row_names;
  struct Use {
    uint32_t count = 0;
    uint64_t first = 0;  ///< byte of the first event that has the name
  };
  std::vector<Use> name_uses;
  std::vector<AsyncEnd> asyncs;
  Mended mended;
  uint64_t events = 0;
};

/// The whole number that an argument of the event at `at` is; -1 where it has none. `key` with its quotes.
int64_t argument_number(std::string_view text, uint64_t at, std::string_view quoted_key);
/// Reads events from `begin`, those that start before `stop`.
void read_part(std::string_view text, uint64_t begin, uint64_t stop, Part& part);
/// What a category's name means.
EventKind kind_of(std::string_view category);

}  // namespace tenon::traces
