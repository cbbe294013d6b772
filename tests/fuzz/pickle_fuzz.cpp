#include "core/error.h"
#include "engine/formats/torch/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (auto what : {tenon::formats::PickleOf::plain_values, tenon::formats::PickleOf::objects}) try {
      tenon::formats::read_pickle({reinterpret_cast<const char*>(data), size}, what);
    } catch (const tenon::Error&) {
    }
  return 0;
}
