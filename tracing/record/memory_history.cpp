#include "tracing/record/memory_history.h"

#include <algorithm>
#include <unordered_map>

#include "core/profile.h"

namespace tenon::tracing {

MemoryHistory::MemoryHistory(uint32_t group) : group_(group) { add_memory_observer(*this); }
MemoryHistory::~MemoryHistory() { remove_memory_observer(*this); }

void MemoryHistory::alive_before(const Tensor& t, Category category, uint16_t module) {
  if (!t.storage()) return;
  std::lock_guard lock(mutex_);
  uint32_t id = storage_id(t.storage());
  for (const AllocEvent& e : before_)
    if (e.block == id) return;
  for (const AllocEvent& e : events_)
    if (e.block == id) return;
  AllocEvent e;
  e.address = reinterpret_cast<uint64_t>(t.storage()->data);
  e.bytes = static_cast<int64_t>(t.storage()->bytes);
  e.block = id;
  e.origin.module = module;
  e.origin.category = category;
  e.origin.phase = Phase::build;
  before_.push_back(e);
}

void MemoryHistory::taken(const Storage& s) {
  if (group_ && t_state.group != group_) return;
  std::lock_guard lock(mutex_);
  events_.push_back(
      {now_ns(), reinterpret_cast<uint64_t>(s.data), static_cast<int64_t>(s.bytes), s.id, t_state.origin, t_state.op});
}

void MemoryHistory::given_back(const Storage& s) {
  if (!s.id) return;  // taken before the recording and not named
  std::lock_guard lock(mutex_);
  events_.push_back(
      {now_ns(), reinterpret_cast<uint64_t>(s.data), -static_cast<int64_t>(s.bytes), s.id, t_state.origin, t_state.op});
}

std::vector<AllocEvent> MemoryHistory::events(int64_t start_ns) {
  std::lock_guard lock(mutex_);
  std::vector<AllocEvent> all = before_;
  // A block given back that neither list took was alive before and nobody's: it does not belong to the picture.
  std::unordered_map<uint32_t, Origin> open;
  for (const AllocEvent& e : before_) open[e.block] = e.origin;
  for (AllocEvent e : events_) {
    e.time_ns = std::max<int64_t>(e.time_ns - start_ns, 0);
    if (e.bytes > 0) {
      open[e.block] = e.origin;
    } else {
      auto it = open.find(e.block);
      if (it == open.end()) continue;
      e.origin.category = it->second.category;  // what ends is what was taken
      open.erase(it);
    }
    all.push_back(e);
  }
  return all;
}

MemoryCurve memory_curve(const std::vector<AllocEvent>& events) {
  MemoryCurve c;
  c.bytes.assign(kCategories, std::vector<int64_t>(events.size()));
  int64_t now[kCategories] = {}, total = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    now[static_cast<int>(events[i].origin.category)] += events[i].bytes;
    total += events[i].bytes;
    c.time_ns.push_back(events[i].time_ns);
    c.total.push_back(total);
    for (int k = 0; k < kCategories; ++k) c.bytes[static_cast<size_t>(k)][i] = now[k];
    if (total > c.peak) {
      c.peak = total;
      c.peak_event = i;
    }
  }
  return c;
}

std::vector<size_t> live_at(const std::vector<AllocEvent>& events, size_t at) {
  std::unordered_map<uint32_t, size_t> open;
  for (size_t i = 0; i <= at && i < events.size(); ++i) {
    if (events[i].bytes > 0)
      open[events[i].block] = i;
    else
      open.erase(events[i].block);
  }
  std::vector<size_t> live;
  for (auto& [block, i] : open) live.push_back(i);
  std::sort(live.begin(), live.end(), [&](size_t a, size_t b) {
    return events[a].bytes != events[b].bytes ? events[a].bytes > events[b].bytes : a < b;
  });
  return live;
}

}  // namespace tenon::tracing
