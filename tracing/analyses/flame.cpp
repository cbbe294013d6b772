#include "tracing/analyses/flame.h"

#include <algorithm>

#include "core/error.h"
#include "tracing/analyses/event_names.h"

namespace tenon::tracing {

using traces::EventId;
using traces::Trace;

uint32_t Flame::child(uint32_t parent, std::string_view name) {
  const auto [named, new_name] = names_.emplace(name, static_cast<uint32_t>(texts_.size()));
  if (new_name) texts_.push_back(&named->first);
  const auto [at, fresh] = made_.emplace(uint64_t{parent} << 32 | named->second, static_cast<uint32_t>(nodes_.size()));
  if (fresh) {
    Node n;
    n.parent = parent;
    n.name = named->second;
    n.depth = nodes_[parent].depth + 1;
    nodes_.push_back(n);
    deepest_ = std::max(deepest_, n.depth);
  }
  return at->second;
}

void Flame::move_events(traces::EventId by) {
  for (Node& n : nodes_)
    if (n.longest != traces::kNone) n.longest += by;
}

void Flame::finish() {
  made_.clear();
  for (Node& n : nodes_) n.total = n.self;
  for (size_t i = nodes_.size(); i-- > 1;) nodes_[nodes_[i].parent].total += nodes_[i].total;
  first_.assign(nodes_.size() + 1, 0);
  for (size_t i = 1; i < nodes_.size(); ++i) ++first_[nodes_[i].parent + 1];
  for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  order_.resize(nodes_.size() - 1);
  std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
  for (uint32_t i = 1; i < nodes_.size(); ++i) order_[next[nodes_[i].parent]++] = i;
  for (size_t i = 0; i < nodes_.size(); ++i)
    std::sort(order_.begin() + first_[i], order_.begin() + first_[i + 1], [this](uint32_t a, uint32_t b) {
      return nodes_[a].total != nodes_[b].total ? nodes_[a].total > nodes_[b].total
                                                : *texts_[nodes_[a].name] < *texts_[nodes_[b].name];
    });
}

std::string Flame::path(uint32_t node) const {
  std::vector<uint32_t> chain;
  for (; node; node = nodes_[node].parent) chain.push_back(node);
  std::string out;
  for (size_t i = chain.size(); i-- > 0;) out += (out.empty() ? "" : " › ") + text(chain[i]);
  return out;
}

namespace {

/// The events of one lane that a part holds, each with its node.
struct PlacedLane {
  EventId begin = 0;
  std::vector<uint32_t> nodes;
};

class TraceFlame {
 public:
  TraceFlame(const Trace& trace, const FlamePart& part) : trace_(trace), part_(part) {}

  Flame made() {
    for (size_t r = 0; r < trace_.rows().size(); ++r)
      if (part_.row < 0 || part_.row == static_cast<int64_t>(r)) add(trace_.rows()[r]);
    flame_.finish();
    return std::move(flame_);
  }

 private:
  int64_t from(EventId e) const { return std::max(trace_.start(e), part_.from); }
  int64_t to(EventId e) const { return std::min(trace_.end(e), part_.to); }

  void add(const traces::Row& row) {
    PlacedLane above;
    uint32_t below = 0;
    bool named = false;
    for (uint32_t l = row.first_lane; l < row.first_lane + row.lanes; ++l) {
      const auto [first, last] = trace_.range(l, part_.from, part_.to);
      if (last > first && !named && part_.row < 0) {
        below = flame_.child(0, row.label());
        named = true;
      }
      PlacedLane here{first, {}};
      here.nodes.reserve(last > first ? last - first : 0);
      size_t up = 0;  // the first event of the lane above that does not end before this one begins
      for (EventId e = first; e < last; ++e) {
        if (part_.progress && (seen_++ & 0xffff) == 0 && !part_.progress(seen_, trace_.size()))
          throw Error("cancelled");
        uint32_t parent = below;
        EventId outer = traces::kNone;
        if (!row.gpu && l > row.first_lane) {
          while (up < above.nodes.size() && trace_.end(above.begin + static_cast<EventId>(up)) <= trace_.start(e) &&
                 trace_.end(above.begin + static_cast<EventId>(up)) < trace_.end(e))
            ++up;
          const auto candidate = above.begin + static_cast<EventId>(up);
          if (up < above.nodes.size() && trace_.start(candidate) <= trace_.start(e)) {
            outer = candidate;
            parent = above.nodes[up];
          }
        }
        here.nodes.push_back(place(e, parent, outer));
      }
      above = std::move(here);
    }
  }

  /// An event without any time has no place of its own.
  uint32_t place(EventId e, uint32_t parent, EventId outer) {
    const int64_t held = to(e) - from(e);
    if (held <= 0) return parent;
    const uint32_t node = flame_.child(parent, without_step_number(trace_.event_name(e)));
    Flame::Node& n = flame_.at(node);
    n.self += held;
    ++n.count;
    n.kind = trace_.kind(e);
    if (n.longest == traces::kNone || trace_.duration(e) > trace_.duration(n.longest)) n.longest = e;
    if (outer != traces::kNone) flame_.at(parent).self -= held;
    return node;
  }

  const Trace& trace_;
  const FlamePart& part_;
  Flame flame_{Unit::nanoseconds};
  uint64_t seen_ = 0;
};

}  // namespace

Flame flame_of(const Trace& trace, const FlamePart& part) { return TraceFlame(trace, part).made(); }

Flame flame_of(const snapshot::Snapshot& s, const snapshot::Timeline& timeline, size_t at) {
  Flame flame(Unit::bytes);
  std::unordered_map<uint32_t, uint32_t> leaves;  // by stack
  for (const uint32_t id : timeline.live(at)) {
    const snapshot::Element e = timeline.element(id);
    const auto [known, fresh] = leaves.emplace(e.stack, 0);
    if (fresh) {
      const std::vector<std::string> lines = s.stack_lines(e.stack);
      uint32_t node = 0;
      for (size_t i = lines.size(); i-- > 0;) node = flame.child(node, lines[i]);
      known->second = node ? node : flame.child(0, s.site(e.stack));
    }
    flame.at(known->second).self += e.bytes;
    ++flame.at(known->second).count;
  }
  flame.finish();
  return flame;
}

}  // namespace tenon::tracing
