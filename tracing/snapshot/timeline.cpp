#include <algorithm>

#include "tracing/snapshot/snapshot.h"

namespace tenon::snapshot {

namespace {
constexpr size_t kStride = Lives::kStride, kBlock = Lives::kBlock;

/// How much more is alive after an event than before it.
int64_t sum(const std::array<Timeline::Change, 2>& changes) { return changes[0].bytes + changes[1].bytes; }
}  // namespace

Timeline::Timeline(const Snapshot& s, size_t trace)
    : Timeline(s, trace, trace < s.lives.size() ? s.lives[trace] : find_lives(s, trace)) {}

Timeline::Timeline(const Snapshot& s, size_t trace, std::shared_ptr<const Lives> lives)
    : snapshot_(&s), first_event_(trace < s.traces.size() ? s.traces[trace].begin : 0), lives_(std::move(lives)) {}

Timeline::Change Timeline::lost_at(size_t event) const {
  const Lives& l = *lives_;
  const auto it = std::lower_bound(l.lost.begin(), l.lost.end(), event,
                                   [&](uint32_t id, size_t at) { return l.lives[id].died < at; });
  if (it == l.lost.end() || l.lives[*it].died != event) return {};
  return {*it, -bytes_of(*it)};
}

int64_t Timeline::bytes(size_t at) const {
  int64_t now = lives_->sums[at / kStride];
  for (size_t i = at / kStride * kStride; i <= at; ++i) now += sum(changes(i));
  return now;
}

Element Timeline::element(uint32_t id) const {
  const Lives::Life& l = lives_->lives[id];
  if (of_block(id)) {
    const Block& b = snapshot_->blocks[l.source];
    return {b.address, b.requested, 0, events(), b.stack, l.died, true, kNone};
  }
  const Events& e = snapshot_->events;
  const size_t k = first_event_ + l.source;
  const bool before = e.action[k] != Action::alloc;
  return {e.address[k], e.size[k], before ? 0 : l.source, l.died, e.stack[k], e.stream[k], before, e.category_of(k)};
}

std::vector<uint32_t> Timeline::live(size_t at) const {
  const Lives& l = *lives_;
  if (l.keyframes.empty()) return {};
  const size_t until = std::min(at + 1, events());  // events [0, until) have happened
  const auto k =
      static_cast<size_t>(std::upper_bound(l.keyframes.begin(), l.keyframes.end(), until) - l.keyframes.begin()) - 1;
  const auto then = l.living_at(k);
  std::vector<uint32_t> live(then.begin(), then.end());
  for (size_t i = l.keyframes[k]; i < until; ++i)
    if (const uint32_t id = made_by(i); id != kNone) live.push_back(id);
  std::erase_if(live, [&](uint32_t id) { return died(id) < until; });
  std::sort(live.begin(), live.end());
  return live;
}

std::vector<Usage> Timeline::usage(size_t from, size_t to, size_t buckets) const {
  std::vector<Usage> out;
  to = std::min(to, events());
  if (from >= to || buckets == 0) return out;
  buckets = std::min(buckets, to - from);
  for (size_t b = 0; b < buckets; ++b) {
    size_t begin = from + (to - from) * b / buckets, end = from + (to - from) * (b + 1) / buckets;
    int64_t now = bytes(begin);
    Usage u{now, now, now};
    for (size_t i = begin + 1; i < end;) {
      const bool whole = i % kBlock == 0 && i + kBlock <= end;
      const int64_t next = whole ? 0 : now + sum(changes(i));
      const Usage part = whole ? lives_->blocks[i / kBlock] : Usage{next, next, next};
      u.low = std::min(u.low, part.low);
      u.high = std::max(u.high, part.high);
      now = part.last;
      i += whole ? kBlock : 1;
    }
    u.last = now;
    out.push_back(u);
  }
  return out;
}

}  // namespace tenon::snapshot
