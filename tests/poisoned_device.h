#pragma once
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "core/backend.h"
#include "engine/op/op.h"

// A device of its own, made of the host's memory: what a tensor on it holds is an address that no host code can follow,
// a constant away from where the bytes lie. Its kernels are the CPU's, called with the operands at their true places.
// So whatever reads or writes a tensor outside a kernel or the backend's functions, at any time and on any thread, ends
// in a segmentation fault; and what comes out can be compared with the CPU's bit for bit.
namespace tenon::poisoned {

/// Not an address of x86-64 or AArch64 user space, whatever is added to it.
inline constexpr uintptr_t kAway = uintptr_t{1} << 60;

inline void* hidden(void* p) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(p) + kAway); }
inline void* shown(void* p) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(p) - kAway); }

/// The operands of one call as CPU tensors at their true places; operands of one storage share one here too.
class Shown {
 public:
  explicit Shown(const Call& c) : in_(of(c.in, c.inputs)), out_(of(c.out, c.outputs)), call_(c) {
    call_.in = in_.data();
    call_.out = out_.data();
    call_.stream = {};
    if (c.workspace) call_.workspace = shown(c.workspace);
  }
  const Call& call() const { return call_; }

 private:
  std::vector<Tensor> of(const Tensor* list, int n) {
    std::vector<Tensor> all(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) {
      if (!list[i].defined()) continue;
      Ref<Storage>& s = storages_[list[i].storage()];
      if (!s) {
        s = Ref<Storage>::adopt(new Storage);
        s->data = shown(list[i].storage()->data);
        s->bytes = list[i].storage()->bytes;
        s->version = list[i].storage()->version;
        s->release = [](Storage* dead) { delete dead; };
      }
      Ref<TensorImpl> p = tensor_impl_new();
      p->meta = list[i].meta();
      p->meta.device = {};
      p->stride = list[i].stride();
      p->offset = list[i].offset();
      p->storage = s;
      all[static_cast<size_t>(i)] = Tensor(std::move(p));
    }
    return all;
  }

  std::map<const Storage*, Ref<Storage>> storages_;
  std::vector<Tensor> in_, out_;
  Call call_;
};

inline void run_cpu_kernel(const Call& c) {
  const Shown shown(c);
  c.op->kernels[static_cast<size_t>(DeviceType::cpu)](shown.call());
}

/// The device, registered with a kernel for every op on the first call.
inline Device device() {
  static const DeviceType type = [] {
    Backend b;
    b.name = "poisoned";
    b.take = [](Device, size_t bytes) { return hidden(std::malloc(bytes ? bytes : 1)); };
    b.give = [](Device, void* p, size_t bytes) {
      std::memset(shown(p), 0xA5, bytes);  // what is used after it was given back differs from the CPU's
      std::free(shown(p));
    };
    b.copy = [](void* to, Device to_device, const void* from, Device from_device, size_t bytes, Stream) {
      std::memcpy(to_device.type == DeviceType::cpu ? to : shown(to),
                  from_device.type == DeviceType::cpu ? from : shown(const_cast<void*>(from)), bytes);
    };
    b.fill = [](void* to, const void* value, size_t item, int64_t count, Stream) {
      for (int64_t i = 0; i < count; ++i)
        std::memcpy(static_cast<char*>(shown(to)) + i * static_cast<int64_t>(item), value, item);
    };
    b.sync = [](Stream) {};
    const DeviceType t = register_backend(b);
    for (const OpDef& op : all_ops())
      if (!op.info.any_device && op.kernels[static_cast<size_t>(DeviceType::cpu)])
        register_kernel(op.info.name, t, run_cpu_kernel);
    return t;
  }();
  return {type, 0};
}

}  // namespace tenon::poisoned
