#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracing/analyses/event_names.h"

// Where events were called from: the modules, annotations and ops around them.
namespace tenon::tracing {

/// A tree of names; the nodes of several traces in one tree are the same where their paths are. Node 0 is the root.
class CallTree {
 public:
  struct Node {
    uint32_t parent = 0, name = 0, depth = 0;
    bool op = false;  ///< not a module or annotation
  };
  CallTree() : nodes_(1) {}
  uint32_t name(std::string_view text);
  uint32_t child(uint32_t parent, uint32_t name, bool op);
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::string& text(uint32_t name) const { return *texts_[name]; }
  size_t names() const { return texts_.size(); }
  /// The nearest node at or above that is no op.
  uint32_t context(uint32_t node) const;
  /// Names from the root down, with " > " between ops and "/" between modules.
  std::string path(uint32_t node) const;

 private:
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, uint32_t> children_;  ///< parent and name -> node
  std::unordered_map<std::string, uint32_t> index_;
  std::vector<const std::string*> texts_;
};

/// For every event of the CPU the node that what it calls lies under. Ops of backward lie under "backward" below the
/// modules of the forward op they belong to. Left out of paths: ProfilerStep#N, calls of the runtime, frames of Python
/// that are no module.
class CallPaths {
 public:
  CallPaths(const traces::Trace& trace, const EventNames& names, CallTree& tree,
            const std::vector<traces::EventId>& parent);
  /// Of what an event calls.
  uint32_t within(traces::EventId e) const { return e == traces::kNone ? 0 : within_[e]; }
  /// Of the event itself, whatever it is.
  uint32_t of(traces::EventId e);
  /// Of work on the GPU, below the call that launched it; kNone: not known.
  uint32_t of_gpu(traces::EventId work, traces::EventId launch) {
    return tree_.child(within(launch), name_of(work), true);
  }
  /// An event's name as paths show it, in the tree.
  uint32_t name_of(traces::EventId e);

 private:
  enum class Part : uint8_t { none, context, op };
  Part part(traces::EventId e) const;
  void number_free_names();
  void place(traces::EventId e, uint32_t above);

  const traces::Trace& trace_;
  const EventNames& names_;
  CallTree& tree_;
  const std::vector<traces::EventId>& parent_;
  std::vector<uint32_t> within_;
  std::vector<uint32_t> name_;  ///< by name of the trace, in the tree; kNone: not yet asked for
};

}  // namespace tenon::tracing
