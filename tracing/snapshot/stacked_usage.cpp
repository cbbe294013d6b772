#include "tracing/snapshot/stacked_usage.h"

#include <algorithm>
#include <numeric>

namespace tenon::snapshot {

void StackedUsage::apply(size_t event, std::vector<int64_t>& now) const {
  for (const Timeline::Change& c : timeline_->changes(event))
    if (c.element != kNone) now[band_of(c.element)] += c.bytes;
}

std::vector<int64_t> StackedUsage::bytes(size_t at) const {
  const size_t block = at / kEventsOfBlock, n = bands().size();
  if (block >= division_->tops.size()) return std::vector<int64_t>(n);
  const auto before = division_->before.span().subspan(block * n, n);
  std::vector<int64_t> now(before.begin(), before.end());
  for (size_t i = block * kEventsOfBlock; i <= std::min(at, timeline_->events() - 1); ++i) apply(i, now);
  return now;
}

StackedUsage::Column StackedUsage::highest(size_t from, size_t to, Walk* walk) const {
  const size_t n = bands().size();
  Column c{from, to, from, INT64_MIN, {}};
  auto look = [&](size_t event, int64_t total, auto begin) {
    if (total <= c.total) return;
    c.event = event;
    c.total = total;
    c.bands.assign(begin, begin + static_cast<ptrdiff_t>(n));
  };
  std::vector<int64_t> now;
  if (walk && walk->next == from) now.swap(walk->now);
  for (size_t i = from; i < to;) {
    if (i % kEventsOfBlock == 0 && std::min(i + kEventsOfBlock, timeline_->events()) <= to) {
      const size_t block = i / kEventsOfBlock;
      const UsageDivision::Top& top = division_->tops[block];
      look(top.event, top.total, division_->at_top.begin() + static_cast<ptrdiff_t>(block * n));
      now.clear();
      i += kEventsOfBlock;
      continue;
    }
    if (now.empty())
      now = bytes(i);
    else
      apply(i, now);
    look(i, std::accumulate(now.begin(), now.end(), int64_t{0}), now.begin());
    ++i;
  }
  if (walk) *walk = {to, std::move(now)};
  return c;
}

}  // namespace tenon::snapshot
