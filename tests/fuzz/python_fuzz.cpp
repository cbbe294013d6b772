#include <string>

#include "core/error.h"
#include "engine/formats/python/reader.h"
#include "engine/formats/python/writer.h"

/// A source is read or refused with its line; what was read is written and read again as the same model.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  std::string written;
  ModelSpec model;
  try {
    model = python::read_model({reinterpret_cast<const char*>(data), size}).model;
    written = python::write_model(model);
  } catch (const Error&) {
    return 0;
  }
  try {
    if (!python::same_model(model, python::read_model(written).model)) __builtin_trap();
  } catch (const Error&) {
    __builtin_trap();
  }
  return 0;
}
