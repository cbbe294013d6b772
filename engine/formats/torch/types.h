#pragma once
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "engine/formats/torch/pickle.h"

namespace tenon::formats {

/// A storage class of PyTorch ("FloatStorage") and the dtype of its elements ("float32").
struct TorchType {
  std::string_view storage, dtype;
  int item = 0;     ///< bytes of an element
  int engine = -1;  ///< a DType, or -1 where the engine has none
};
/// Null where there is no such class, or no such dtype.
const TorchType* torch_storage(const PyValue::Global& g);
const TorchType* torch_dtype(std::string_view name);
const TorchType& torch_type(DType t);

/// Whether a global names data that a checkpoint is made of: what torch.load(weights_only=True) allows, and further
/// plain data (NumPy scalars, Namespace, paths, the layers of torch.nn). Anything else a file asks for is foreign.
bool is_data(const PyValue::Global& g);

}  // namespace tenon::formats
