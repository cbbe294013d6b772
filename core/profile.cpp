#include "core/profile.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace tenon {

thread_local uint8_t t_profile_depth = 0;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

namespace {

struct Names {
  std::mutex mutex;
  std::deque<std::string> texts{""};
  std::unordered_map<std::string, uint16_t> ids{{"", 0}};
};
Names& names() {
  static auto* n = new Names;  // leaked: read by threads that outlive statics
  return *n;
}

// Spans of one thread. Its own mutex is free of contention but for the moment of collecting.
struct Lane {
  std::mutex mutex;
  uint64_t recording = 0;
  uint16_t thread = 0;
  std::vector<Tick> ticks;
};

struct Recorder {
  std::mutex mutex;
  std::atomic<uint64_t> recording{0};
  std::atomic<uint32_t> group{0};
  uint16_t threads = 0;
  std::vector<std::shared_ptr<Lane>> lanes;
};
Recorder& recorder() {
  static auto* r = new Recorder;
  return *r;
}

Lane& lane() {
  thread_local std::shared_ptr<Lane> mine;
  auto& r = recorder();
  uint64_t now = r.recording.load(std::memory_order_relaxed);
  if (!mine || mine->recording != now) {
    mine = std::make_shared<Lane>();
    std::lock_guard lock(r.mutex);
    mine->recording = now;
    mine->thread = r.threads++;
    r.lanes.push_back(mine);
  }
  return *mine;
}

}  // namespace

uint16_t intern_name(const std::string& text) {
  auto& n = names();
  std::lock_guard lock(n.mutex);
  auto [it, fresh] = n.ids.try_emplace(text, static_cast<uint16_t>(n.texts.size()));
  if (fresh) n.texts.push_back(text);
  return it->second;
}

const std::string& interned_name(uint16_t id) {
  auto& n = names();
  std::lock_guard lock(n.mutex);
  return n.texts[id < n.texts.size() ? id : 0];
}

void profile_start(uint32_t group) {
  auto& r = recorder();
  r.group = group;
  {
    std::lock_guard lock(r.mutex);
    r.lanes.clear();
    r.threads = 0;
    r.recording.fetch_add(1);
  }
  lane();  // the caller gets number 0
  process_mode.fetch_or(mode::profile);
}

std::vector<Tick> profile_stop() {
  process_mode.fetch_and(~mode::profile);
  auto& r = recorder();
  std::vector<Tick> all;
  std::lock_guard lock(r.mutex);
  for (auto& l : r.lanes) {
    std::lock_guard inner(l->mutex);
    all.insert(all.end(), l->ticks.begin(), l->ticks.end());
  }
  r.lanes.clear();
  std::stable_sort(all.begin(), all.end(), [](const Tick& a, const Tick& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.depth < b.depth;
  });
  return all;
}

void profile_add(uint16_t name, int64_t start_ns, int64_t end_ns, const Origin& origin, uint32_t forward_seq) {
  constexpr uint32_t kMostSeq = (1u << 24) - 1;
  uint32_t group = recorder().group.load(std::memory_order_relaxed);
  if (group && t_state.group != group) return;
  Lane& l = lane();
  std::lock_guard lock(l.mutex);
  l.ticks.push_back({start_ns, end_ns - start_ns, origin, name, l.thread, t_profile_depth,
                     forward_seq <= kMostSeq ? forward_seq : 0});
}

ProfileScope::ProfileScope(const char* name) : name_(name), start_(mode_word() & mode::profile ? now_ns() : 0) {
  if (start_) ++t_profile_depth;
}
ProfileScope::~ProfileScope() {
  if (!start_) return;
  --t_profile_depth;
  Origin origin = t_state.origin;
  origin.seq = 0;  // a span around ops is none itself
  profile_add(intern_name(name_), start_, now_ns(), origin);
}

}  // namespace tenon
