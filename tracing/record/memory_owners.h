#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/memory_image.h"
#include "core/tensor.h"

namespace tenon {
class TrainingSession;
}

// Note [Who holds a tensor]
// From the variables of the program, of its libraries and plug-ins, and from the session, one goes along every address
// that stands in a block of the heap, breadth first, so the way that is found to a storage is a shortest one. Tensors,
// nodes of a graph and the objects of a session are known by what they are; any other block is passed through as what
// it is, a block. A way is a way of words that are there: nothing of it is supposed. What is reached by none is said to
// be held by nobody that is known, as is what only a thread's stack holds.
// Words that are left over from something that stood there before may still make a way. So the sizes that a tensor does
// not use are not looked at; an image of a time before the targets were taken tells words that are older than what they
// lead to; the least of all ways is taken, and what one owner is said to hold is proven by a replay.
// All of it is read off an image, whose words are compared and never followed as pointers. What a proof empties is a
// tensor by each of its members, there and in the process as it is then, and leads to a storage that is known.
namespace tenon::tracing {

/// What a way to a tensor comes through last before the tensor's handle.
enum class OwnerKind : uint8_t {
  unknown,      ///< no way was found
  variable,     ///< a static variable of a program, library or plug-in
  layer,        ///< a member of a layer
  hook,         ///< a hook of a layer
  tensor_hook,  ///< a hook of a parameter's gradient
  callback,
  data_set,
  optimizer,
  gradient,  ///< of a parameter
  session    ///< another part of it
};
/// "variable", "data_set": for programs.
const char* owner_kind_name(OwnerKind kind);

struct TensorOwner {
  OwnerKind kind = OwnerKind::unknown;
  std::string name;  ///< "the variable kept of wave.so", "the layer 'layers.2' (Keeper)"
  bool operator==(const TensorOwner& o) const { return kind == o.kind && name == o.name; }
  bool operator<(const TensorOwner& o) const { return kind != o.kind ? kind < o.kind : name < o.name; }
};

/// How one storage is held.
struct Holding {
  TensorOwner owner;
  std::vector<std::string> chain;  ///< from the root to the storage, each as a person reads it
  bool by_graph = false;           ///< on the way lie nodes of an autograd graph
  int64_t shown = 0, bytes = 0;    ///< of the tensor at its end, and of its storage
  /// The addresses of the first tensor on the way that is none of the session's own, of its storage, and of the block
  /// in which its handle stands; 0 where there is none.
  uint64_t tensor = 0, storage = 0, container = 0;
  int handles = 0;                       ///< of that tensor, in all
  int distance = 0;                      ///< how many blocks lie on the way; what is known to lead on counts nothing
  std::vector<TensorOwner> others = {};  ///< that are as near to the same tensor
  static Holding by_nobody();
  /// A tensor that shows less than half of the storage which it keeps.
  bool by_view() const { return tensor && shown * 2 < bytes; }
};

/// The objects of a session, for those that come upon them in memory. It belongs to the session as it is now.
struct KnownObjects {
  explicit KnownObjects(TrainingSession& session);
  struct Object {
    OwnerKind kind;
    std::string name;
  };
  uint64_t session;                         ///< its address
  std::map<uint64_t, Object> objects;       ///< by address
  std::map<uint64_t, std::string> tensors;  ///< parameters, buffers and what the optimizer keeps, by TensorImpl
};

/// Looks for what holds storages of this process that are alive; no other thread of the session works meanwhile. In the
/// order of `targets`. `before`: of a time when none of them was taken. `passed_over`: an object that knows of them and
/// holds none. Throws Error where memory cannot be looked at (MemoryImage).
std::vector<Holding> find_holders(const std::vector<Storage*>& targets, const KnownObjects& known,
                                  const MemoryImage& before, const void* passed_over);

/// The tensor of a holding; undefined where there is none, or where by now something else stands there.
Tensor held_tensor(const Holding& h);

/// Empties tensors of owners: one has its size and type as before, no history, and a storage that all of them of that
/// many bytes share, filled with zeros. So whoever has it can use it, and what it held is free.
class TensorEmptier {
 public:
  /// Of a tensor whose own storage is to stay (`keep_values`) only the history goes. No other thread may work
  /// with it.
  void empty_out(const Tensor& tensor, bool keep_values);
  int64_t count() const { return count_; }

 private:
  Ref<Storage> shared_zeros(size_t bytes, Device device);
  std::map<std::tuple<size_t, DeviceType, uint8_t>, Tensor> zeros_;
  int64_t count_ = 0;
};

}  // namespace tenon::tracing
