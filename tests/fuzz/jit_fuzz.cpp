#include "core/error.h"
#include "core/mapped_file.h"
#include "core/pool.h"
#include "engine/formats/jit/jit_model.h"
#include "tests/fuzz/run_model.h"

// A TorchScript program: its code is read as what it would compute, which is run and imported.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    const AllocationLimit bound(16 << 20);
    const formats::OnnxModel model = formats::parse_jit(MappedFile::of(bytes, "input"));
    try {
      run_on_ones(model);
    } catch (const Error&) {
    }
    import_small(model);
  } catch (const Error&) {
  }
  return 0;
}
