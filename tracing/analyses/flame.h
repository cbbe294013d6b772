#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracing/analyses/finding.h"
#include "tracing/snapshot/snapshot.h"
#include "tracing/trace/trace_store.h"

namespace tenon::tracing {

/// Who holds how much, and below whom: a tree of names with what each holds by itself.
class Flame {
 public:
  struct Node {
    uint32_t parent = 0, name = 0, depth = 0;
    int64_t total = 0;                        ///< nanoseconds or bytes, with what lies below it
    int64_t self = 0;                         ///< without
    int64_t count = 0;                        ///< events, or blocks
    traces::EventId longest = traces::kNone;  ///< of a trace: the longest event
    traces::EventKind kind = traces::EventKind::other;
  };
  explicit Flame(Unit unit) : unit_(unit), nodes_(1) {}
  Flame(Flame&&) = default;

  Unit unit() const { return unit_; }
  bool empty() const { return nodes_.size() < 2; }
  /// Node 0 is the root; a node stands behind its parent.
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::string& text(uint32_t node) const { return *texts_[nodes_[node].name]; }
  /// The largest first.
  std::span<const uint32_t> children(uint32_t node) const {
    return {order_.data() + first_[node], order_.data() + first_[node + 1]};
  }
  uint32_t deepest() const { return deepest_; }
  /// Names from the outermost in, with " › " between them.
  std::string path(uint32_t node) const;

  // Only while it is made.
  uint32_t child(uint32_t parent, std::string_view name);
  Node& at(uint32_t node) { return nodes_[node]; }
  /// Adds what a node holds itself to all that lie above it, and puts children in order.
  void finish();
  /// The numbers of its events are so much larger in who shows it.
  void move_events(traces::EventId by);

 private:
  Unit unit_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, uint32_t> names_;
  std::vector<const std::string*> texts_;
  std::unordered_map<uint64_t, uint32_t> made_;  ///< parent and name -> node
  std::vector<uint32_t> order_, first_;          ///< children of all nodes; where those of a node begin
  uint32_t deepest_ = 0;
};

/// What of a trace a flame is of.
struct FlamePart {
  int64_t from = INT64_MIN, to = INT64_MAX;  ///< on the trace's axis; an event counts with what of it lies within
  int64_t row = -1;                          ///< a thread or stream; -1: all of them, each below its name
  std::function<bool(uint64_t done, uint64_t total)> progress = {};  ///< returning false throws Error "cancelled"
};
/// Calls below callers, thread by thread, all steps as one; what runs on a GPU side by side. An event's own time is
/// what none of those within it takes.
Flame flame_of(const traces::Trace& trace, const FlamePart& part);
/// What is alive after an event of a device, by stack, the outermost caller first.
Flame flame_of(const snapshot::Snapshot& snapshot, const snapshot::Timeline& timeline, size_t at);

}  // namespace tenon::tracing
