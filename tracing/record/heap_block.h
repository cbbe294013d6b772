#pragma once
#include <cstdint>
#include <vector>

#include "core/memory_image.h"
#include "core/symbol_names.h"
#include "core/tensor.h"
#include "engine/autograd/node.h"

namespace tenon::tracing {

inline uint64_t address_of(const void* p) { return reinterpret_cast<uint64_t>(p); }

/// What stands in a block of the heap, as it was copied. The objects that it gives are words without life: their
/// members may be compared, and nothing that they point to is there. Null where the words are no such object's.
class HeapBlock {
 public:
  /// As an image has it; its beginning is enough to know what it is.
  HeapBlock(const MemoryImage& image, MemorySpan span);
  /// As the process has it now.
  explicit HeapBlock(MemorySpan span);

  /// A tensor's header, known by its size and by what its members may be.
  const TensorImpl* tensor() const;
  const AutogradMeta* history() const;
  /// Only of a block to which a handle of a node leads: one that is kept for reuse has no other mark.
  const Node* node() const;
  /// Numbers of a tensor, which are no addresses.
  bool is_tensor_memory() const;
  /// By its table of virtual functions.
  ObjectClass object_class() const;

  const MemorySpan& span() const { return span_; }
  /// Where in the process a member of one of these objects stands.
  uint64_t place_of(const void* member) const;

 private:
  template <class T>
  const T* as() const {
    return words_.size() * 8 < sizeof(T) ? nullptr : reinterpret_cast<const T*>(words_.data());
  }
  MemorySpan span_;
  std::vector<uint64_t> words_;
};

/// The heap gives a block with up to so many bytes more where they are too few for one of their own.
inline constexpr uint64_t kLeftOverBytes = 16;
/// The bytes that it gives for a tensor's header, at least.
size_t tensor_header_bytes();

}  // namespace tenon::tracing
