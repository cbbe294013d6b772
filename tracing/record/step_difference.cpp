#include "tracing/record/step_difference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>

#include "tracing/record/numbers.h"

namespace tenon::tracing {
namespace {

using Key = std::tuple<std::string, std::string, std::string>;  // module, phase, op
Key key_of(const OpRecord& op) { return {module_path(op.origin.module), name(op.origin.phase), op.name}; }
bool is_cast(const OpRecord& op) { return op.name == "cast"; }

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.is_contiguous() && b.is_contiguous() &&
         std::memcmp(a.raw(), b.raw(), a.nbytes()) == 0;
}

std::vector<double> values_of(const Tensor& t) {
  std::vector<double> v;
  v.reserve(static_cast<size_t>(t.numel()));
  each_value(t, [&](int64_t, double x) {
    v.push_back(x);
    return true;
  });
  return v;
}

void compare(const Tensor& a, const Tensor& b, OpDifference& d) {
  d.total = a.numel();
  if (same_bits(a, b)) return;
  const std::vector<double> x = values_of(a), y = values_of(b);
  double norm = 0, apart = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) {
      if (std::isfinite(x[i])) norm += x[i] * x[i];
      continue;
    }
    const bool finite = std::isfinite(x[i]) && std::isfinite(y[i]);
    const double gap = finite ? std::abs(x[i] - y[i]) : std::numeric_limits<double>::infinity();
    if (finite) norm += x[i] * x[i], apart += gap * gap;
    if (d.differs++ == 0 || gap > d.largest) {
      d.largest = gap;
      d.index = index_of(a.size(), static_cast<int64_t>(i));
      d.value_a = x[i];
      d.value_b = y[i];
    }
  }
  d.relative = apart == 0 ? 0 : norm == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(apart / norm);
}

}  // namespace

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
    compare(x, y, d);
    const bool beyond = tolerance > 0 ? d.relative > tolerance || std::isinf(d.largest) : d.differs > 0;
    if (beyond && all.first < 0) all.first = static_cast<int64_t>(all.ops.size());
    all.ops.push_back(std::move(d));
  }
  for (const auto& [key, ops] : partners) {
    const auto at = taken.find(key);
    all.only_b += static_cast<int64_t>(ops.size() - (at == taken.end() ? 0 : at->second));
  }
  return all;
}

}  // namespace tenon::tracing
