#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "engine/formats/onnx/run.h"

// What the family files of ONNX operators (onnx_<family>.cpp) write their definitions with. An operator is defined
// where it is registered; nothing else lists it.
#define TENON_ONNX(TYPE)                                                               \
  Out run_##TYPE(const OnnxCall& c);                                                   \
  const bool registered_##TYPE = register_onnx(#TYPE, OnnxTensorOperator(run_##TYPE)); \
  Out run_##TYPE([[maybe_unused]] const OnnxCall& c)
/// The same for operators on sequences and optionals.
#define TENON_ONNX_ITEMS(TYPE)                                                   \
  Items run_##TYPE(const OnnxCall& c);                                           \
  const bool registered_##TYPE = register_onnx(#TYPE, OnnxOperator(run_##TYPE)); \
  Items run_##TYPE([[maybe_unused]] const OnnxCall& c)

namespace tenon::formats {
using Out = std::vector<Tensor>;
using Items = std::vector<OnnxItem>;

/// Work that a model's numbers may make as large as they like is bounded as its tensors are: throws Error where `count`
/// steps are beyond that.
void need_work(double count);
}  // namespace tenon::formats
