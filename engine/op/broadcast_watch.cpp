#include "engine/op/broadcast_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/state.h"

namespace tenon {
namespace {

bool grows(const Shape& from, const Shape& to) { return from.product() < to.product(); }

std::string sizes(const Shape& s) {
  std::string text = "(";
  for (int i = 0; i < s.n; ++i) text += (i ? ", " : "") + std::to_string(s[i]);
  return text + ")";
}

}  // namespace

std::string broadcast_rule_broken(const Shape& a, const Shape& b) {
  if (a == b || a.product() <= 1 || b.product() <= 1) return {};
  const Shape out = broadcast_shape(a, b);
  // Axes that a person would take for the same: the sizes without 1s.
  auto without_ones = [](const Shape& s) {
    Shape r;
    for (int64_t n : s)
      if (n != 1) r.push_back(n);
    return r;
  };
  const Shape ra = without_ones(a), rb = without_ones(b);
  if (grows(a, out) && grows(b, out) && ra == rb)
    return fmt::format(
        "both sides grow: every element of the one meets every element of the other, though both have {} elements",
        a.product());
  const Shape &narrow = a.n < b.n ? a : b, &wide = a.n < b.n ? b : a;
  if (narrow.n == 1 && wide.n == 2 && wide[0] == wide[1] && narrow[0] == wide[1] && narrow[0] > 1)
    return "a row meets a square: it is paired with the last axis, and the first has the same size";
  return {};
}

void BroadcastWatch::before(const Call& call) {
  if (call.op->info.kind != OpKind::pointwise || call.inputs < 2) return;
  for (int i = 0; i < call.inputs; ++i)
    for (int k = i + 1; k < call.inputs; ++k) {
      if (!call.in[i] || !call.in[k]) continue;
      const Shape &a = call.in[i].size(), &b = call.in[k].size();
      std::string rule = broadcast_rule_broken(a, b);
      if (rule.empty()) continue;
      BroadcastWarning w{call.op->info.name, module_path(t_state.origin.module), a, b, std::move(rule)};
      bool known = std::any_of(warnings_.begin(), warnings_.end(), [&](const BroadcastWarning& o) {
        return o.op == w.op && o.module == w.module && o.a == w.a && o.b == w.b;
      });
      if (!known) warnings_.push_back(std::move(w));
    }
}

std::string to_string(const BroadcastWarning& w) {
  return fmt::format("{}{}: {} against {} gives {}: {}", w.op, w.module.empty() ? "" : " in '" + w.module + "'",
                     sizes(w.a), sizes(w.b), sizes(broadcast_shape(w.a, w.b)), w.rule);
}

}  // namespace tenon
