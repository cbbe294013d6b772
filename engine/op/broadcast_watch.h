#pragma once
#include <string>
#include <vector>

#include "core/layout.h"
#include "engine/op/op.h"

namespace tenon {

/// One broadcast that is likely not what was meant.
struct BroadcastWarning {
  std::string op, module;  ///< who did it, and the path of its module
  Shape a, b;
  std::string rule;  ///< which rule of thumb it breaks, in words
};

/// The rule of thumb that combining these sizes element by element breaks; empty where none is broken. The rules:
/// - both grow: (N) against (N, 1) gives (N, N), every element of the one with every element of the other;
/// - a row against a square: (N) against (N, N) pairs with the last axis, and the first would have fitted as well.
/// Biases, masks and scales ((C) against (B, C), (C, 1, 1) against (B, C, H, W), one element) break none.
std::string broadcast_rule_broken(const Shape& a, const Shape& b);

/// Looks at every pointwise op and loss of this thread while it lives, and collects each broken rule once an op name,
/// module and pair of sizes.
class BroadcastWatch : public OpObserver {
 public:
  BroadcastWatch() : scope_(*this) {}
  const std::vector<BroadcastWarning>& warnings() const { return warnings_; }
  void before(const Call& call) override;
  void after(const Call&, int64_t, int64_t) override {}

 private:
  std::vector<BroadcastWarning> warnings_;
  ObserveScope scope_;
};

/// "sub in 'loss': (64) against (64, 1) gives (64, 64): ..."
std::string to_string(const BroadcastWarning& w);

}  // namespace tenon
