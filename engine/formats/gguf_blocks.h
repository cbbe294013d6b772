#pragma once
#include <cstdint>
#include <optional>

#include "core/dtype.h"

namespace tenon::formats {

/// A type of ggml's tensors. Most are quantized: a row is cut into blocks of so many elements, each with scales of its
/// own.
struct GgmlType {
  uint32_t id;
  const char* name;                 ///< "Q4_K"
  uint32_t elements;                ///< of a block
  uint32_t bytes;                   ///< of a block
  std::optional<DType> dtype = {};  ///< where an element is one of the engine's
  /// Writes the elements of one block as ggml itself computes them, bit for bit. Null: not known here, or not needed.
  void (*decode)(const uint8_t* block, float* out) = nullptr;
};
/// Null where there is no type of that number.
const GgmlType* find_ggml_type(uint32_t id);
/// The one that elements of the engine's type are written as; null: ggml has none.
const GgmlType* ggml_type_of(DType dtype);

}  // namespace tenon::formats
