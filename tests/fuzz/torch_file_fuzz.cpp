#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/model_file.h"
#include "engine/formats/torch/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = tenon::MappedFile::of({reinterpret_cast<const char*>(data), size}, "input");
    const auto f = tenon::formats::TorchFile::parse(file);
    // Every window must be readable from its first to its last byte.
    for (const auto& e : f.entries())
      if (e.tensor.defined() && e.tensor.numel() > 0) {
        int64_t low, high;
        e.tensor.layout().extent(low, high);
        tenon::storage_value(e.tensor, low);
        tenon::storage_value(e.tensor, high);
      }
  } catch (const tenon::Error&) {
  }
  try {  // programs, too, which are shown and not loaded
    const auto m =
        tenon::formats::ModelFile::parse(tenon::MappedFile::of({reinterpret_cast<const char*>(data), size}, "input"));
    for (size_t i = 0; i < m->sources.size(); ++i) {
      try {
        m->source_text(i);
      } catch (const tenon::Error&) {
      }
    }
  } catch (const tenon::Error&) {
  }
  return 0;
}
