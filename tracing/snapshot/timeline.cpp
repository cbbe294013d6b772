#include <algorithm>
#include <unordered_map>

#include "tracing/snapshot/snapshot.h"

// Note [Who was there before]
// The ring buffer of a recording forgets its oldest events, and recording may begin late. So a free of an address that no event made, and a
// block that is active at the end without one, were there before: they count from the first event on, as in PyTorch's own viewer.

namespace tenon::snapshot {

Timeline::Timeline(const Snapshot& s, size_t which) {
  if (which >= s.traces.size()) return;
  const DeviceTrace& trace = s.traces[which];
  const Events& e = s.events;
  events_ = trace.end - trace.begin;
  born_.assign(events_, kNone);
  died_.assign(events_, kNone);
  std::unordered_map<uint64_t, uint32_t> alive;
  std::vector<uint32_t> before;
  auto end = [&](uint32_t element, size_t at) {
    elements_[element].died = at;
    died_[at] = element;
  };
  for (size_t i = 0; i < events_; ++i) {
    const size_t k = trace.begin + i;
    const Action a = e.action[k];
    if (a == Action::alloc) {
      auto id = static_cast<uint32_t>(elements_.size());
      elements_.push_back({e.address[k], e.size[k], i, events_, e.stack[k], e.stream[k], false});
      born_[i] = id;
      auto [it, fresh] = alive.emplace(e.address[k], id);
      if (!fresh) {  // its free was lost: the address is taken anew
        if (died_[i] == kNone) end(it->second, i);
        it->second = id;
      }
    } else if (a == Action::free_completed || a == Action::free) {
      auto it = alive.find(e.address[k]);
      if (it != alive.end()) {
        end(it->second, i);
        alive.erase(it);
      } else {
        auto id = static_cast<uint32_t>(elements_.size());
        elements_.push_back({e.address[k], e.size[k], 0, i, e.stack[k], e.stream[k], true});
        died_[i] = id;
        before.push_back(id);
        ++unknown_frees_;
      }
    }
  }
  for (const Segment& segment : s.segments) {
    if (segment.device != trace.device) continue;
    for (size_t b = segment.first_block; b < segment.first_block + segment.blocks; ++b) {
      const Block& block = s.blocks[b];
      if (block.state != State::active || alive.count(block.address)) continue;
      before.push_back(static_cast<uint32_t>(elements_.size()));
      elements_.push_back({block.address, block.requested, 0, events_, block.stack, segment.stream, true});
    }
  }
  for (uint32_t id : before) before_ += elements_[id].bytes;

  // Keyframes cost no more than the events between them.
  int64_t now = before_;
  bytes_.resize(events_);
  std::vector<uint32_t> live = before;
  std::vector<uint32_t> place(elements_.size(), kNone);
  for (size_t i = 0; i < live.size(); ++i) place[live[i]] = static_cast<uint32_t>(i);
  keyframes_.emplace_back(0, live);
  size_t since = 0;
  for (size_t i = 0; i < events_; ++i) {
    if (uint32_t d = died_[i]; d != kNone && place[d] != kNone) {
      now -= elements_[d].bytes;
      uint32_t last = live.back();
      live[place[d]] = last;
      place[last] = place[d];
      place[d] = kNone;
      live.pop_back();
    }
    if (uint32_t b = born_[i]; b != kNone) {
      now += elements_[b].bytes;
      place[b] = static_cast<uint32_t>(live.size());
      live.push_back(b);
    }
    bytes_[i] = now;
    if (now > (events_ && i ? bytes_[peak_] : INT64_MIN)) peak_ = i;
    if (++since >= std::max<size_t>(1024, live.size())) {
      keyframes_.emplace_back(i + 1, live);
      since = 0;
    }
  }
}

int64_t Timeline::peak_bytes() const { return bytes_.empty() ? before_ : std::max(before_, bytes_[peak_]); }

std::vector<uint32_t> Timeline::live(size_t at) const {
  if (keyframes_.empty()) return {};
  const size_t until = std::min(at + 1, events_);  // events [0, until) have happened
  auto it = std::upper_bound(keyframes_.begin(), keyframes_.end(), until, [](size_t v, const auto& k) { return v < k.first; });
  --it;
  std::vector<uint32_t> live = it->second;
  for (size_t i = it->first; i < until; ++i)
    if (born_[i] != kNone) live.push_back(born_[i]);
  std::erase_if(live, [&](uint32_t id) {
    const Element& e = elements_[id];
    return e.died < until;
  });
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
    Usage u{bytes_[begin], bytes_[begin], bytes_[end - 1]};
    for (size_t i = begin; i < end; ++i) {
      u.low = std::min(u.low, bytes_[i]);
      u.high = std::max(u.high, bytes_[i]);
    }
    out.push_back(u);
  }
  return out;
}

}  // namespace tenon::snapshot
