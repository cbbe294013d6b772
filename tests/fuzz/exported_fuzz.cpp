#include "core/error.h"
#include "core/mapped_file.h"
#include "core/pool.h"
#include "engine/formats/aten/exported_model.h"
#include "engine/formats/model_file.h"
#include "tests/fuzz/run_model.h"

// A program of torch.export: shown, converted, run and imported.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto shown = formats::ModelFile::parse(MappedFile::of(bytes, "input"));
    for (size_t i = 0; i < shown->tensors.size(); ++i)
      if (shown->tensors[i].problem.empty()) shown->tensor(i);
  } catch (const Error&) {
  }
  try {
    const AllocationLimit bound(64 << 20);
    const formats::OnnxModel model = formats::parse_exported(MappedFile::of(bytes, "input"));
    try {
      run_on_ones(model);
    } catch (const Error&) {
    }
    import_small(model);
  } catch (const Error&) {
  }
  return 0;
}
