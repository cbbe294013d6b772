#include <fmt/format.h>
#include <algorithm>

#include "core/error.h"
#include "tracing/snapshot/address_map.h"
#include "tracing/snapshot/snapshot.h"

// Note [Who was there before]
// The ring buffer of a recording forgets its oldest events, and recording may begin late. So a free of an address that
// no event made, and a block that is active at the end without one, were there before: they count from the first event
// on, as in PyTorch's own viewer.

namespace tenon::snapshot {
namespace {
constexpr size_t kStride = 32, kBlock = 128;

/// How much more is alive after an event than before it.
int64_t sum(const std::array<Timeline::Change, 2>& changes) { return changes[0].bytes + changes[1].bytes; }
}  // namespace

Timeline::Timeline(const Snapshot& s, size_t which) : snapshot_(&s) {
  if (which >= s.traces.size()) return;
  const DeviceTrace& trace = s.traces[which];
  const Events& e = s.events;
  events_ = trace.end - trace.begin;
  if (events_ >= kNone) throw Error(fmt::format("the device has {} events, more than can be counted", events_));
  first_event_ = trace.begin;
  of_event_.assign(events_, kNone);
  const auto last = static_cast<uint32_t>(events_);
  size_t made = 0;
  for (size_t k = trace.begin; k < trace.end; ++k) made += e.action[k] == Action::alloc;
  lives_.reserve(made);
  {
    AddressMap alive;
    for (uint32_t i = 0; i < last; ++i) {
      const size_t k = trace.begin + i;
      if (e.action[k] == Action::alloc) {
        auto id = static_cast<uint32_t>(lives_.size());
        lives_.push_back({i, i, last});
        of_event_[i] = id;
        const uint32_t before = alive.put(e.address[k], id);
        if (before != kNone) lives_[before].died = i;  // its free was lost: the address is taken anew
      } else if (e.action[k] == Action::free_completed || e.action[k] == Action::free) {
        const uint32_t id = alive.take(e.address[k]);
        if (id != kNone) {
          lives_[id].died = i;
          of_event_[i] = id;
        } else {
          before_ids_.push_back(static_cast<uint32_t>(lives_.size()));
          of_event_[i] = before_ids_.back();
          lives_.push_back({i, 0, i});
          ++unknown_frees_;
        }
      }
    }
    blocks_from_ = static_cast<uint32_t>(lives_.size());
    for (const Segment& segment : s.segments) {
      if (segment.device != trace.device) continue;
      for (size_t b = segment.first_block; b < segment.first_block + segment.blocks; ++b) {
        if (s.blocks[b].state == State::inactive || alive.find(s.blocks[b].address) != kNone)
          continue;  // what waits for another stream is not free yet
        before_ids_.push_back(static_cast<uint32_t>(lives_.size()));
        lives_.push_back({static_cast<uint32_t>(b), segment.stream, last});
      }
    }
  }
  for (uint32_t id : before_ids_) before_ += bytes_of(id);

  for (uint32_t id = 0; id < blocks_from_; ++id)
    if (lives_[id].died < last && of_event_[lives_[id].died] != id) lost_.push_back(id);
  std::sort(lost_.begin(), lost_.end(), [&](uint32_t a, uint32_t b) { return lives_[a].died < lives_[b].died; });

  // Keyframes cost no more than the events between them.
  int64_t now = before_;
  peak_bytes_ = before_;
  sums_.reserve(events_ / kStride + 1);
  blocks_.reserve(events_ / kBlock + 1);
  std::vector<uint32_t> live = before_ids_;
  keyframes_.emplace_back(0, live);
  size_t since = 0;
  for (uint32_t i = 0; i < last; ++i) {
    if (i % kStride == 0) sums_.push_back(now);
    now += sum(changes(i));
    if (i % kBlock == 0) blocks_.push_back({now, now, now});
    Usage& block = blocks_.back();
    block = {std::min(block.low, now), std::max(block.high, now), now};
    if (uint32_t id = of_event_[i]; id != kNone && e.action[trace.begin + i] == Action::alloc) live.push_back(id);
    if (i == 0 || now > peak_bytes_) {
      if (now > peak_bytes_ || i == 0) peak_ = i;
      peak_bytes_ = std::max(peak_bytes_, now);
    }
    if (++since >= std::max<size_t>(1024, live.size())) {
      std::erase_if(live, [&](uint32_t id) { return lives_[id].died <= i; });
      keyframes_.emplace_back(i + 1, live);
      since = 0;
    }
  }
}

std::array<Timeline::Change, 2> Timeline::changes(size_t i) const {
  std::array<Change, 2> out;
  if (!lost_.empty()) {
    auto it =
        std::lower_bound(lost_.begin(), lost_.end(), i, [&](uint32_t id, size_t at) { return lives_[id].died < at; });
    if (it != lost_.end() && lives_[*it].died == i) out[1] = {*it, -bytes_of(*it)};
  }
  const uint32_t id = of_event_[i];
  if (id == kNone) return out;
  const size_t k = first_event_ + i;
  const Events& e = snapshot_->events;
  out[0] = {id, e.action[k] == Action::alloc ? e.size[k] : -bytes_of(id)};
  return out;
}

int64_t Timeline::bytes(size_t at) const {
  int64_t now = sums_[at / kStride];
  for (size_t i = at / kStride * kStride; i <= at; ++i) now += sum(changes(i));
  return now;
}

int64_t Timeline::bytes_of(uint32_t id) const {
  const uint32_t source = lives_[id].source;
  return id >= blocks_from_ ? snapshot_->blocks[source].requested : snapshot_->events.size[first_event_ + source];
}

uint32_t Timeline::stack_of(uint32_t id) const {
  const uint32_t source = lives_[id].source;
  return id >= blocks_from_ ? snapshot_->blocks[source].stack : snapshot_->events.stack[first_event_ + source];
}

Element Timeline::element(uint32_t id) const {
  const Life& l = lives_[id];
  if (id >= blocks_from_) {
    const Block& b = snapshot_->blocks[l.source];
    return {b.address, b.requested, 0, l.died, b.stack, l.born, true, kNone};
  }
  const Events& e = snapshot_->events;
  const size_t k = first_event_ + l.source;
  const bool before = e.action[k] != Action::alloc;
  return {e.address[k], e.size[k], l.born, l.died, e.stack[k], e.stream[k], before, e.category_of(k)};
}

std::vector<uint32_t> Timeline::live(size_t at) const {
  if (keyframes_.empty()) return {};
  const size_t until = std::min(at + 1, events_);  // events [0, until) have happened
  auto it = std::upper_bound(keyframes_.begin(), keyframes_.end(), until,
                             [](size_t v, const auto& k) { return v < k.first; });
  --it;
  std::vector<uint32_t> live = it->second;
  for (size_t i = it->first; i < until; ++i)
    if (uint32_t id = of_event_[i]; id != kNone && id < blocks_from_ && lives_[id].source == i &&
                                    snapshot_->events.action[first_event_ + i] == Action::alloc)
      live.push_back(id);
  std::erase_if(live, [&](uint32_t id) { return lives_[id].died < until; });
  std::sort(live.begin(), live.end());
  return live;
}

std::vector<Timeline::Usage> Timeline::usage(size_t from, size_t to, size_t buckets) const {
  std::vector<Usage> out;
  to = std::min(to, events_);
  if (from >= to || buckets == 0) return out;
  buckets = std::min(buckets, to - from);
  for (size_t b = 0; b < buckets; ++b) {
    size_t begin = from + (to - from) * b / buckets, end = from + (to - from) * (b + 1) / buckets;
    int64_t now = bytes(begin);
    Usage u{now, now, now};
    for (size_t i = begin + 1; i < end;) {
      const bool whole = i % kBlock == 0 && i + kBlock <= end;
      const int64_t next = whole ? 0 : now + sum(changes(i));
      const Usage part = whole ? blocks_[i / kBlock] : Usage{next, next, next};
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
