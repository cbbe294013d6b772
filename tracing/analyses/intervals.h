#pragma once
#include <cstdint>
#include <utility>
#include <vector>

// Arithmetic on stretches of time. All of it starts with a binary search for where two lists meet, so that a short list
// against a long one (a step against the whole trace) costs as much as what they share.
namespace tenon::tracing {

using Interval = std::pair<int64_t, int64_t>;  ///< from, to
using Intervals = std::vector<Interval>;       ///< sorted and apart after merged()

Intervals merged(Intervals all);
int64_t length(const Intervals& merged);
Intervals intersection(const Intervals& a, const Intervals& b);  ///< of merged ones
Intervals difference(const Intervals& a, const Intervals& b);
Intervals clipped(const Intervals& a, int64_t from, int64_t to);

}  // namespace tenon::tracing
