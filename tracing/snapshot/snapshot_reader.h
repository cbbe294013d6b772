#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tracing/snapshot/pickle_memo.h"
#include "tracing/snapshot/snapshot.h"
#include "tracing/snapshot/snapshot_keys.h"
#include "tracing/trace/parts.h"

namespace tenon::snapshot {

/// Builds a Snapshot from values in the order in which a pickle (or JSON) makes them. What is complete becomes a row of
/// a column at once, so memory holds a row an event, never the objects themselves.
class Machine {
 public:
  explicit Machine(Snapshot& out);

  struct Value {
    enum class Tag : uint8_t {
      none,
      boolean,
      integer,
      real,
      text,
      list,
      dict,
      tuple,
      mark,
      frame,
      gone
    } tag = Tag::none;
    uint32_t index = 0;  ///< of a text, container or frame
    union {
      int64_t integer = 0;
      double real;
      uint64_t serial;  ///< of the container when this value was made
    };
  };

  void push(Value v) { stack_.push_back(v); }
  void push_integer(int64_t v);
  void push_real(double v);
  void push_boolean(bool v);
  void push_none() { stack_.push_back({}); }
  void push_text(std::string_view text);
  void push_container(Value::Tag tag);
  void mark();
  void append();   ///< item onto the list below it
  void appends();  ///< items above the mark onto the list below it
  void set_item();
  void set_items();
  void tuple(size_t count);  ///< of the topmost values
  void tuple_to_mark();
  void pop();
  void memoize() { memo_.push_back(packed(top())), ++puts_; }
  void memo_put(uint64_t index);
  void memo_get(uint64_t index);
  Value& top();
  size_t depth() const { return stack_.size(); }

  /// Events of the usual form that `bytes` begin with become rows, where the next value belongs to a list of events:
  /// returns how many bytes they are. See Note [Events at once].
  size_t events_at(std::string_view bytes);
  /// So much of the file has been read: how large the columns will become.
  void expect_rows(double share_read);
  /// Everything has been read (or the file ended): what still lies on the stack is taken for what it is.
  void finish(bool complete);

 private:
  struct Container {
    std::vector<Value> items;  ///< dict: keys and values in turn
    uint64_t serial = 0;
    uint32_t stack = kNone;  ///< of a list of frames, once numbered
    uint32_t rows = kNone;   ///< of a list whose items became rows: its number
    Value::Tag tag = Value::Tag::none;
  };
  struct Rows {  ///< a list whose items became rows
    enum class Of : uint8_t { events, blocks, segments, annotations } of;
    size_t begin = 0, end = 0;
  };

  /// What names a key of an event in the file, and which text it is.
  struct EventKey {
    uint64_t bytes = 0, mask = 0;
    uint32_t text = 0;
    uint8_t length = 0;  ///< 0: not known
  };
  static constexpr size_t kMostPairs = 16;

  /// Tag, index and the last 28 bits of the serial number, which tell a container from those before it in its place.
  uint64_t packed(const Value& v);
  Value unpacked(uint64_t slot) const;
  Container* container(const Value& v);
  void release(const Value& v);
  size_t last_mark() const;
  void add_to_list(Value list, Value item);
  bool become_row(Container& list, const Value& item);
  void dict_complete(Value& dict);
  const Value* field(const Container& dict, uint32_t key) const;
  int64_t integer_of(const Value* v, int64_t fallback) const;
  int64_t bytes_of(const Value* v, int64_t fallback, bool of_failure = false) const;
  std::string text_of(const Value& v) const;
  uint32_t stack_of(const Value* frames);
  uint32_t stack_with(uint32_t stack, uint32_t forward);
  uint32_t number(const std::vector<uint32_t>& frames);
  uint32_t frame(uint32_t file, uint32_t function, int64_t line);
  uint32_t forward_frame(std::string_view text);
  uint32_t stream_of(const Value* v);
  uint32_t pool_index(PoolId id);
  uint32_t open_events();
  Value pool_tuple(PoolId id);
  Value empty_list();
  size_t event_at(const char* begin);
  void add_event(const Container& dict);
  void add_event(const Value* const* known);
  Action action_of(const Value& text);
  void add_block(const Container& dict);
  void add_segment(const Container& dict);
  void add_annotation(const Container& dict);
  void top_level(const Value& v);

  Snapshot& out_;
  std::vector<Value> stack_;
  PickleMemo memo_;                              ///< packed values
  std::array<EventKey, kMostPairs> usual_keys_;  ///< of the event before, in their order
  std::vector<Value> memo_other_;                ///< what does not fit one: numbers, which picklers never memoise
  std::vector<Container> containers_;
  std::vector<uint32_t> free_;
  std::vector<Rows> rows_;
  std::vector<uint32_t> device_lists_;  ///< rows_ numbers of event lists, in the order of their first entry
  traces::Interner texts_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> stacks_by_hash_;
  std::unordered_map<int64_t, uint32_t> stream_index_;
  std::map<PoolId, uint32_t> pool_index_;
  std::map<PoolId, Value> pool_tuples_;
  Value empty_list_;
  struct FrameHash {
    size_t operator()(const std::tuple<uint32_t, uint32_t, int64_t>& f) const {
      return (std::get<0>(f) * 0x9E3779B97F4A7C15ull ^ std::get<1>(f)) * 0xD6E8FEB86659FD93ull ^
             static_cast<uint64_t>(std::get<2>(f));
    }
  };
  std::unordered_map<std::tuple<uint32_t, uint32_t, int64_t>, uint32_t, FrameHash> frame_index_;
  std::unordered_map<uint64_t, uint32_t> joined_;  ///< a stack and that of its forward call
  uint64_t serial_ = 0, puts_ = 0;
  size_t marks_ = 0;
  uint32_t keys_[kKeys];
  size_t expected_ = 0;  ///< rows that the columns have room for
  uint32_t last_stream_ = kNone;
  std::vector<std::pair<uint32_t, Action>> actions_;  ///< by text
};

}  // namespace tenon::snapshot
