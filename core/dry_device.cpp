#include "core/dry_device.h"

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "core/backend.h"
#include "core/error.h"
#include "core/pool_block.h"

namespace tenon {
namespace {

struct DrySlot {
  std::mutex mutex;
  bool leased = false;
  std::vector<DryEvent> events;
  std::unordered_map<void*, uint32_t> blocks;  ///< that are live, by address
  uint32_t next = 0;
  int64_t live = 0;
};
std::array<DrySlot, 256>& dry_slots() {
  static auto* all = new std::array<DrySlot, 256>;  // leaked: tensors in other statics may be freed after any of them
  return *all;
}

/// Addresses that are in no user space, none of them given twice.
void* fresh_address(size_t bytes) {
  static std::atomic<uintptr_t> next{uintptr_t{1} << 60};
  return reinterpret_cast<void*>(next.fetch_add((bytes + 127) & ~size_t{63}, std::memory_order_relaxed));
}

void* dry_take(Device device, size_t bytes) {
  DrySlot& s = dry_slots()[device.index];
  std::lock_guard lock(s.mutex);
  void* at = fresh_address(bytes);
  const auto counted = static_cast<int64_t>(pool_block_bytes(bytes));
  s.blocks.emplace(at, s.next);
  s.live += counted;
  if (s.leased) s.events.push_back({s.next, true, t_state.op, t_state.origin, counted});
  ++s.next;
  return at;
}

void dry_give(Device device, void* data, size_t bytes) {
  DrySlot& s = dry_slots()[device.index];
  std::lock_guard lock(s.mutex);
  const auto counted = static_cast<int64_t>(pool_block_bytes(bytes));
  const auto found = s.blocks.find(data);
  s.live -= counted;
  if (s.leased) s.events.push_back({found->second, false, t_state.op, t_state.origin, counted});
  s.blocks.erase(found);
}

std::atomic<int> g_dry{-1};  ///< the type's number, once there is one

DeviceType dry_type() {
  static const DeviceType type =
      register_backend({.name = "dry",
                        .take = dry_take,
                        .give = dry_give,
                        .copy =
                            [](void* to, Device to_device, const void*, Device, size_t bytes, Stream) {
                              if (to_device.type == DeviceType::cpu) std::memset(to, 0, bytes);
                            },
                        .fill = [](void*, const void*, size_t, int64_t, Stream) {},
                        .sync = [](Stream) {}});
  g_dry.store(static_cast<int>(type), std::memory_order_relaxed);
  return type;
}

}  // namespace

bool is_dry(Device device) { return static_cast<int>(device.type) == g_dry.load(std::memory_order_relaxed); }

DryLedger::DryLedger() {
  for (int i = 0; i < 256; ++i) {
    DrySlot& s = dry_slots()[static_cast<size_t>(i)];
    std::lock_guard lock(s.mutex);
    if (s.leased || !s.blocks.empty()) continue;
    s.leased = true;
    s.events.clear();
    s.next = 0;
    s.live = 0;
    index_ = static_cast<uint8_t>(i);
    return;
  }
  throw Error("256 forecasts of memory are under way", "wait until one of them has ended");
}
DryLedger::~DryLedger() {
  DrySlot& s = dry_slots()[index_];
  std::lock_guard lock(s.mutex);
  s.leased = false;
  s.events = {};
}
Device DryLedger::device() const { return {dry_type(), index_}; }
const std::vector<DryEvent>& DryLedger::events() const { return dry_slots()[index_].events; }
int64_t DryLedger::block_of(const Tensor& t) const {
  DrySlot& s = dry_slots()[index_];
  if (!t.defined() || !(t.device() == device())) return -1;
  std::lock_guard lock(s.mutex);
  const auto found = s.blocks.find(t.storage()->data);
  return found == s.blocks.end() ? -1 : found->second;
}
int64_t DryLedger::live_bytes() const { return dry_slots()[index_].live; }

}  // namespace tenon
