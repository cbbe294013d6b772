#include "tracing/record/step_difference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/backend.h"
#include "engine/formats/tensor_difference.h"
#include "tracing/record/numbers.h"

namespace tenon::tracing {
namespace {

using Key = std::tuple<std::string, std::string, std::string>;  // module, phase, op
Key key_of(const OpRecord& op) { return {module_path(op.origin.module), name(op.origin.phase), op.name}; }
bool is_cast(const OpRecord& op) { return op.name == "cast"; }

}  // namespace

void compare_values(const Tensor& a, const Tensor& b, OpDifference& d) {
  const formats::TensorDifference t = formats::tensor_difference(to_host(a), to_host(b));
  d.total = t.count;
  d.differs = t.changed;
  d.relative = t.relative();
  d.largest = t.worst();
  const int64_t at = t.apart ? t.first_not_finite : t.largest_at;
  if (at < 0) return;
  d.index = index_of(a.size(), at);
  d.value_a = value_at(a, d.index);
  d.value_b = value_at(b, d.index);
}

bool OpDifference::beyond(double tolerance) const {
  if (!why.empty()) return true;
  return tolerance > 0 ? !(relative <= tolerance) || std::isinf(largest) : differs > 0;
}

bool StepDifference::equal() const {
  return only_a == 0 && only_b == 0 &&
         std::all_of(ops.begin(), ops.end(), [](const auto& o) { return o.differs == 0; });
}

StepDifference compare_steps(const StepRecord& a, const StepRecord& b, double tolerance) {
  std::map<Key, std::vector<const OpRecord*>> partners;
  for (const OpRecord& op : b.ops)
    if (!is_cast(op)) partners[key_of(op)].push_back(&op);
  std::map<Key, size_t> taken;
  StepDifference all;
  auto value = [](const StepRecord& r, const OpRecord& op) {
    return op.outputs.empty() ? Tensor() : r.tensors[static_cast<size_t>(op.outputs[0])].value;
  };
  for (const OpRecord& op : a.ops) {
    if (is_cast(op)) continue;
    const Key key = key_of(op);
    const auto found = partners.find(key);
    size_t& next = taken[key];
    if (found == partners.end() || next == found->second.size()) {
      ++all.only_a;
      continue;
    }
    const OpRecord& other = *found->second[next++];
    const Tensor x = value(a, op), y = value(b, other);
    if (!x || !y || !(x.size() == y.size())) {
      ++all.unknown;
      continue;
    }
    OpDifference d;
    d.op = op.name;
    d.module = std::get<0>(key);
    d.phase = std::get<1>(key);
    d.a = op.seq;
    d.b = other.seq;
    compare_values(x, y, d);
    if (d.beyond(tolerance) && all.first < 0) all.first = static_cast<int64_t>(all.ops.size());
    all.ops.push_back(std::move(d));
  }
  for (const auto& [key, ops] : partners) {
    const auto at = taken.find(key);
    all.only_b += static_cast<int64_t>(ops.size() - (at == taken.end() ? 0 : at->second));
  }
  return all;
}

}  // namespace tenon::tracing
