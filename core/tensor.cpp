#include "core/tensor.h"

#include <fmt/format.h>
#include <cstring>
#include <limits>
#include <utility>

#include "core/backend.h"
#include "core/error.h"
#include "core/half.h"
#include "core/idle_memory.h"
#include "core/pool.h"

namespace tenon {
namespace {

// Headers of tensors come and go with every op; a list per thread makes both a few nanoseconds.
struct ImplCache {
  TensorImpl* slots[256];
  int count = 0;
  ~ImplCache() {
    while (count) ::operator delete(slots[--count]);
    count = -1;  // tensors freed later on this thread go straight back
  }
};
thread_local ImplCache t_impls;

#if defined(__SANITIZE_ADDRESS__)
constexpr int kKeep = 0;
#else
constexpr int kKeep = 256;
#endif

int64_t checked_count(const Shape& size, DType dtype) {
  int64_t n = 1;
  bool empty = false;
  for (int64_t s : size) {
    if (s < 0) throw Error(fmt::format("a tensor cannot have size {}", to_string(size)));
    empty |= s == 0;
  }
  for (int64_t s : size)
    if (!empty && __builtin_mul_overflow(n, s, &n)) n = std::numeric_limits<int64_t>::max();
  if (!empty && n > (int64_t{1} << 50) / static_cast<int64_t>(itemsize(dtype)))
    throw Error(fmt::format("a tensor of size {} and dtype {} does not fit in memory", to_string(size), name(dtype)));
  return empty ? 0 : n;
}

}  // namespace

static inline TensorImpl* new_impl() {
  if (t_impls.count > 0) [[likely]] {
    TensorImpl* t = t_impls.slots[--t_impls.count];
    t->refs.store(1, std::memory_order_relaxed);
    t->flags = 0;
    t->offset = 0;
    t->grad = nullptr;
    t->meta.device = {};
    return t;
  }
  return new TensorImpl;
}

MemorySpan idle_tensor_headers() {
  const auto at = reinterpret_cast<uint64_t>(&t_impls);
  return {at, at + sizeof t_impls};
}

Ref<TensorImpl> tensor_impl_new() { return Ref<TensorImpl>::adopt(new_impl()); }

void release_last(TensorImpl* t) {
  if (t->grad) delete std::exchange(t->grad, nullptr);  // who reads memory finds nothing in a header that is kept
  t->storage.reset();
  t->base.reset();
  if (t_impls.count >= 0 && t_impls.count < kKeep)
    t_impls.slots[t_impls.count++] = t;
  else
    delete t;
}

void throw_no_axis(int axis, const Shape& size) {
  throw Error(fmt::format("a tensor of size {} has no axis {}", to_string(size), axis));
}

Tensor empty(const Shape& size, DType dtype, Device device) {
  int64_t n = checked_count(size, dtype);
  Tensor t(Ref<TensorImpl>::adopt(new_impl()));
  TensorImpl& p = *t.impl();
  p.meta.dtype = dtype;
  p.meta.device = device;
  p.meta.shape = size;
  p.stride.n = size.n;
  int64_t step = 1;
  for (int i = size.n - 1; i >= 0; --i) {
    p.stride[i] = step;
    step *= size[i] > 1 ? size[i] : 1;
  }
  if (device.type == DeviceType::cpu)
    p.storage = pool_take(static_cast<size_t>(n) * itemsize(dtype));
  else if (device.type != DeviceType::meta)
    p.storage = backend_take(static_cast<size_t>(n) * itemsize(dtype), device);
  return t;
}

Tensor empty_like(const Tensor& like) {
  Tensor t(Ref<TensorImpl>::adopt(new_impl()));
  TensorImpl& p = *t.impl();
  p.meta = like.meta();
  p.stride = like.stride();
  p.storage = pool_take(like.nbytes());
  return t;
}

Tensor empty_strided(const Layout& layout, DType dtype, Device device) {
  checked_count(layout.size, dtype);
  int64_t lo, hi;
  layout.extent(lo, hi);
  if (lo < 0 || layout.offset != 0)
    throw Error(fmt::format("empty_strided: strides {} and offset {} reach before the storage",
                            to_string(layout.stride), layout.offset));
  Tensor t = empty({hi + 1}, dtype, device);
  t.impl()->meta.shape = layout.size;
  t.impl()->stride = layout.stride;
  return t;
}

Tensor view_of(const Tensor& base, const Layout& layout) {
  int64_t lo, hi;
  layout.extent(lo, hi);
  if (base.storage()) {
    auto count = static_cast<int64_t>(base.storage()->bytes / itemsize(base.dtype()));
    if (hi >= lo && (lo < 0 || hi >= count))
      throw Error(fmt::format("a view of size {}, stride {} and offset {} reaches elements {} to {} of a storage of {}",
                              to_string(layout.size), to_string(layout.stride), layout.offset, lo, hi, count));
  }
  Tensor t(Ref<TensorImpl>::adopt(new_impl()));
  TensorImpl& p = *t.impl();
  p.meta.dtype = base.dtype();
  p.meta.device = base.device();
  p.meta.shape = layout.size;
  p.stride = layout.stride;
  p.offset = layout.offset;
  p.storage = base.impl()->storage;
  return t;
}

Tensor from_blob(void* data, size_t bytes, const Layout& layout, DType dtype, void (*release)(Storage*),
                 Device device) {
  int64_t lo, hi;
  layout.extent(lo, hi);
  if (lo < 0 || static_cast<size_t>(hi + 1) * itemsize(dtype) > bytes)
    throw Error(fmt::format("from_blob: size {} and stride {} reach beyond {} bytes", to_string(layout.size),
                            to_string(layout.stride), bytes));
  auto* s = new Storage;
  s->data = data;
  s->bytes = bytes;
  s->release = release;
  s->device = device;
  Tensor t(Ref<TensorImpl>::adopt(new_impl()));
  t.impl()->storage = Ref<Storage>::adopt(s);
  t.impl()->meta = {dtype, device, layout.size};
  t.impl()->stride = layout.stride;
  t.impl()->offset = layout.offset;
  return t;
}

bool partly_overlaps(const Tensor& a, const Tensor& b) {
  if (!a || !b || !a.storage() || a.storage() != b.storage()) return false;
  if (a.offset() == b.offset() && a.size() == b.size() && a.stride() == b.stride() && a.dtype() == b.dtype())
    return false;
  int64_t alo, ahi, blo, bhi;
  a.layout().extent(alo, ahi);
  b.layout().extent(blo, bhi);
  return alo <= bhi && blo <= ahi;
}

static double read(const void* base, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::boolean:
      return static_cast<const uint8_t*>(base)[i] != 0;
    case DType::u8:
      return static_cast<const uint8_t*>(base)[i];
    case DType::i8:
      return static_cast<const int8_t*>(base)[i];
    case DType::i16:
      return static_cast<const int16_t*>(base)[i];
    case DType::i32:
      return static_cast<const int32_t*>(base)[i];
    case DType::i64:
      return static_cast<double>(static_cast<const int64_t*>(base)[i]);
    case DType::f16:
      return half_to_float(static_cast<const uint16_t*>(base)[i]);
    case DType::bf16:
      return bfloat_to_float(static_cast<const uint16_t*>(base)[i]);
    case DType::f32:
      return static_cast<const float*>(base)[i];
    case DType::f64:
      return static_cast<const double*>(base)[i];
  }
  return 0;
}

double value_at(const Tensor& t, const Dims& index) {
  if (index.n != t.ndim())
    throw Error(fmt::format("an index of {} entries for a tensor of size {}", index.n, to_string(t.size())));
  int64_t at = t.offset();
  for (int i = 0; i < index.n; ++i) {
    if (index[i] < 0 || index[i] >= t.size()[i])
      throw Error(fmt::format("index {} is outside size {}", to_string(index), to_string(t.size())));
    at += index[i] * t.stride()[i];
  }
  return storage_value(t, at);
}

double storage_value(const Tensor& t, int64_t position) {
  if (!t.storage()) throw Error("a tensor without memory (device meta) has no values");
  if (position < 0 || static_cast<size_t>(position) >= t.storage()->bytes / itemsize(t.dtype()))
    throw Error(fmt::format("position {} is outside the storage of {} bytes", position, t.storage()->bytes));
  if (t.device().type == DeviceType::cpu) return read(t.storage()->data, t.dtype(), position);
  const auto item = static_cast<int64_t>(itemsize(t.dtype()));
  alignas(8) char one[8];
  copy_bytes(one, {}, static_cast<const char*>(t.storage()->data) + position * item, t.device(),
             static_cast<size_t>(item));
  return read(one, t.dtype(), 0);
}

}  // namespace tenon
