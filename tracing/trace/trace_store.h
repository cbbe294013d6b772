#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

// Events of a trace as columns that a canvas and an analysis query by range. Times are nanoseconds from the store's
// `base`.
namespace tenon::traces {

/// What a category's events are; files of every version and vendor are folded into these.
enum class EventKind : uint8_t {
  other,
  cpu_op,
  annotation,
  python,
  runtime,
  kernel,
  memcpy,
  memset,
  gpu_annotation,
  gpu_sync,
  overhead,
  instant,
  async
};
inline constexpr int kKinds = 13;
const char* name(EventKind k);
constexpr bool on_gpu(EventKind k) {
  return k == EventKind::kernel || k == EventKind::memcpy || k == EventKind::memset;
}

enum Flag : uint8_t {
  kInstant = 1,     ///< a point in time
  kUnfinished = 2,  ///< begun and never ended: it lasts until the end of what the file holds
  kRepaired = 4,    ///< something of it could not be read as written
};

using EventId = uint32_t;
inline constexpr EventId kNone = ~0u;

/// A category as the file names it.
struct Category {
  std::string name;
  EventKind kind = EventKind::other;
  uint64_t events = 0;
};

/// One thread or stream. Its events lie on lanes: lane 0 outermost; the events of a lane never overlap.
struct Row {
  std::string pid, tid;                 ///< as the file writes them
  std::string process, thread, labels;  ///< names, where the file gives them
  int64_t pid_number = 0, tid_number = 0;
  int64_t process_order = 0, order = 0;  ///< sort indices
  bool gpu = false;                      ///< a stream: it holds kernels or copies
  uint32_t first_lane = 0, lanes = 0;
  uint64_t events = 0;
  std::string label() const;
};
struct Lane {
  uint32_t row = 0, depth = 0;
  EventId begin = 0, end = 0;  ///< its events, sorted by start
};

/// Several neighbours of a lane in one: what a pixel shows of them.
struct Summary {
  int64_t start = 0, end = 0;
  int64_t busy = 0;  ///< sum of durations
  EventId longest = kNone;
  uint32_t count = 0;
  uint8_t flags = 0;  ///< of all of them
};

/// Two events that belong together. Launch: the call on the CPU and what ran on the GPU.
struct Link {
  EventId from = kNone, to = kNone;
};
struct Counter {
  std::string name;  ///< "GPU 0 Counters: sm__cycles"
  std::vector<int64_t> time;
  std::vector<double> value;
};
/// One `[memory]` instant of PyTorch's profiler.
struct MemoryEvent {
  int64_t time = 0, bytes = 0;  ///< negative: freed
  int64_t allocated = -1, reserved = -1;
  uint64_t address = 0;
  int32_t device_type = 0, device = 0;  ///< 0 CPU, 1 CUDA
};
/// One kind of thing that was mended or passed over.
struct Repair {
  std::string kind;
  uint64_t count = 0;
  uint64_t first_byte = 0;
};

/// The fixed-size columns; owned by the store, in memory or in a mapped file. 28 bytes an event, and 4 for its
/// category, flags and byte to spare.
struct Columns {
  std::span<const int64_t> start, duration;
  std::span<const uint32_t> name;    ///< into the store's names
  std::span<const uint64_t> source;  ///< byte of the event in the source text
  std::span<const uint16_t> category;
  std::span<const uint8_t> flags;
};

class Trace {
 public:
  virtual ~Trace() = default;

  const std::string& path() const { return path_; }
  size_t size() const { return columns_.start.size(); }
  const Columns& columns() const { return columns_; }
  int64_t start(EventId e) const { return columns_.start[e]; }
  int64_t duration(EventId e) const { return columns_.duration[e]; }
  int64_t end(EventId e) const { return columns_.start[e] + columns_.duration[e]; }
  std::string_view event_name(EventId e) const { return text(columns_.name[e]); }
  const Category& category(EventId e) const { return categories_[columns_.category[e]]; }
  EventKind kind(EventId e) const { return categories_[columns_.category[e]].kind; }
  std::string_view text(uint32_t name) const;
  size_t names() const { return name_ends_.size(); }
  uint32_t find_name(std::string_view text) const;  ///< kNone where no event has it

  const std::vector<Category>& categories() const { return categories_; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Lane>& lanes() const { return lanes_; }
  uint32_t lane_of(EventId e) const;
  uint32_t row_of(EventId e) const { return lanes_[lane_of(e)].row; }

  /// Events of a lane that touch [from, to).
  std::pair<EventId, EventId> range(uint32_t lane, int64_t from, int64_t to) const;
  /// The event of a lane that covers `time`; kNone where there is none.
  EventId at(uint32_t lane, int64_t time) const;
  /// The event one lane further out that it lies in.
  EventId parent(EventId e) const;
  /// At most about `buckets` summaries that cover what of the lane touches [from, to), in order: single events where
  /// they are few.
  std::vector<Summary> summarise(uint32_t lane, int64_t from, int64_t to, size_t buckets) const;

  /// Sorted by `to`: what ran on the GPU and the call that launched it.
  std::span<const Link> launches() const { return launches_; }
  EventId launch_of(EventId gpu_event) const;
  /// Sorted by `from`: forward ops and the backward ops that belong to them.
  std::span<const Link> forward_backward() const { return forward_backward_; }
  const std::vector<Counter>& counters() const { return counters_; }
  std::span<const MemoryEvent> memory() const { return memory_; }

  int64_t base() const { return base_; }      ///< nanoseconds of time 0: since 1970 where the file says so
  int64_t begin() const { return begin_; }    ///< of the first event
  int64_t finish() const { return finish_; }  ///< of the last end
  /// The outermost keys beside the events and their JSON, up to a few kilobytes each.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  std::string metadata(std::string_view key) const;  ///< empty where it has none
  int64_t rank() const { return rank_; }             ///< of distributedInfo; -1 where it is not told
  const std::vector<Repair>& repairs() const { return repairs_; }
  bool truncated() const { return truncated_; }
  uint64_t source_bytes() const { return source_bytes_; }
  bool from_cache() const { return from_cache_; }
  /// What an analysis had put into the store that this was opened from, as it wrote it (tracing::whole_overview()).
  std::string_view kept() const { return kept_; }

  /// The JSON text of an event as the file has it; empty where the file is gone or has changed since. Unpacks a
  /// compressed file once.
  std::string event_text(EventId e) const;
  /// Of an event that a TraceMaker made: the number it was given.
  uint64_t number(EventId e) const { return columns_.source[e]; }

  /// What analyses work out of the whole trace, one of a type T: make() is called for the first who asks, and shared by
  /// all who ask while somebody still holds it. From any thread; but make() must not ask for a T itself.
  template <class T, class Make>
  std::shared_ptr<const T> shared(const Make& make) const {
    const std::shared_ptr<Shared> place = shared_place(typeid(T));
    std::lock_guard lock(place->making);
    auto held = std::static_pointer_cast<const T>(place->made.lock());
    if (!held) place->made = held = std::make_shared<const T>(make());
    return held;
  }

 protected:
  friend class StoreBuilder;
  friend class StoreFile;
  friend class TraceMaker;
  friend std::shared_ptr<const Trace> read_trace(const std::string&, const struct ReadOptions&);
  friend std::shared_ptr<const Trace> parse_trace(std::string, const struct ReadOptions&);
  friend void keep_store(const Trace& trace, std::string_view kept);
  void finish_levels();
  std::string made_text(EventId e) const;

  std::string path_;
  Columns columns_;
  std::span<const Link> launches_, forward_backward_;
  std::span<const MemoryEvent> memory_;
  std::span<const uint64_t> name_ends_;
  std::string_view name_bytes_, kept_;
  std::vector<Category> categories_;
  std::vector<Row> rows_;
  std::vector<Lane> lanes_;
  std::vector<Counter> counters_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::vector<Repair> repairs_;
  int64_t base_ = 0, begin_ = 0, finish_ = 0, rank_ = -1;
  uint64_t source_bytes_ = 0;
  bool truncated_ = false, from_cache_ = false;
  std::shared_ptr<const struct FileKey> key_;  ///< of the file that was read; null for text in memory
  mutable std::mutex opening_;                 ///< of the source, which several threads ask for
  mutable std::shared_ptr<const class SourceText> source_;
  std::function<std::string(uint64_t number)> made_arguments_;  ///< of a store that was in no file
  std::function<std::string(EventId e)> text_of_;               ///< of a store that others were joined to

 private:
  // Level of detail: blocks of 64 events, of 64 blocks, ... per lane.
  struct Level {
    std::vector<Summary> blocks;
    std::vector<uint32_t> first;  ///< per lane, its first block
  };
  std::vector<Level> levels_;

  struct Shared {
    std::mutex making;
    std::weak_ptr<const void> made;
  };
  std::shared_ptr<Shared> shared_place(const std::type_info& type) const;
  mutable std::mutex sharing_;
  mutable std::map<std::type_index, std::shared_ptr<Shared>> shared_;
};

/// Arguments of an event, decoded from its text: keys and values as text (strings unescaped, everything else as
/// written).
std::vector<std::pair<std::string, std::string>> arguments(const Trace& trace, EventId e);
/// One argument; empty where there is none.
std::string argument(const Trace& trace, EventId e, std::string_view key);

}  // namespace tenon::traces
