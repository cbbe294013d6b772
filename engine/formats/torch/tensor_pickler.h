#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "core/tensor.h"
#include "engine/formats/torch/pickle.h"

namespace tenon::formats {

class ZipWriter;

/// Tensors of a pickle, and the storages beside it that they lie in. Tensors of one storage share it in the file, with
/// their strides and offsets. They must live until add_storages().
class TensorPickler {
 public:
  void write(PickleWriter& w, const Tensor& t, bool requires_grad = false);
  /// "<folder>0", "<folder>1", ...: the storages' bytes.
  void add_storages(ZipWriter& zip, const std::string& folder) const;

 private:
  struct Saved {
    const Tensor* tensor;
    bool whole;  ///< the storage; otherwise the elements in logical order
  };
  std::vector<Saved> storages_;
  std::unordered_map<const Storage*, size_t> keys_;
};

}  // namespace tenon::formats
