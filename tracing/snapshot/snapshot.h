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

#include "tracing/snapshot/lives.h"
#include "tracing/snapshot/narrow_column.h"

// A CUDA memory snapshot (torch.cuda.memory._dump_snapshot, and ours) as columns. Addresses, sizes and times are the
// file's own.
namespace tenon {
class MappedFile;
namespace traces {
struct FileKey;
}
}  // namespace tenon

namespace tenon::snapshot {

struct UsageDivision;

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
  Column<Action> action;
  NarrowColumn<uint64_t, int32_t, 64> address;  ///< of an oom: the bytes that the driver reported free
  NarrowColumn<int64_t> size;                   ///< of alloc and free: the bytes asked for
  NarrowColumn<int64_t> time_us;                ///< -1: not recorded
  NarrowColumn<uint32_t, int8_t> stream;        ///< into Snapshot::streams
  NarrowColumn<uint32_t, int16_t> stack;        ///< into the stacks; kNone: no frames were recorded
  Column<uint32_t> extra;                       ///< text: compile context, metadata; kNone: none
  Column<uint32_t> category;                    ///< text; kNone: none
  Column<uint32_t> pool;                        ///< into Snapshot::pools; kNone: the default pool, or not told
  uint32_t extra_of(size_t i) const {
    return i < extra.size() ? extra[i] : kNone;
  }  ///< these three grow only as far as something was told
  uint32_t category_of(size_t i) const { return i < category.size() ? category[i] : kNone; }
  uint32_t pool_of(size_t i) const { return i < pool.size() ? pool[i] : kNone; }
  size_t size_() const { return action.size(); }
  template <class Self, class F>
  static void each_part(Self& e, const F& f) {
    f(e.action);
    for_each_narrow(e, [&](auto& column) { column.each_part(column, f); });
    f(e.extra);
    f(e.category);
    f(e.pool);
  }
  template <class Self, class F>
  static void for_each_narrow(Self& e, const F& f) {
    f(e.address);
    f(e.size);
    f(e.time_us);
    f(e.stream);
    f(e.stack);
  }
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
  Column<Frame> frames;
  Column<uint32_t> stack_frames;
  Column<uint64_t> stack_ends;
  TextColumn texts;

  std::span<const uint32_t> stack(uint32_t id) const;
  size_t stacks() const { return stack_ends.size(); }
  std::string_view text(uint32_t id) const { return texts[id]; }
  std::string frame_text(uint32_t frame) const;  ///< "forward (model.py:12)"
  /// The place in the user's code that a stack leads to; else the one in PyTorch that tells most. See Note [Whose place
  /// it is].
  std::string site(uint32_t stack) const;
  std::vector<std::string> callers(uint32_t stack) const;      ///< who called that place, innermost first
  std::vector<std::string> stack_lines(uint32_t stack) const;  ///< without the frames that are hidden by default

  /// Of each trace, where they were looked for when the file was read: every Timeline of it takes these.
  std::vector<std::shared_ptr<const Lives>> lives;
  /// Of each trace by place, where the file is worth a store.
  std::vector<std::shared_ptr<const UsageDivision>> divisions;
  std::shared_ptr<const traces::FileKey> key;  ///< of the file that was read; null for text in memory
  std::shared_ptr<const MappedFile> store;     ///< in which the columns lie; null: they are its own
  bool from_cache() const { return store != nullptr; }

 private:
  size_t place(std::span<const uint32_t> stack) const;
};

struct ReadOptions {
  bool read_cache = true;  ///< take the store that was saved of the file, where it belongs to these bytes
  bool write_cache = true;
  std::function<bool(uint64_t done, uint64_t total)> progress;  ///< returning false throws Error "cancelled"
  std::function<void(uint64_t from, uint64_t to)> forget;       ///< told of bytes that will not be read again
};
/// Reads a pickle of protocol 2 to 5 (as data: nothing in it is ever looked up or run), the older bare list of
/// segments, or JSON of the same structure; plain, gzip or zstd; or the store that was saved of one. A file that is cut
/// short gives what it holds. Throws Error naming the file where it is no snapshot, or asks for anything but plain
/// data.
std::shared_ptr<const Snapshot> read_snapshot(const std::string& path, const ReadOptions& options = {});
/// The events at the beginning of a snapshot, from so many bytes of its text: something to see while the whole is read.
/// What its segments hold is left out: that is how the recording ended. Null where no event is told by then, or where
/// there is a store, which opens at once. Throws Error as read_snapshot().
std::shared_ptr<const Snapshot> read_beginning(const std::string& path, size_t bytes);
/// Saves the store of a snapshot that was read without: it opens at once the next time. Nothing where it has one, or is
/// small, or its file has changed.
void keep_store(const Snapshot& snapshot);
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

/// Who is alive when, for one device.
class Timeline {
 public:
  /// The snapshot must outlive it.
  Timeline(const Snapshot& snapshot, size_t trace);
  /// Of lives that may still be looked for: each call needs those of its columns that it is about.
  Timeline(const Snapshot& snapshot, size_t trace, std::shared_ptr<const Lives> lives);
  size_t elements() const { return lives_->lives.size(); }
  Element element(uint32_t id) const;
  int64_t bytes_of(uint32_t id) const {  ///< element(id).bytes
    const uint32_t source = lives_->lives[id].source;
    return of_block(id) ? snapshot_->blocks[source].requested : snapshot_->events.size[first_event_ + source];
  }
  uint32_t stack_of(uint32_t id) const {  ///< element(id).stack
    const uint32_t source = lives_->lives[id].source;
    return of_block(id) ? snapshot_->blocks[source].stack : snapshot_->events.stack[first_event_ + source];
  }
  size_t died(uint32_t id) const { return of_block(id) ? events() : lives_->lives[id].died; }  ///< element(id).died
  /// The elements that were there when recording began, ascending.
  std::span<const uint32_t> before() const { return lives_->before.span(); }
  size_t events() const { return lives_->events; }
  int64_t bytes(size_t at) const;                                ///< alive after event `at`
  int64_t bytes_before() const { return lives_->bytes_before; }  ///< alive when recording began
  size_t peak() const { return lives_->peak; }                   ///< the first event after which most is alive
  int64_t peak_bytes() const { return lives_->peak_bytes; }
  /// What an event begins and ends. Where the free of an address was lost, the one who takes it anew ends the former.
  struct Change {
    uint32_t element = kNone;  ///< kNone: nothing
    int64_t bytes = 0;         ///< below zero where it ends
  };
  std::array<Change, 2> changes(size_t event) const {
    const Change lost = lives_->lost.empty() ? Change() : lost_at(event);
    const uint32_t id = lives_->of_event[event];
    if (id == kNone) return {Change(), lost};
    const size_t k = first_event_ + event;
    const Events& e = snapshot_->events;
    return {Change{id, e.action[k] == Action::alloc ? e.size[k] : -bytes_of(id)}, lost};
  }
  /// The element that an event begins; kNone.
  uint32_t made_by(size_t event) const {
    return snapshot_->events.action[first_event_ + event] == Action::alloc ? lives_->of_event[event] : kNone;
  }
  /// Elements alive after event `at` (counted within the device), by number. From the nearest keyframe, not from the
  /// end.
  std::vector<uint32_t> live(size_t at) const;
  /// Smallest, largest and last of bytes() in `buckets` parts of [from, to). Costs some hundred events a bucket,
  /// however many it covers.
  std::vector<Usage> usage(size_t from, size_t to, size_t buckets) const;
  bool history_truncated() const { return unknown_frees() > 0; }
  uint64_t unknown_frees() const { return lives_->unknown_frees; }

 private:
  bool of_block(uint32_t id) const { return id >= lives_->blocks_from; }
  Change lost_at(size_t event) const;

  const Snapshot* snapshot_;
  size_t first_event_;
  std::shared_ptr<const Lives> lives_;
};

}  // namespace tenon::snapshot
