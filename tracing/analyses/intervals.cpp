#include "tracing/analyses/intervals.h"

#include <algorithm>

namespace tenon::tracing {

Intervals merged(Intervals all) {
  if (!std::is_sorted(all.begin(), all.end())) std::sort(all.begin(), all.end());
  size_t kept = 0;
  for (auto [from, to] : all) {
    if (to <= from) continue;
    if (kept && from <= all[kept - 1].second)
      all[kept - 1].second = std::max(all[kept - 1].second, to);
    else
      all[kept++] = {from, to};
  }
  all.resize(kept);
  return all;
}

int64_t length(const Intervals& m) {
  int64_t sum = 0;
  for (auto [from, to] : m) sum += to - from;
  return sum;
}

namespace {
/// The first of a merged list that ends after a moment.
size_t first_after(const Intervals& list, int64_t time) {
  return static_cast<size_t>(
      std::partition_point(list.begin(), list.end(), [&](const Interval& i) { return i.second <= time; }) -
      list.begin());
}
}  // namespace

Intervals intersection(const Intervals& a, const Intervals& b) {
  Intervals out;
  if (a.empty() || b.empty()) return out;
  for (size_t i = first_after(a, b.front().first), j = first_after(b, a.front().first); i < a.size() && j < b.size();) {
    int64_t from = std::max(a[i].first, b[j].first), to = std::min(a[i].second, b[j].second);
    if (from < to) out.emplace_back(from, to);
    if (a[i].second < b[j].second)
      ++i;
    else
      ++j;
  }
  return out;
}

Intervals difference(const Intervals& a, const Intervals& b) {
  Intervals out;
  size_t j = a.empty() ? 0 : first_after(b, a.front().first);
  for (auto [from, to] : a) {
    while (j < b.size() && b[j].second <= from) ++j;
    for (size_t k = j; k < b.size() && b[k].first < to; ++k) {
      if (b[k].first > from) out.emplace_back(from, b[k].first);
      from = std::max(from, b[k].second);
    }
    if (from < to) out.emplace_back(from, to);
  }
  return out;
}

Intervals clipped(const Intervals& a, int64_t from, int64_t to) {
  Intervals out;
  auto first = std::partition_point(a.begin(), a.end(), [&](const Interval& i) { return i.second <= from; });
  for (auto i = first; i != a.end() && i->first < to; ++i)
    out.emplace_back(std::max(i->first, from), std::min(i->second, to));
  return out;
}

}  // namespace tenon::tracing
