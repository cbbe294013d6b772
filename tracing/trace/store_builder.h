#pragma once
#include <memory>
#include <vector>

#include "tracing/trace/parts.h"
#include "tracing/trace/source_text.h"
#include "tracing/trace/trace_store.h"

namespace tenon::traces {

inline constexpr int64_t kRounding = 1000;  ///< times of PyTorch before 2.4 are whole microseconds

/// A store whose columns are in memory.
class OwnedTrace : public Trace {
 public:
  friend class StoreBuilder;

 private:
  std::vector<int64_t> start_, duration_;
  std::vector<uint32_t> name_;
  std::vector<uint64_t> source_at_;
  std::vector<uint16_t> category_;
  std::vector<uint8_t> flags_;
  std::vector<Link> launch_list_, forward_backward_list_;
  std::vector<MemoryEvent> memory_list_;
  std::vector<uint64_t> name_end_list_;
  std::string name_text_;
};

/// Puts the parts of a file together: one numbering of names and rows, begins matched with ends, rows sorted and cut
/// into lanes, calls linked with what they launched. The result is the same however the text was cut.
class StoreBuilder {
 public:
  explicit StoreBuilder(std::vector<Part> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<OwnedTrace> build(const Outline& outline, const SourceText& source);
  Mended& mended() { return mended_; }

 private:
  struct RowData {
    std::vector<PartEvent> events;
    std::vector<std::pair<uint32_t, int64_t>> correlated;  ///< (index in events, correlation)
    std::vector<uint32_t> order;                           ///< events in the order of the store
    std::vector<uint16_t> depth;                           ///< of each in `order`
    std::vector<EventId> id;                               ///< of each event
    bool free_lanes = false;  ///< no stack of calls: an event takes the first lane that is free
  };
  void number_texts(const SourceText& source);
  void gather_rows();
  void gather_asyncs();
  void match_begins(RowData& row);
  void bound_durations();
  void sort_row(RowData& row);
  void name_rows();
  void write_columns();
  void link_launches();
  void link_by_external_id(const SourceText& source);
  void link_flows();
  void gather_counters();
  uint32_t row_of(std::string_view pid, std::string_view tid);
  EventId enclosing(uint32_t row, int64_t time) const;

  std::vector<Part> parts_;
  std::shared_ptr<OwnedTrace> out_;
  Mended mended_;
  Interner names_, categories_, row_texts_;
  std::vector<std::vector<uint32_t>> name_map_, category_map_, row_map_;  ///< per part
  std::unordered_map<uint64_t, uint32_t> row_by_key_;
  std::vector<RowData> rows_;
  int64_t last_end_ = INT64_MIN;
  int64_t longest_unfinished_ = INT64_MAX;
};

}  // namespace tenon::traces
