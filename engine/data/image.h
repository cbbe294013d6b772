#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/layout.h"

namespace tenon::data {

/// Bytes of pixels, row by row, channels innermost: 1 (grey) or 3 (red, green, blue).
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
};

/// An image by its first bytes, see image_formats(); of moving pictures the first. Converted to `channels` (1 or 3).
/// Throws Error naming `name` for other bytes, damaged ones, formats whose library this build is without, and images of
/// more than 2^26 pixels, before memory for them is taken. What is clear lies on black.
Image parse_image(std::string_view bytes, const std::string& name, int64_t channels);
Image read_image(const std::string& path, int64_t channels);
struct ImageSize {
  int64_t height = 0, width = 0;
};
/// From its header, where its format has one that a library reads by itself. Throws as read_image().
ImageSize size_of_image(const std::string& path);
/// Those that cannot be read, with the reason, in order. Decodes every file; the answer is kept while the program runs
/// and the files are the same.
struct BadImage {
  size_t index;
  std::string why;
};
std::vector<BadImage> bad_images(const std::vector<std::string>& paths);
/// "JPEG, PNG, BMP, GIF, WebP and TIFF".
std::string image_kinds();
/// By the name's ending.
bool is_image_name(const std::string& name);

/// Scales one plane: bilinear between pixel centres, and the mean over what falls into a pixel where it shrinks.
void resize_plane(const float* from, int64_t height, int64_t width, float* to, int64_t to_height, int64_t to_width);
/// An image as planes of [0, 1], [channels, height, width], scaled so that it covers height x width and cut in the
/// middle.
void to_planes(const Image& image, int64_t height, int64_t width, float* to);

/// As a PNG file's bytes.
std::string png_bytes(const Image& image);

}  // namespace tenon::data
