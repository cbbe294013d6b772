#include "core/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "core/cuda/device.h"

namespace tenon::cuda {
namespace {

constexpr size_t kStagingBlock = size_t{4} << 20, kMostStaged = size_t{64} << 20;
constexpr size_t kStagingUnit = 256;  // copies begin where the device likes to read

}  // namespace

cudaError_t Staging::new_block(Block** block) {
  auto made = std::make_unique<Block>();
  void* data = nullptr;
  cudaError_t error = cudaEventCreateWithFlags(&made->passed, cudaEventDisableTiming);
  if (!error) error = cudaHostAlloc(&data, kStagingBlock, cudaHostAllocPortable);
  if (error) {
    if (made->passed) cudaEventDestroy(made->passed);
    if (error == cudaErrorMemoryAllocation) cudaGetLastError();  // it is dealt with
    return error;
  }
  made->data = static_cast<char*>(data);
  *block = made.get();
  blocks_.push_back(std::move(made));
  return cudaSuccess;
}

cudaError_t Staging::wait_for_oldest(Block** block) {
  if (left_.empty()) {  // other streams hold them all
    for (const auto& [stream, filled] : filling_) left_.push_back(filled);
    filling_.clear();
  }
  Block* oldest = left_.front();
  count_wait(device_);
  if (const cudaError_t error = cudaEventSynchronize(oldest->passed)) return error;
  left_.pop_front();
  *block = oldest;
  return cudaSuccess;
}

cudaError_t Staging::room(size_t bytes, cudaStream_t stream, Block** block) {
  if (const auto now = filling_.find(stream); now != filling_.end()) {
    *block = now->second;
    if (now->second->used + bytes <= kStagingBlock) return cudaSuccess;
    left_.push_back(now->second);
    filling_.erase(now);
  }
  *block = nullptr;
  if (!left_.empty()) {
    const cudaError_t passed = cudaEventQuery(left_.front()->passed);
    if (passed == cudaSuccess) {
      *block = left_.front();
      left_.pop_front();
    } else if (passed == cudaErrorNotReady) {
      cudaGetLastError();  // which is no error
    } else {
      return passed;
    }
  }
  if (!*block && !refused_ && (blocks_.size() + 1) * kStagingBlock <= kMostStaged) {
    const cudaError_t error = new_block(block);
    refused_ = error == cudaErrorMemoryAllocation;
    if (error && !refused_) return error;
  }
  if (!*block && blocks_.empty()) return cudaErrorMemoryAllocation;
  if (!*block)
    if (const cudaError_t error = wait_for_oldest(block)) return error;
  (*block)->used = 0;
  filling_[stream] = *block;
  return cudaSuccess;
}

cudaError_t Staging::copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  std::lock_guard lock(mutex_);
  for (size_t at = 0; at < bytes;) {
    const size_t piece = std::min(bytes - at, kStagingBlock);
    Block* block = nullptr;
    if (const cudaError_t error = room(piece, stream, &block)) return error;
    char* staged = block->data + block->used;
    std::memcpy(staged, static_cast<const char*>(from) + at, piece);
    if (const cudaError_t error =
            cudaMemcpyAsync(static_cast<char*>(to) + at, staged, piece, cudaMemcpyDefault, stream))
      return error;
    block->used += (piece + kStagingUnit - 1) / kStagingUnit * kStagingUnit;
    if (const cudaError_t error = cudaEventRecord(block->passed, stream)) return error;
    at += piece;
  }
  return cudaSuccess;
}

Staging& staging_of(int device) {
  static std::mutex mutex;
  static auto* all = new std::map<int, std::unique_ptr<Staging>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<Staging>& one = (*all)[device];
  if (!one) one = std::make_unique<Staging>(device);
  return *one;
}

}  // namespace tenon::cuda
