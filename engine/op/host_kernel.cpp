#include "engine/op/host_kernel.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/pool.h"
#include "core/profile.h"

namespace tenon {
namespace {

/// The part of a device's storage that a call touches, and where it lies on the host while the call runs.
struct DeviceCrossing {
  Storage* there = nullptr;
  int64_t begin = 0, end = 0;  ///< bytes
  bool read = false, written = false;
  Ref<Storage> here;
};

class HostCall {
 public:
  explicit HostCall(const Call& given) : call_(given), in_(tensors(given.inputs)), out_(tensors(given.outputs)) {
    for (int i = 0; i < given.inputs; ++i) plan(given.in[i], true, i < 32 && (given.op->writes >> i & 1u));
    for (int i = 0; i < given.outputs; ++i)
      if (given.out[i].defined()) plan(given.out[i], !given.out[i].layout().is_dense(), true);
    cross(true);
    for (int i = 0; i < given.inputs; ++i) in_[static_cast<size_t>(i)] = shown(given.in[i]);
    for (int i = 0; i < given.outputs; ++i) out_[static_cast<size_t>(i)] = shown(given.out[i]);
    call_.in = in_.data();
    call_.out = out_.data();
    call_.stream = {};
    if (given.op->workspace)
      if (const size_t bytes = given.op->workspace(given.attrs, call_)) {
        CategoryScope category(Category::workspace);
        workspace_ = pool_take(bytes);
        call_.workspace = workspace_->data;
      }
  }
  const Call& call() const { return call_; }
  void give_back() { cross(false); }

 private:
  static std::vector<Tensor> tensors(int n) { return std::vector<Tensor>(static_cast<size_t>(n)); }

  void plan(const Tensor& t, bool read, bool written) {
    if (!t.defined() || t.numel() == 0 || !t.storage()) return;
    int64_t lo, hi;
    t.layout().extent(lo, hi);
    const auto item = static_cast<int64_t>(itemsize(t.dtype()));
    DeviceCrossing& c = crossings_[t.storage()];
    // From where elements of every type may begin: two operands of one storage can differ in theirs.
    const int64_t begin = lo * item / 8 * 8, end = (hi + 1) * item;
    // A part that one operand writes and another does not cover has to be brought too.
    const bool grows = c.there && (begin < c.begin || end > c.end);
    c.begin = c.there ? std::min(c.begin, begin) : begin;
    c.end = c.there ? std::max(c.end, end) : end;
    c.there = t.storage();
    c.read |= read || grows;
    c.written |= written;
  }

  void cross(bool to_host) {
    const int64_t start = now_ns();
    for (auto& [storage, c] : crossings_) {
      const auto bytes = static_cast<size_t>(c.end - c.begin);
      char* there = static_cast<char*>(c.there->data) + c.begin;
      if (to_host) c.here = pool_take(bytes);
      if (to_host && c.read) copy_bytes(c.here->data, {}, there, c.there->device, bytes);
      if (!to_host && c.written) copy_bytes(there, c.there->device, c.here->data, {}, bytes);
    }
    if (!(mode_word() & mode::profile)) return;
    static const uint16_t names[] = {intern_name("to the device, no kernel there"),
                                     intern_name("to the host, no kernel there")};
    profile_add(names[to_host], start, now_ns(), t_state.origin);
  }

  Tensor shown(const Tensor& t) const {
    if (!t.defined()) return {};
    Ref<TensorImpl> p = tensor_impl_new();
    p->meta = t.meta();
    p->meta.device = {};
    p->stride = t.stride();
    const auto it = crossings_.find(t.storage());
    if (t.numel() == 0 || it == crossings_.end()) {
      p->offset = 0;
      p->storage = pool_take(1);
    } else {
      p->offset = t.offset() - it->second.begin / static_cast<int64_t>(itemsize(t.dtype()));
      p->storage = it->second.here;
    }
    return Tensor(std::move(p));
  }

  Call call_;
  std::map<const Storage*, DeviceCrossing> crossings_;
  std::vector<Tensor> in_, out_;
  Ref<Storage> workspace_;
};

}  // namespace

void run_on_host(const Call& call) {
  HostCall host(call);
  call.op->kernels[static_cast<size_t>(DeviceType::cpu)](host.call());
  host.give_back();
}

}  // namespace tenon
