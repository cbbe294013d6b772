#include "engine/formats/gguf.h"

#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/model_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = tenon::MappedFile::of({reinterpret_cast<const char*>(data), size}, "input");
    const auto g = tenon::formats::Gguf::parse(file);
    for (const auto& e : g.entries()) try {
        g.tensor(e);
      } catch (const tenon::Error&) {
      }
    tenon::formats::ModelFile::parse(file);  // and as the window shows it
  } catch (const tenon::Error&) {
  }
  return 0;
}
