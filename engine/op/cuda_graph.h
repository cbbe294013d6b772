#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "core/backend.h"

namespace tenon {

/// What a stream of a GPU was given while it was recorded, and the memory that its kernels work in: it stays at its
/// place as long as the graph (Note [A plan as one graph]).
class CudaGraph {
 public:
  /// Begins to record on the thread. The stream is the module's.
  static void begin(Stream where, void* stream);
  /// Ends what begin() began. Throws Error where something in between could not be recorded.
  static CudaGraph* end(Stream where, void* stream);
  void replay(Stream where, void* stream);
  static void drop(CudaGraph* graph, Stream where, void* stream);

  /// The one that this thread records; null: none.
  static CudaGraph* recording() { return recording_; }
  /// Memory for the kernel that is being called. Kernels of a stream come one after the other, so what one of them
  /// worked in serves the next as well.
  void* take(size_t bytes, Device device);
  void kernel_called();
  /// For what cannot be recorded. end() says the first reason too.
  [[noreturn]] void refuse(const std::string& what);

 private:
  struct Block {
    Ref<Storage> memory;
    bool taken = false;
  };
  static inline thread_local CudaGraph* recording_ = nullptr;
  std::vector<Block> blocks_;
  std::string refused_;
  void* graph_ = nullptr;
};

}  // namespace tenon
