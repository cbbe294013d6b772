#include "tracing/record/survivors.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/profile.h"

namespace tenon::tracing {

namespace {

const char* part_of_step(Phase p) {
  switch (p) {
    case Phase::forward:
      return "the forward pass";
    case Phase::backward:
      return "the backward pass";
    case Phase::optimizer:
      return "the update";
    case Phase::data:
      return "loading the data";
    case Phase::evaluate:
      return "an evaluation";
    case Phase::communication:
      return "the exchange between replicas";
    default:
      return "a step";
  }
}

}  // namespace

std::string MemoryPlace::module_name() const { return module ? module_path(module) : std::string(); }
std::string MemoryPlace::op_name() const { return op ? interned_name(op) : std::string(); }

std::string MemoryPlace::text() const {
  const std::string layer = module_name(), by = op_name();
  return fmt::format("{}{}{} ({})", by.empty() ? "" : by + " in ", part_of_step(phase),
                     layer.empty() ? "" : " of " + layer, name(category));
}

Survivors::Survivors(uint32_t group) : group_(group) { add_memory_observer(*this); }
Survivors::~Survivors() { remove_memory_observer(*this); }

void Survivors::taken(const Storage& s) {
  if (t_state.group != group_) return;
  const MemoryPlace place{t_state.origin.module, t_state.op, t_state.origin.phase, t_state.origin.category};
  std::lock_guard lock(mutex_);
  size_t at = 0;
  while (at < places_.size() && !(places_[at].place == place)) ++at;
  if (at == places_.size()) {
    const auto before = static_cast<size_t>(steps_);
    places_.push_back({place, std::vector<int64_t>(before), std::vector<int64_t>(before)});
    now_bytes_.push_back(0);
    now_blocks_.push_back(0);
  }
  const auto bytes = static_cast<int64_t>(s.bytes);
  live_[s.id] = {~reinterpret_cast<uint64_t>(&s), bytes, steps_, at};
  now_bytes_[at] += bytes;
  ++now_blocks_[at];
}

void Survivors::given_back(const Storage& s) {
  if (!s.id) return;
  std::lock_guard lock(mutex_);
  const auto at = live_.find(s.id);
  if (at == live_.end()) return;
  now_bytes_[at->second.place] -= at->second.bytes;
  --now_blocks_[at->second.place];
  live_.erase(at);
}

void Survivors::end_step() {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < places_.size(); ++i) {
    places_[i].bytes.push_back(now_bytes_[i]);
    places_[i].blocks.push_back(now_blocks_[i]);
  }
  ++steps_;
}

std::vector<Survivors::OfPlace> Survivors::places() const {
  std::lock_guard lock(mutex_);
  return places_;
}

std::vector<Survivors::Block> Survivors::live() const {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<uint32_t, Kept>> sorted(live_.begin(), live_.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Block> all;
  for (const auto& [id, k] : sorted) all.push_back({reinterpret_cast<Storage*>(~k.hidden), k.bytes, k.step, k.place});
  return all;
}

}  // namespace tenon::tracing
