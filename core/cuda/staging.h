#pragma once
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/cuda/runtime.h"

// Note [Staging]
// A GPU reads the host's memory while the program goes on only where that memory is pinned. So what goes to a device is
// first copied into blocks of pinned memory, which the device reads when its stream comes to it: the call returns at
// once, and the caller's memory is the caller's again. A stream fills one block after the other; after every copy an
// event is recorded, and a block may be filled anew when the last one from it has passed. Blocks are taken as they are
// needed, up to a limit for each device; then whoever copies waits for the oldest.
namespace tenon::cuda {

/// The staging memory of one device. May be used by several threads.
class Staging {
 public:
  explicit Staging(int device) : device_(device) {}
  /// Queues a copy to the device, which is the current one. Nothing was queued, and the memory of the device is as it
  /// was, where it returns cudaErrorMemoryAllocation: no memory may be pinned.
  cudaError_t copy(void* to, const void* from, size_t bytes, cudaStream_t stream);

 private:
  struct Block {
    char* data = nullptr;
    cudaEvent_t passed = nullptr;
    size_t used = 0;
  };

  /// A block of the stream with room for so many bytes, which are no more than a block has.
  cudaError_t room(size_t bytes, cudaStream_t stream, Block** block);
  cudaError_t new_block(Block** block);
  cudaError_t wait_for_oldest(Block** block);

  int device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::map<cudaStream_t, Block*> filling_;
  std::deque<Block*> left_;  // by the stream that filled them, the oldest first
  bool refused_ = false;     // more memory was
};

/// Of a device. Lives as long as the process: its copies may be under way until the end.
Staging& staging_of(int device);

}  // namespace tenon::cuda
