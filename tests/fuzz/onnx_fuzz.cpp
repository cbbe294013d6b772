#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/model_file.h"
#include "engine/formats/onnx/model.h"
#include "tests/fuzz/run_model.h"

// A model that can be read is also run, and imported into the builder.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  try {  // as the window shows it, whether it can be run or not
    const auto shown = formats::ModelFile::parse(MappedFile::of({reinterpret_cast<const char*>(data), size}, "input"));
    for (size_t i = 0; i < shown->tensors.size(); ++i)
      if (shown->tensors[i].problem.empty()) shown->tensor(i);
  } catch (const Error&) {
  }
  try {
    run_on_ones(formats::parse_onnx({reinterpret_cast<const char*>(data), size}, "input"));
  } catch (const Error&) {
  }
  try {
    import_small(formats::parse_onnx({reinterpret_cast<const char*>(data), size}, "input"));
  } catch (const Error&) {
  }
  return 0;
}
