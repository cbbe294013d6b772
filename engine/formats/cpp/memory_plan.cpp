#include "engine/formats/cpp/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace tenon::formats {
namespace {

/// A block of memory and the nodes between which it is in use.
struct Block {
  PlannedPlace::In in = PlannedPlace::In::arena;
  int number = 0;
  int64_t bytes = 0;
  int made = -1, last = -1;
  int64_t offset = 0;
};

class Planner {
 public:
  explicit Planner(const StaticGraph& g) : g_(g), of_(g.values.size(), -1), shift_(g.values.size(), 0) {}

  MemoryPlan plan(const std::vector<bool>& in_place) {
    MemoryPlan p;
    p.moved.assign(g_.nodes.size(), true);
    std::vector<int> last_read(g_.values.size(), -1);
    for (size_t i = 0; i < g_.nodes.size(); ++i)
      for (int v : g_.nodes[i].inputs)
        if (v >= 0) last_read[static_cast<size_t>(v)] = static_cast<int>(i);
    for (size_t v = 0; v < g_.values.size(); ++v)
      if (g_.values[v].constant) begin(static_cast<int>(v), PlannedPlace::In::constant, static_cast<int>(v), -1);
    for (size_t k = 0; k < g_.inputs.size(); ++k) begin(g_.inputs[k], PlannedPlace::In::input, static_cast<int>(k), -1);
    // A block lasts as long as any of the values in it: those are known once the views are.
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      const StaticNode& n = g_.nodes[i];
      const bool view = n.view && n.view->is_contiguous();
      p.moved[i] = !view;
      if (view) {
        const auto out = static_cast<size_t>(n.output), in = static_cast<size_t>(n.inputs[0]);
        of_[out] = of_[in];
        shift_[out] = shift_[in] + n.view->offset * static_cast<int64_t>(itemsize(g_.values[in].dtype));
      } else {
        begin(n.output, PlannedPlace::In::arena, 0, static_cast<int>(i));
        p.all_bytes += g_.values[static_cast<size_t>(n.output)].bytes();
      }
      block(n.output).last = std::max(block(n.output).last, last_read[static_cast<size_t>(n.output)]);
    }
    for (size_t k = 0; k < g_.outputs.size(); ++k) {
      Block& b = block(g_.outputs[k]);
      // What is an output as a whole is computed in the caller's memory; anything else is copied there at the end.
      if (b.in == PlannedPlace::In::arena && whole(g_.outputs[k])) {
        b.in = PlannedPlace::In::output;
        b.number = static_cast<int>(k);
      }
      b.last = static_cast<int>(g_.nodes.size());
    }
    for (size_t i = 0; i < g_.nodes.size(); ++i)
      if (in_place[i] && p.moved[i]) take_over(static_cast<int>(i));
    p.arena_bytes = pack();
    for (size_t v = 0; v < g_.values.size(); ++v) {
      const Block& b = block(static_cast<int>(v));
      p.places.push_back({b.in, b.number, b.offset + shift_[v]});
    }
    return p;
  }

 private:
  Block& block(int v) { return blocks_[static_cast<size_t>(of_[static_cast<size_t>(v)])]; }
  void begin(int v, PlannedPlace::In in, int number, int made) {
    of_[static_cast<size_t>(v)] = static_cast<int>(blocks_.size());
    blocks_.push_back({in, number, g_.values[static_cast<size_t>(v)].bytes(), made, made});
  }
  bool whole(int v) {
    return shift_[static_cast<size_t>(v)] == 0 && g_.values[static_cast<size_t>(v)].bytes() == block(v).bytes;
  }

  /// The node's result takes the block of an input that ends with it.
  void take_over(int at) {
    const StaticNode& n = g_.nodes[static_cast<size_t>(at)];
    const StaticValue& out = g_.values[static_cast<size_t>(n.output)];
    if (block(n.output).in != PlannedPlace::In::arena) return;
    for (int v : n.inputs) {
      if (v < 0 || !same_elements(v, out) || !whole(v) || block(v).in != PlannedPlace::In::arena || block(v).last != at)
        continue;
      const int from = of_[static_cast<size_t>(n.output)], to = of_[static_cast<size_t>(v)];
      // Another part of the block that the node reads elsewhere than it writes.
      if (std::any_of(n.inputs.begin(), n.inputs.end(), [&](int other) {
            return other >= 0 && of_[static_cast<size_t>(other)] == to && !(same_elements(other, out) && whole(other));
          }))
        continue;
      blocks_[static_cast<size_t>(to)].last = blocks_[static_cast<size_t>(from)].last;
      blocks_[static_cast<size_t>(from)].bytes = 0;
      for (int& b : of_)
        if (b == from) b = to;
      return;
    }
  }
  bool same_elements(int v, const StaticValue& out) const {
    const StaticValue& in = g_.values[static_cast<size_t>(v)];
    return in.shape == out.shape && in.dtype == out.dtype;
  }

  /// The largest first, each at the lowest place that is free while it lives.
  int64_t pack() {
    std::vector<size_t> order;
    for (size_t b = 0; b < blocks_.size(); ++b)
      if (blocks_[b].in == PlannedPlace::In::arena && blocks_[b].bytes > 0) order.push_back(b);
    std::stable_sort(order.begin(), order.end(),
                     [this](size_t a, size_t b) { return blocks_[a].bytes > blocks_[b].bytes; });
    auto rounded = [](int64_t n) { return (n + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; };
    int64_t top = 0;
    std::vector<size_t> placed;
    for (size_t b : order) {
      std::vector<std::pair<int64_t, int64_t>> taken;
      for (size_t other : placed)
        if (blocks_[other].made <= blocks_[b].last && blocks_[b].made <= blocks_[other].last)
          taken.emplace_back(blocks_[other].offset, blocks_[other].offset + rounded(blocks_[other].bytes));
      std::sort(taken.begin(), taken.end());
      int64_t at = 0;
      for (const auto& [from, to] : taken) {
        if (at + rounded(blocks_[b].bytes) <= from) break;
        at = std::max(at, to);
      }
      blocks_[b].offset = at;
      placed.push_back(b);
      top = std::max(top, at + rounded(blocks_[b].bytes));
    }
    return top;
  }

  const StaticGraph& g_;
  std::vector<Block> blocks_;
  std::vector<int> of_;         ///< the block of a value
  std::vector<int64_t> shift_;  ///< where in it, in bytes
};

}  // namespace

MemoryPlan plan_memory(const StaticGraph& graph, const std::vector<bool>& in_place) {
  return Planner(graph).plan(in_place);
}

}  // namespace tenon::formats
