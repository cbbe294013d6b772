#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracing/snapshot/narrow_column.h"

// A CUDA memory snapshot (torch.cuda.memory._dump_snapshot, and ours) as columns. Addresses, sizes and times are the
// file's own.
namespace tenon::snapshot {

enum class Action : uint8_t {
  alloc,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  snapshot,
  oom,
  user_defined,
  annotate,
  free,
  other
};
inline constexpr int kActions = 13;
const char* name(Action a);

inline constexpr uint32_t kNone = ~0u;

/// Which of an allocator's pools: that of a CUDA graph, of a torch.cuda.MemPool, or (0, 0), everybody's.
struct PoolId {
  int64_t a = 0, b = 0;
  auto operator<=>(const PoolId&) const = default;
};

/// The recorded events of every device, device after device, in the order of the file.
struct Events {
  std::vector<Action> action;
  NarrowColumn<uint64_t, int32_t, 64> address;  ///< of an oom: the bytes that the driver reported free
  NarrowColumn<int64_t> size;                   ///< of alloc and free: the bytes asked for
  NarrowColumn<int64_t> time_us;                ///< -1: not recorded
  NarrowColumn<uint32_t, int16_t> stream;       ///< into Snapshot::streams
  std::vector<uint32_t> stack;                  ///< into the stacks; kNone: no frames were recorded
  std::vector<uint32_t> extra;                  ///< text: compile context, metadata; kNone: none
  std::vector<uint32_t> category;               ///< text; kNone: none
  std::vector<uint32_t> pool;                   ///< into Snapshot::pools; kNone: the default pool, or not told
  uint32_t extra_of(size_t i) const {
    return i < extra.size() ? extra[i] : kNone;
  }  ///< these three grow only as far as something was told
  uint32_t category_of(size_t i) const { return i < category.size() ? category[i] : kNone; }
  uint32_t pool_of(size_t i) const { return i < pool.size() ? pool[i] : kNone; }
  size_t size_() const { return action.size(); }
};

/// The number of what is no device: pinned memory of the host, where it was recorded.
inline constexpr int64_t kHost = -1;

/// One device's part of the events.
struct DeviceTrace {
  int64_t device = 0;
  size_t begin = 0, end = 0;
};

enum class State : uint8_t { inactive, active, pending_free };
struct Block {
  uint64_t address = 0;
  int64_t size = 0, requested = 0;  ///< size is rounded
  State state = State::inactive;
  uint32_t stack = kNone;
};
struct Segment {
  int64_t device = 0;
  uint64_t address = 0;
  int64_t total = 0, allocated = 0, active = 0, requested = 0;
  uint32_t stream = 0;
  bool large = false, expandable = false;
  PoolId pool;
  uint32_t stack = kNone;
  size_t first_block = 0, blocks = 0;  ///< into Snapshot::blocks
};
struct Annotation {
  bool start = true;
  std::string name;
  int64_t device = 0, time_us = 0;
};

/// A file of any version: every part may be missing.
struct Snapshot {
  std::string path;
  Events events;
  std::vector<DeviceTrace> traces;
  std::vector<Segment> segments;
  std::vector<Block> blocks;
  std::vector<int64_t> streams;
  std::vector<PoolId> pools;  ///< the private ones that events name
  bool pools_told = false;    ///< events say which pool they belong to
  std::vector<Annotation> annotations;
  std::vector<std::pair<std::string, std::string>> settings;  ///< of the allocator, as text
  std::vector<std::pair<std::string, uint64_t>> repairs;      ///< what was passed over, and how often
  uint64_t source_bytes = 0;
  int protocol = 0;  ///< of the pickle; 0: JSON
  bool truncated = false;

  // Frames and stacks: a stack is a run of frame numbers, most recent call first. Equal stacks have one number.
  struct Frame {
    uint32_t file = kNone, function = kNone;  ///< texts
    int64_t line = 0;
  };
  std::vector<Frame> frames;
  std::vector<uint32_t> stack_frames;
  std::vector<uint64_t> stack_ends;
  std::vector<std::string> texts;

  std::span<const uint32_t> stack(uint32_t id) const;
  size_t stacks() const { return stack_ends.size(); }
  std::string_view text(uint32_t id) const {
    return id < texts.size() ? std::string_view(texts[id]) : std::string_view();
  }
  std::string frame_text(uint32_t frame) const;  ///< "forward (model.py:12)"
  /// The place in the user's code that a stack leads to; else the one in PyTorch that tells most. See Note [Whose place
  /// it is].
  std::string site(uint32_t stack) const;
  std::vector<std::string> callers(uint32_t stack) const;      ///< who called that place, innermost first
  std::vector<std::string> stack_lines(uint32_t stack) const;  ///< without the frames that are hidden by default

 private:
  size_t place(std::span<const uint32_t> stack) const;
};

struct ReadOptions {
  std::function<bool(uint64_t done, uint64_t total)> progress;  ///< returning false throws Error "cancelled"
  std::function<void(uint64_t from, uint64_t to)> forget;       ///< told of bytes that will not be read again
};
/// Reads a pickle of protocol 2 to 5 (as data: nothing in it is ever looked up or run), the older bare list of
/// segments, or JSON of the same structure; plain, gzip or zstd. A file that is cut short gives what it holds. Throws
/// Error naming the file where it is no snapshot, or asks for anything but plain data.
std::shared_ptr<const Snapshot> read_snapshot(const std::string& path, const ReadOptions& options = {});
/// The events at the beginning of a snapshot, from so many bytes of its text: something to see while the whole is read.
/// What its segments hold is left out: that is how the recording ended. Null where no event is told by then. Throws
/// Error as read_snapshot().
std::shared_ptr<const Snapshot> read_beginning(const std::string& path, size_t bytes);
std::shared_ptr<const Snapshot> parse_snapshot(std::string bytes, const ReadOptions& options = {});

/// One allocation's life on the axis of a device's events.
struct Element {
  uint64_t address = 0;
  int64_t bytes = 0;
  size_t born = 0;  ///< event that made it, counted within the device; 0 with `before`
  size_t died = 0;  ///< event that ended it; the number of events where nothing did
  uint32_t stack = kNone, stream = 0;
  bool before = false;        ///< it was there when recording began
  uint32_t category = kNone;  ///< text
};

/// Who is alive when, for one device: PyTorch's own viewer's rules. See memory_snapshot's notes on reconstruction.
class Timeline {
 public:
  /// The snapshot must outlive it.
  Timeline(const Snapshot& snapshot, size_t trace);
  size_t elements() const { return lives_.size(); }
  Element element(uint32_t id) const;
  int64_t bytes_of(uint32_t id) const;   ///< element(id).bytes
  uint32_t stack_of(uint32_t id) const;  ///< element(id).stack
  /// The elements that were there when recording began, ascending.
  const std::vector<uint32_t>& before() const { return before_ids_; }
  size_t events() const { return events_; }
  int64_t bytes(size_t at) const;                   ///< alive after event `at`
  int64_t bytes_before() const { return before_; }  ///< alive when recording began
  size_t peak() const { return peak_; }             ///< the first event after which most is alive
  int64_t peak_bytes() const { return peak_bytes_; }
  /// What an event begins and ends. Where the free of an address was lost, the one who takes it anew ends the former.
  struct Change {
    uint32_t element = kNone;  ///< kNone: nothing
    int64_t bytes = 0;         ///< below zero where it ends
  };
  std::array<Change, 2> changes(size_t event) const;
  /// Elements alive after event `at` (counted within the device), by number. From the nearest keyframe, not from the
  /// end.
  std::vector<uint32_t> live(size_t at) const;
  /// Smallest, largest and last of bytes() in `buckets` parts of [from, to). Costs some hundred events a bucket,
  /// however many it covers.
  struct Usage {
    int64_t low, high, last;
  };
  std::vector<Usage> usage(size_t from, size_t to, size_t buckets) const;
  bool history_truncated() const { return unknown_frees_ > 0; }
  uint64_t unknown_frees() const { return unknown_frees_; }

 private:
  // 12 bytes a life and 12 an event: what is known of an allocation stands in the event that made it.
  struct Life {
    uint32_t source = 0;  ///< event of the device (or, from `blocks_from` on, block of the snapshot) that tells of it
    uint32_t born = 0, died = 0;  ///< of a block, `born` is its segment's stream: it was there from the beginning
  };
  const Snapshot* snapshot_;
  size_t first_event_ = 0;
  std::vector<Life> lives_;
  std::vector<uint32_t> before_ids_;  ///< lives from before, ascending
  uint32_t blocks_from_ = kNone;      ///< lives from this one on are blocks of segments
  std::vector<uint32_t> of_event_;    ///< the life that an event makes or ends; kNone
  std::vector<int64_t> sums_;         ///< alive before every 32nd event
  std::vector<Usage> blocks_;         ///< of every 128 events
  std::vector<uint32_t> lost_;        ///< lives that end where another begins, by that event
  int64_t peak_bytes_ = 0;
  std::vector<std::pair<size_t, std::vector<uint32_t>>> keyframes_;
  size_t events_ = 0, peak_ = 0;
  int64_t before_ = 0;
  uint64_t unknown_frees_ = 0;
};

}  // namespace tenon::snapshot
