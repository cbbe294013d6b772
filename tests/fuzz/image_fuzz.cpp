#include "core/error.h"
#include "engine/data/image.h"

// The first byte chooses the channels; the rest is the image.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!size) return 0;
  try {
    auto image =
        tenon::data::parse_image({reinterpret_cast<const char*>(data) + 1, size - 1}, "image", data[0] % 2 ? 3 : 1);
    if (image.pixels.size() != static_cast<size_t>(image.height * image.width * image.channels)) __builtin_trap();
    if (image.height * image.width <= 1 << 16) {
      std::vector<float> planes(static_cast<size_t>(image.channels) * 8 * 8);
      tenon::data::to_planes(image, 8, 8, planes.data());
    }
  } catch (const tenon::Error&) {
  }
  return 0;
}
