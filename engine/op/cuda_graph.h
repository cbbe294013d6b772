#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/backend.h"

namespace tenon {

// Note [Recording beside others]
// Threads of a process share a device's streams: a run, a sweep's trials, a step that is looked at. What one of them
// records must hold none of the others' work. So it is recorded on a stream that nothing else is given to, and done on
// the one that the thread's work goes to. Meanwhile no memory goes back to the driver: that waits for all of a device,
// which no thread may while a stream of it is recorded.

/// What a thread gave to a GPU while it recorded, and the memory that its kernels work in: it stays at its place as
/// long as the graph (Note [A plan as one graph]).
class CudaGraph {
 public:
  CudaGraph(Device device, uint16_t turn) : device_(device), turn_(turn) {}
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;

  /// Begins to record on the thread, on the stream of the module's that `stream_of` gives for a number. Numbers begin
  /// at 0 and are no other thread's meanwhile.
  static void begin(Device device, const std::function<void*(uint16_t)>& stream_of);
  /// Ends what begin() began. Throws Error where something in between could not be recorded.
  static std::unique_ptr<CudaGraph> end();
  /// Queues it on a stream of the module's.
  void replay(void* stream);

  /// The one that this thread records; null: none.
  static CudaGraph* recording() { return recording_; }
  /// Gives memory back to the driver by `give`, now or, where a thread records, not: false.
  static bool unless_recording(const std::function<void()>& give);
  /// Where this thread's work goes meanwhile.
  void* stream() const { return recorded_on_; }
  /// Memory for the kernel that is being called. Kernels of a stream come one after the other, so what one of them
  /// worked in serves the next as well.
  void* take(size_t bytes);
  void kernel_called();
  /// For what cannot be recorded. end() says the first reason too.
  [[noreturn]] void refuse(const std::string& what);

 private:
  struct Block {
    Ref<Storage> memory;
    bool taken = false;
  };
  static inline thread_local CudaGraph* recording_ = nullptr;
  const Device device_;
  const uint16_t turn_;
  void* recorded_on_ = nullptr;
  void* done_on_ = nullptr;
  std::vector<Block> blocks_;
  std::string refused_;
  void* graph_ = nullptr;
};

}  // namespace tenon
