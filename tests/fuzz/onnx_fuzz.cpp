#include "core/error.h"
#include "engine/formats/onnx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tenon::formats::parse_onnx({reinterpret_cast<const char*>(data), size}, "input");
  } catch (const tenon::Error&) {
  }
  return 0;
}
