#include "core/tensor_values.h"

#include <bit>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/half.h"

namespace tenon {
namespace {

/// Calls fn(place of an element) for the elements `from` to `to`, in elements from the storage's beginning.
template <class Fn>
void each_place(const Layout& l, int64_t from, int64_t to, Fn fn) {
  if (l.is_contiguous()) {
    for (int64_t i = from; i < to; ++i) fn(l.offset + i);
    return;
  }
  Dims at = Dims::filled(l.ndim(), 0);
  int64_t position = l.offset, rest = from;
  for (int axis = l.ndim() - 1; axis >= 0 && l.size[axis] > 0; --axis) {
    at[axis] = rest % l.size[axis];
    rest /= l.size[axis];
    position += at[axis] * l.stride[axis];
  }
  for (int64_t i = from; i < to; ++i) {
    fn(position);
    for (int axis = l.ndim() - 1; axis >= 0; --axis) {
      position += l.stride[axis];
      if (++at[axis] < l.size[axis]) break;
      position -= l.stride[axis] * l.size[axis];
      at[axis] = 0;
    }
  }
}

/// Elements may lie anywhere in a file: they are copied out, never read in place.
template <class T>
T loaded(const char* base, int64_t place) {
  T v;
  std::memcpy(&v, base + place * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}

const char* memory_of(const Tensor& t) {
  if (!t.storage() || t.device().type != DeviceType::cpu) throw Error("values are read of tensors of the host alone");
  return static_cast<const char*>(t.storage()->data);
}

template <class T, class Out, class Fn>
void copied(const Tensor& t, int64_t from, int64_t to, Out* out, Fn fn) {
  const char* base = memory_of(t);
  each_place(t.layout(), from, to, [&](int64_t place) { *out++ = fn(loaded<T>(base, place)); });
}

}  // namespace

void read_values(const Tensor& t, int64_t from, int64_t to, double* out) {
  const auto plain = [](auto v) { return static_cast<double>(v); };
  switch (t.dtype()) {
    case DType::boolean:
      return copied<uint8_t>(t, from, to, out, [](uint8_t v) { return v != 0 ? 1.0 : 0.0; });
    case DType::u8:
      return copied<uint8_t>(t, from, to, out, plain);
    case DType::i8:
      return copied<int8_t>(t, from, to, out, plain);
    case DType::i16:
      return copied<int16_t>(t, from, to, out, plain);
    case DType::i32:
      return copied<int32_t>(t, from, to, out, plain);
    case DType::i64:
      return copied<int64_t>(t, from, to, out, plain);
    case DType::f16:
      return copied<uint16_t>(t, from, to, out, [](uint16_t v) { return static_cast<double>(half_to_float(v)); });
    case DType::bf16:
      return copied<uint16_t>(t, from, to, out, [](uint16_t v) {
        return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(v) << 16));
      });
    case DType::f32:
      return copied<float>(t, from, to, out, plain);
    case DType::f64:
      return copied<double>(t, from, to, out, plain);
  }
}

void read_bits(const Tensor& t, int64_t from, int64_t to, uint64_t* out) {
  const auto plain = [](auto v) { return static_cast<uint64_t>(v); };
  switch (itemsize(t.dtype())) {
    case 1:
      return copied<uint8_t>(t, from, to, out, plain);
    case 2:
      return copied<uint16_t>(t, from, to, out, plain);
    case 4:
      return copied<uint32_t>(t, from, to, out, plain);
    default:
      return copied<uint64_t>(t, from, to, out, plain);
  }
}

bool same_bits(const Tensor& a, const Tensor& b, int64_t from, int64_t to) {
  if (a.layout().is_contiguous() && b.layout().is_contiguous()) {
    const auto item = static_cast<int64_t>(itemsize(a.dtype()));
    return std::memcmp(memory_of(a) + (a.layout().offset + from) * item,
                       memory_of(b) + (b.layout().offset + from) * item, static_cast<size_t>((to - from) * item)) == 0;
  }
  std::vector<uint64_t> of_a(static_cast<size_t>(to - from)), of_b(of_a.size());
  read_bits(a, from, to, of_a.data());
  read_bits(b, from, to, of_b.data());
  return of_a == of_b;
}

}  // namespace tenon
