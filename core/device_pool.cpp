#include "core/device_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace tenon {
namespace {

constexpr size_t kUnit = 512;
constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kSmallRequest = kMiB, kSmallSegment = 2 * kMiB;
constexpr size_t kMiddleRequest = 10 * kMiB, kMiddleSegment = 20 * kMiB;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

struct DevicePool::Block {
  char* data = nullptr;
  size_t bytes = 0;
  uint16_t stream = 0;
  bool small = false, used = false;
  Category category = Category::other;
  Block *before = nullptr, *after = nullptr;  ///< within the segment
};

bool DevicePool::BySize::operator()(const Block* a, const Block* b) const {
  return a->bytes != b->bytes ? a->bytes < b->bytes : a->data < b->data;
}

DevicePool::DevicePool(std::string device, std::unique_ptr<Source> source, bool keeps)
    : device_(std::move(device)), source_(std::move(source)), keeps_(keeps) {}

DevicePool::~DevicePool() { trim(); }

DevicePool::Block* DevicePool::take_free(size_t bytes, uint16_t stream, bool small, bool any) {
  Free& free = free_[{stream, small}];
  Block wanted;
  wanted.bytes = bytes;
  const auto it = free.lower_bound(&wanted);
  if (it == free.end()) return nullptr;
  Block* block = *it;
  // A large block that is much too large stays whole for those who need it.
  if (!any && !small && bytes < kMiddleRequest && block->bytes > 2 * kMiddleSegment) return nullptr;
  free.erase(it);
  return block;
}

DevicePool::Block* DevicePool::take_segment(size_t bytes, uint16_t stream, bool small) {
  const size_t segment = !keeps_                  ? bytes
                         : small                  ? kSmallSegment
                         : bytes < kMiddleRequest ? kMiddleSegment
                                                  : round_up(bytes, 2 * kMiB);
  for (const size_t size : {segment, segment, bytes}) {  // again after trimming, then no more than is needed
    if (void* data = source_->take(size)) {
      auto block = std::make_unique<Block>();
      block->data = static_cast<char*>(data);
      block->bytes = size;
      block->stream = stream;
      block->small = small;
      Block* b = block.get();
      blocks_.emplace(data, std::move(block));
      stats_.held_bytes += static_cast<int64_t>(size);
      ++stats_.segments;
      return b;
    }
    trim_locked();
  }
  return nullptr;
}

// The rest of a block that is larger than it need be stays free, where it is worth having.
void DevicePool::split(Block* block, size_t bytes) {
  const size_t rest = block->bytes - bytes;
  if (rest < (block->small ? kUnit : kSmallRequest)) return;
  auto second = std::make_unique<Block>(*block);
  second->data = block->data + bytes;
  second->bytes = rest;
  second->before = block;
  if (block->after) block->after->before = second.get();
  block->after = second.get();
  block->bytes = bytes;
  free_[{block->stream, block->small}].insert(second.get());
  void* at = second->data;
  blocks_.emplace(at, std::move(second));
}

void* DevicePool::take(size_t wanted, uint16_t stream, Category category) {
  const size_t bytes = keeps_ ? round_up(std::max<size_t>(wanted, 1), kUnit) : std::max<size_t>(wanted, 1);
  const bool small = bytes < kSmallRequest;
  std::lock_guard lock(mutex_);
  Block* block = take_free(bytes, stream, small);
  if (!block) block = take_segment(bytes, stream, small);
  if (!block) block = take_free(bytes, stream, false, true);
  if (!block) refuse(wanted, category);
  if (keeps_) split(block, bytes);
  block->used = true;
  block->category = category;
  stats_.live_bytes += static_cast<int64_t>(block->bytes);
  stats_.live_of[static_cast<size_t>(category)] += static_cast<int64_t>(block->bytes);
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes);
  return block->data;
}

void DevicePool::give(void* data) {
  std::lock_guard lock(mutex_);
  Block* block = blocks_.at(data).get();
  stats_.live_bytes -= static_cast<int64_t>(block->bytes);
  stats_.live_of[static_cast<size_t>(block->category)] -= static_cast<int64_t>(block->bytes);
  block->used = false;
  if (!keeps_) return give_segment(block);
  Free& free = free_[{block->stream, block->small}];
  const auto join = [&](Block* first, Block* second) {  // the second becomes part of the first
    first->bytes += second->bytes;
    first->after = second->after;
    if (second->after) second->after->before = first;
    blocks_.erase(second->data);
  };
  if (Block* after = block->after; after && !after->used) {
    free.erase(after);
    join(block, after);
  }
  if (Block* before = block->before; before && !before->used) {
    free.erase(before);
    join(before, block);
    block = before;
  }
  free.insert(block);
}

void DevicePool::give_segment(Block* block) {
  source_->give(block->data);
  stats_.held_bytes -= static_cast<int64_t>(block->bytes);
  --stats_.segments;
  blocks_.erase(block->data);
}

void DevicePool::trim_locked() {
  for (auto& [key, free] : free_)
    for (auto it = free.begin(); it != free.end();) {
      Block* block = *it;
      if (block->before || block->after) {
        ++it;
        continue;
      }
      it = free.erase(it);
      give_segment(block);
    }
}

void DevicePool::trim() {
  std::lock_guard lock(mutex_);
  trim_locked();
}

DevicePool::Stats DevicePool::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void DevicePool::reset_peak() {
  std::lock_guard lock(mutex_);
  stats_.peak_bytes = stats_.live_bytes;
}

void DevicePool::refuse(size_t bytes, Category category) const {
  const auto mib = [](int64_t n) {
    return fmt::format("{:.1f} MiB", static_cast<double>(n) / static_cast<double>(kMiB));
  };
  size_t largest = 0;
  for (const auto& [key, free] : free_)
    if (!free.empty()) largest = std::max(largest, (*free.rbegin())->bytes);
  size_t most = 0;
  for (size_t i = 0; i < stats_.live_of.size(); ++i)
    if (stats_.live_of[i] > stats_.live_of[most]) most = i;
  std::string text = fmt::format("{} has no room for {} ({}): {} in use", device_, mib(static_cast<int64_t>(bytes)),
                                 name(category), mib(stats_.live_bytes));
  if (stats_.live_of[most] > 0)
    text += fmt::format(" (most of it {}: {})", name(static_cast<Category>(most)), mib(stats_.live_of[most]));
  text += fmt::format(", {} kept free in blocks of at most {}, {} free on the device",
                      mib(stats_.held_bytes - stats_.live_bytes), mib(static_cast<int64_t>(largest)),
                      mib(static_cast<int64_t>(source_->free_bytes())));
  throw Error(text, "Make the batch smaller (--set data.batch_size=..., or data.micro_batches for the same steps).");
}

}  // namespace tenon
