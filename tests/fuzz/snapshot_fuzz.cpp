#include "core/error.h"
#include "tracing/memory_snapshot.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tenon::tracing::snapshot_info({reinterpret_cast<const char*>(data), size});
  } catch (const tenon::Error&) {
  }
  return 0;
}
