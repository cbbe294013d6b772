#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The text of a trace, read event by event. JSON as it is found in the wild: see Note [Broken JSON].
namespace tenon::traces {

/// What JSON takes for a space.
inline bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/// Kinds of repairs, counted one by one.
enum class Mend : uint8_t {
  skipped_event,      ///< no event could be made of it
  skipped_arguments,  ///< the event stands, its arguments do not
  bare_quote,         ///< a quote inside a string that was not escaped
  bad_escape,         ///< a backslash before what needs none
  control_character,  ///< inside a string
  bad_utf8,
  missing_quote,  ///< before a key
  missing_comma,
  bad_number,         ///< a time that is no number: taken as 0
  negative_duration,  ///< taken as 0
  missing_time,       ///< an event without a start: taken as 0
  unmatched_begin,
  unmatched_end,
  orphan_flow,
  unknown_phase,
  object_event,  ///< life of an object (N, O, D): nothing to draw
  cut_short,     ///< the file ends inside the event
  nesting,       ///< deeper than any trace is
};
inline constexpr int kMends = 18;
const char* name(Mend m);

struct Mended {
  uint64_t count[kMends] = {};
  uint64_t first[kMends] = {};
  void add(Mend m, uint64_t at) {
    if (count[static_cast<int>(m)]++ == 0) first[static_cast<int>(m)] = at;
  }
  void add(const Mended& later);
};

/// One event as written; views of the text. Strings still carry their escapes where `escaped`.
struct RawEvent {
  struct Text {
    std::string_view raw;
    bool quoted = false, escaped = false;
  };
  uint64_t at = 0;  ///< of its `{`
  Text name, cat, pid, tid, id;
  std::string_view id2;  ///< the object's text: {"local": ..} or {"global": ..}
  char phase = 0;
  bool has_ts = false, has_dur = false, repaired = false, binds_enclosing = false;
  int64_t ts = 0, dur = 0;          ///< nanoseconds
  uint64_t args = 0, args_end = 0;  ///< the arguments' text, `{` to behind `}`; 0 where there are none
  int64_t correlation = -1;         ///< arguments "correlation"
};

/// Reads events one after the other from an array's text.
class EventScanner {
 public:
  EventScanner(std::string_view text, Mended& mended) : text_(text), mended_(mended) {}

  enum class Result : uint8_t { event, end_of_array, end_of_text };
  /// The next event that starts before `stop`. Otherwise the place of the next event (`at()`), or behind the array's
  /// end.
  Result next(RawEvent& event, uint64_t stop);
  uint64_t at() const { return at_; }
  void seek(uint64_t at) { at_ = at; }
  bool reached_stop() const { return reached_stop_; }

 private:
  bool read_event(RawEvent& e);
  bool read_field(RawEvent& e, std::string_view key);
  bool read_arguments(RawEvent& e);
  bool read_string(RawEvent::Text& out, bool key, bool careful);
  bool read_value(RawEvent::Text& out);
  bool read_time(int64_t& ns);
  bool skip_value(int depth);
  void skip_blank();
  bool ends_string(size_t quote, bool key) const;
  /// The next place after `from` where an event seems to start; the text's end where there is none.
  uint64_t resynchronise(uint64_t from);

  std::string_view text_;
  Mended& mended_;
  uint64_t at_ = 0;
  bool reached_stop_ = false;
};

/// A place at or after `from` and before `to` where an event most likely starts; npos where there is none.
uint64_t likely_event(std::string_view text, uint64_t from, uint64_t to);

/// Decimal text of microseconds as whole nanoseconds, never through a double; false where it is no number. Rounds half
/// up.
bool parse_microseconds(std::string_view text, int64_t& ns);
/// Escapes resolved; what is no escape stays. Bytes that are no UTF-8 become U+FFFD; `mended` is told of both.
std::string unescape(std::string_view raw, Mended* mended = nullptr, uint64_t at = 0);
/// Bytes that are no UTF-8 replaced by U+FFFD; false where there were none.
bool mend_utf8(std::string_view raw, std::string& out);

/// The text of the event that starts at `at`, as far as the scanner reads it: quotes inside of names do not end it
/// early. Empty where none can be read.
std::string_view event_extent(std::string_view text, uint64_t at);
/// The fields of an object's text, values decoded where they are strings and as written otherwise; as many as there are
/// before it breaks off.
std::vector<std::pair<std::string, std::string>> object_fields(std::string_view object);
/// The fields of the "args" of an event's text.
std::vector<std::pair<std::string, std::string>> decode_arguments(std::string_view event_text);

/// The outermost keys of a trace: what stands before and behind the events.
struct Outline {
  uint64_t events_begin = 0;  ///< behind the `[`
  bool array_form = false;    ///< the file is the array itself
  bool found = false;
  std::vector<std::pair<std::string, std::string>> metadata;
};
/// Reads up to the events.
Outline read_head(std::string_view text, Mended& mended);
/// Reads what follows the array of events, from behind its `]`.
void read_tail(std::string_view text, uint64_t from, Outline& outline, Mended& mended);

}  // namespace tenon::traces
