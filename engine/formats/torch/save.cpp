#include <fmt/format.h>

#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/file.h"
#include "core/tensor_bytes.h"
#include "engine/formats/torch/file.h"
#include "engine/formats/torch/pickle.h"
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

void save_torch(const std::string& path, const NamedTensors& tensors) {
  struct Saved {
    const Tensor* tensor;
    bool whole;  ///< the storage; otherwise the elements in logical order
  };
  std::vector<Saved> storages;
  std::unordered_map<const Storage*, size_t> keys;
  std::unordered_set<std::string> names;
  // No versions of layers are written beside the values: PyTorch then fills in what a layer of its own has more
  // (num_batches_tracked).
  PickleWriter w(2);
  w.global("collections", "OrderedDict");
  w.begin_tuple();
  w.end_tuple();
  w.call();
  w.begin_items();
  for (const auto& [name, t] : tensors) {
    if (!names.insert(name).second) throw Error(fmt::format("{}: two tensors are named \"{}\"", path, name));
    bool whole = as_it_is(t);
    size_t key = storages.size();
    if (whole) {
      const auto [it, fresh] = keys.emplace(t.storage(), key);
      const Tensor& first = fresh ? t : *storages[it->second].tensor;
      if (first.dtype() == t.dtype())
        key = it->second;
      else
        whole = false;
    }
    if (key == storages.size()) storages.push_back({&t, whole});
    const TorchType& type = torch_type(t.dtype());
    const auto count = whole ? static_cast<int64_t>(t.storage()->bytes / itemsize(t.dtype())) : t.numel();
    w.text(name);
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
    w.boolean(false);
    w.global("collections", "OrderedDict");
    w.begin_tuple();
    w.end_tuple();
    w.call();
    w.end_tuple();
    w.call();
  }
  w.end_dict();

  FileWriter file(path);
  ZipWriter zip(file);
  const std::string stem = std::filesystem::path(path).stem().string(),
                    prefix = (stem.empty() ? "archive" : stem) + "/";
  zip.add(prefix + "data.pkl", w.finish());
  zip.add(prefix + "byteorder", "little");
  for (size_t i = 0; i < storages.size(); ++i) {
    const Tensor& t = *storages[i].tensor;
    std::vector<char> copy;
    zip.add(fmt::format("{}data/{}", prefix, i),
            storages[i].whole ? std::string_view(static_cast<const char*>(t.storage()->data), t.storage()->bytes)
                              : logical_bytes(t, copy));
  }
  zip.add(prefix + "version", "3\n");
  zip.finish();
  file.commit();
}

}  // namespace tenon::formats
