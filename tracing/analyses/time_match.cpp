#include "tracing/analyses/time_match.h"

#include <algorithm>
#include <map>

#include "tracing/analyses/trace_analysis.h"

namespace tenon::tracing {

TimeMatch::TimeMatch(const traces::Trace& a, int64_t origin_a, const traces::Trace& b, int64_t origin_b) {
  auto numbered = [](const traces::Trace& t) {
    std::vector<TraceStep> steps = trace_steps(t);
    std::erase_if(steps, [](const TraceStep& s) { return s.number < 0; });
    std::stable_sort(steps.begin(), steps.end(),
                     [](const TraceStep& x, const TraceStep& y) { return x.start < y.start; });
    return steps;
  };
  const auto of_a = numbered(a), of_b = numbered(b);
  std::map<int64_t, const TraceStep*> by_number;
  for (const TraceStep& s : of_b) by_number.emplace(s.number, &s);
  auto match = [&](const TraceStep& x, const TraceStep& y) {
    const bool begins = add(x.start - origin_a, y.start - origin_b), ends = add(x.end - origin_a, y.end - origin_b);
    steps_ += begins || ends;
  };
  for (const TraceStep& s : of_a)
    if (const auto same = by_number.find(s.number); same != by_number.end()) match(s, *same->second);
  const bool by_order = steps_ == 0;
  for (size_t i = 0; by_order && i < std::min(of_a.size(), of_b.size()); ++i) match(of_a[i], of_b[i]);
  if (knots_.empty()) add(a.begin() - origin_a, b.begin() - origin_b);
}

/// Time goes on in both: a place that would go back in one is passed over.
bool TimeMatch::add(int64_t a, int64_t b) {
  const Knot k{{static_cast<double>(a), static_cast<double>(b)}};
  if (!knots_.empty() && (k.at[0] <= knots_.back().at[0] || k.at[1] <= knots_.back().at[1])) return false;
  knots_.push_back(k);
  return true;
}

double TimeMatch::across(double t, int from, int to) const {
  const auto after =
      std::upper_bound(knots_.begin(), knots_.end(), t, [from](double v, const Knot& k) { return v < k.at[from]; });
  if (after == knots_.begin()) return t - after->at[from] + after->at[to];
  const Knot& before = *(after - 1);
  if (after == knots_.end()) return t - before.at[from] + before.at[to];
  const double share = (t - before.at[from]) / (after->at[from] - before.at[from]);
  return before.at[to] + share * (after->at[to] - before.at[to]);
}

}  // namespace tenon::tracing
