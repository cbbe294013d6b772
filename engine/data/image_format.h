#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/image.h"

namespace tenon::data {

/// A way in which images are written. All formats are known by name; a build may be without the library that reads one.
struct ImageFormat {
  const char* name;                  ///< "WebP"
  std::vector<const char*> endings;  ///< of files' names
  const char* package;               ///< what a build needs in order to read it
  bool (*is)(std::string_view bytes);
  /// Null: this build is without the package.
  Image (*read)(std::string_view bytes, const std::string& name, int64_t channels);
  bool sizes = false;  ///< of 0 channels it reads the size alone
};
const std::vector<ImageFormat>& image_formats();
/// parse_image() with formats of one's own.
Image parse_image(std::string_view bytes, const std::string& name, int64_t channels,
                  const std::vector<ImageFormat>& formats);

/// Throws Error naming the image where it has no pixels, or more than 2^26: before memory for them is taken.
void check_image_size(int64_t height, int64_t width, const std::string& name);
/// Colours with an opacity, four bytes a pixel, on black, as three channels or one of grey (Rec. 601).
Image from_rgba(const uint8_t* rgba, int64_t height, int64_t width, int64_t channels);

Image read_bmp(std::string_view bytes, const std::string& name, int64_t channels);
/// The first picture of a GIF.
Image read_gif(std::string_view bytes, const std::string& name, int64_t channels);
Image read_webp(std::string_view bytes, const std::string& name, int64_t channels);
/// The first picture of a TIFF.
Image read_tiff(std::string_view bytes, const std::string& name, int64_t channels);

}  // namespace tenon::data
