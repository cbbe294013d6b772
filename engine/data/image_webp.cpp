#include "engine/data/image_format.h"

#ifdef TENON_WEBP
#include <webp/decode.h>

#include "core/error.h"

namespace tenon::data {

Image read_webp(std::string_view bytes, const std::string& name, int64_t channels) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures found;
  if (WebPGetFeatures(data, bytes.size(), &found) != VP8_STATUS_OK)
    throw Error(name + " is damaged: its header cannot be read");
  if (found.has_animation)
    throw Error(name + " is a WebP film, of which no picture is read", "save its first picture as PNG");
  check_image_size(found.height, found.width, name);
  std::vector<uint8_t> rgba(4 * static_cast<size_t>(found.height) * static_cast<size_t>(found.width));
  if (!WebPDecodeRGBAInto(data, bytes.size(), rgba.data(), rgba.size(), 4 * found.width))
    throw Error(name + " is damaged: its pixels cannot be read");
  return from_rgba(rgba.data(), found.height, found.width, channels);
}

}  // namespace tenon::data
#endif
