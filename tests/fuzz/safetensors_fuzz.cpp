#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/model_file.h"
#include "engine/formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = tenon::MappedFile::of({reinterpret_cast<const char*>(data), size}, "input");
    const auto s = tenon::formats::Safetensors::parse(file);
    for (const auto& e : s.entries()) try {
        s.tensor(e);
      } catch (const tenon::Error&) {
      }
  } catch (const tenon::Error&) {
  }
  try {  // and as the window shows it
    tenon::formats::ModelFile::parse(tenon::MappedFile::of({reinterpret_cast<const char*>(data), size}, "input"));
  } catch (const tenon::Error&) {
  }
  return 0;
}
