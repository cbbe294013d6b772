#include "core/tensor_bytes.h"

#include <cstring>

#include "core/backend.h"

namespace tenon {

std::string_view logical_bytes(const Tensor& t, std::vector<char>& copy) {
  const size_t bytes = t.nbytes();
  if (bytes == 0) return {};
  if (t.device().type != DeviceType::cpu) {
    const Tensor host = to_host(t);
    const std::string_view there = logical_bytes(host, copy);
    if (there.data() != copy.data()) copy.assign(there.begin(), there.end());
    return {copy.data(), bytes};
  }
  if (t.is_contiguous()) return {static_cast<const char*>(t.raw()), bytes};
  const size_t item = itemsize(t.dtype());
  copy.resize(bytes);
  const Layout layout = t.layout();
  const char* base = static_cast<const char*>(t.storage()->data);
  Dims index = Dims::filled(layout.ndim(), 0);
  int64_t position = layout.offset;
  for (size_t at = 0; at < bytes; at += item) {
    std::memcpy(copy.data() + at, base + position * static_cast<int64_t>(item), item);
    for (int axis = layout.ndim() - 1; axis >= 0; --axis) {
      position += layout.stride[axis];
      if (++index[axis] < layout.size[axis]) break;
      position -= layout.stride[axis] * layout.size[axis];
      index[axis] = 0;
    }
  }
  return {copy.data(), bytes};
}

}  // namespace tenon
