#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

#include "core/dtype.h"
#include "core/layout.h"
#include "core/ref.h"
#include "core/state.h"

namespace tenon {

/// A meta tensor has sizes and strides but no memory: a model run on it yields shapes and errors for free. Further
/// types are numbered by register_backend() of core/backend.h.
enum class DeviceType : uint8_t { cpu, meta };
inline constexpr int kDeviceTypes = 8;
struct Device {
  DeviceType type = DeviceType::cpu;
  uint8_t index = 0;
  bool operator==(const Device& o) const { return type == o.type && index == o.index; }
};

struct Storage;
void drop_kept_forms(Storage& s);

/// A block of memory shared by every view of it. `version` counts in-place writes and is shared by views.
struct Storage {
  std::atomic<int> refs{1};
  uint32_t version = 0;
  void* data = nullptr;
  size_t bytes = 0;
  Device device;
  uint16_t written_by = 0;              ///< interned_name() of the op that wrote in place last; 0: none did
  uint32_t id = 0;                      ///< unique while memory history or a recorder looks; 0 otherwise
  void (*release)(Storage*) = nullptr;  ///< returns the memory to where it came from
  uint32_t written_seq = 0;             ///< number of that op within its step
  std::atomic<bool> has_forms{false};   ///< kernels keep something that they made of the values: Note [Kept forms]

  /// An in-place write that is no op's.
  void changed() {
    ++version;
    if (has_forms.load(std::memory_order_relaxed)) [[unlikely]]
      drop_kept_forms(*this);
    written_by = 0;
  }
  /// One by the op that this thread is in.
  void wrote() {
    ++version;
    if (has_forms.load(std::memory_order_relaxed)) [[unlikely]]
      drop_kept_forms(*this);
    written_by = t_state.op;
    written_seq = t_state.origin.seq;
  }
};
void release_last(Storage* s);

/// dtype and size: all that shape inference needs.
struct Meta {
  DType dtype = DType::f32;
  Device device;
  Shape shape;
};

/// Autograd's data of a tensor; the engine defines what is in it.
struct GradMeta {
  virtual ~GradMeta() = default;
};

struct TensorImpl;
void release_last(TensorImpl* t);

struct TensorImpl {
  enum Flag : uint8_t {
    requires_grad = 1,
    inference = 2
  };  ///< inference: made in inference mode, never part of a graph
  std::atomic<int> refs{1};
  uint8_t flags = 0;
  Meta meta;
  Dims stride;
  int64_t offset = 0;
  Ref<Storage> storage;
  GradMeta* grad = nullptr;  ///< owned
  Ref<TensorImpl> base;  ///< of a view taken while gradients are recorded: the tensor it is a view of, itself no view
};
Ref<TensorImpl> tensor_impl_new();  // from a thread-local free list
[[noreturn]] void throw_no_axis(int axis, const Shape& size);

/// A handle to a strided array; copying it shares the array. 8 bytes. A default-made Tensor is undefined.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> p) : p_(std::move(p)) {}
  void reset() { p_.reset(); }

  bool defined() const { return p_.get() != nullptr; }
  explicit operator bool() const { return defined(); }
  TensorImpl* impl() const { return p_.get(); }
  bool same(const Tensor& o) const { return p_ == o.p_; }

  DType dtype() const { return p_->meta.dtype; }
  Device device() const { return p_->meta.device; }
  const Meta& meta() const { return p_->meta; }
  const Shape& size() const { return p_->meta.shape; }
  /// Of an axis; negative ones count from the last. Throws Error for an axis that the tensor does not have.
  int64_t size(int axis) const {
    const int at = axis < 0 ? axis + ndim() : axis;
    if (at < 0 || at >= ndim()) [[unlikely]]
      throw_no_axis(axis, p_->meta.shape);
    return p_->meta.shape[at];
  }
  const Dims& stride() const { return p_->stride; }
  int64_t offset() const { return p_->offset; }
  int ndim() const { return p_->meta.shape.n; }
  int64_t numel() const { return p_->meta.shape.product(); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * itemsize(dtype()); }
  Layout layout() const { return {p_->meta.shape, p_->stride, p_->offset}; }
  Storage* storage() const { return p_->storage.get(); }
  uint32_t version() const { return p_->storage ? p_->storage->version : 0; }
  bool is_contiguous() const { return contiguous_strides(p_->meta.shape, p_->stride); }
  bool is_meta() const { return p_->meta.device.type == DeviceType::meta; }

  /// Address of the first element (offset included) on the tensor's device: only kernels of that device may follow it,
  /// everyone else asks to_host() (core/backend.h). T is not checked against dtype().
  template <class T>
  T* data() const {
    return static_cast<T*>(p_->storage->data) + p_->offset;
  }
  void* raw() const {
    return static_cast<char*>(p_->storage->data) + p_->offset * static_cast<int64_t>(itemsize(dtype()));
  }

  /// A view requires its gradient too once its base does, though the base came to it by a write after the view was
  /// taken.
  bool requires_grad() const {
    return (p_->flags & TensorImpl::requires_grad) || (p_->base && (p_->base->flags & TensorImpl::requires_grad));
  }

 private:
  Ref<TensorImpl> p_;
};
static_assert(sizeof(Tensor) == 8);

/// Uninitialised memory of one size; contiguous, or in the given layout (whose offset must be 0 and strides
/// non-negative).
Tensor empty(const Shape& size, DType dtype = DType::f32, Device device = {});
/// Of the size, strides (which must be dense) and dtype of another CPU tensor.
Tensor empty_like(const Tensor& t);
Tensor empty_strided(const Layout& layout, DType dtype, Device device = {});
/// Another view of the same storage. The layout must stay inside it; throws otherwise.
Tensor view_of(const Tensor& base, const Layout& layout);
/// A tensor over memory that someone else owns; `release` is called with the Storage when the last view is gone.
Tensor from_blob(void* data, size_t bytes, const Layout& layout, DType dtype, void (*release)(Storage*),
                 Device device = {});

/// Two views of one storage that may share elements without being the same view: a loop that writes one while it reads
/// the other would read what it has just written.
bool partly_overlaps(const Tensor& a, const Tensor& b);

/// The value of element `index` (one entry an axis) as a double; exact for every dtype but large i64.
double value_at(const Tensor& t, const Dims& index);
/// The value at a position of the storage (in elements, not bytes), whatever view it belongs to.
double storage_value(const Tensor& t, int64_t position);

}  // namespace tenon
