#include "engine/formats/torch/tensor_pickler.h"

#include <fmt/format.h>

#include "core/tensor_bytes.h"
#include "engine/formats/torch/types.h"
#include "engine/formats/zip.h"

namespace tenon::formats {
namespace {

/// Whether PyTorch can have the storage as it is: it knows no negative strides, and one dtype for all elements of a
/// storage.
bool as_it_is(const Tensor& t) {
  for (int64_t s : t.stride())
    if (s < 0) return false;
  return t.numel() > 0 && t.device().type == DeviceType::cpu && t.storage()->bytes % itemsize(t.dtype()) == 0;
}

void dims(PickleWriter& w, const Dims& d) {
  w.begin_tuple();
  for (int64_t n : d) w.integer(n);
  w.end_tuple();
}

}  // namespace

void TensorPickler::write(PickleWriter& w, const Tensor& t, bool requires_grad) {
  bool whole = as_it_is(t);
  size_t key = storages_.size();
  if (whole) {
    const auto [it, fresh] = keys_.emplace(t.storage(), key);
    const Tensor& first = fresh ? t : *storages_[it->second].tensor;
    if (first.dtype() == t.dtype())
      key = it->second;
    else
      whole = false;
  }
  if (key == storages_.size()) storages_.push_back({&t, whole});
  const TorchType& type = torch_type(t.dtype());
  const auto count = whole ? static_cast<int64_t>(t.storage()->bytes / itemsize(t.dtype())) : t.numel();
  w.global("torch._utils", "_rebuild_tensor_v2");
  w.begin_tuple();
  w.begin_tuple();
  w.text("storage");
  w.global("torch", type.storage);
  w.text(std::to_string(key));
  w.text("cpu");
  w.integer(count);
  w.end_tuple();
  w.persistent();
  w.integer(whole ? t.offset() : 0);
  dims(w, t.size());
  dims(w, whole ? t.stride() : Layout::contiguous(t.size()).stride);
  w.boolean(requires_grad);
  w.global("collections", "OrderedDict");
  w.begin_tuple();
  w.end_tuple();
  w.call();
  w.end_tuple();
  w.call();
}

void TensorPickler::add_storages(ZipWriter& zip, const std::string& folder) const {
  for (size_t i = 0; i < storages_.size(); ++i) {
    const Tensor& t = *storages_[i].tensor;
    std::vector<char> copy;
    zip.add(fmt::format("{}{}", folder, i),
            storages_[i].whole ? std::string_view(static_cast<const char*>(t.storage()->data), t.storage()->bytes)
                               : logical_bytes(t, copy));
  }
}

}  // namespace tenon::formats
