#include "core/dtype.h"

#include <cstring>

namespace tenon {

static constexpr const char* kNames[kDTypes] = {"bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"};

const char* name(DType t) { return kNames[static_cast<int>(t)]; }

bool parse_dtype(const char* text, DType& out) {
  for (int i = 0; i < kDTypes; ++i)
    if (!std::strcmp(text, kNames[i])) {
      out = static_cast<DType>(i);
      return true;
    }
  return false;
}

}  // namespace tenon
