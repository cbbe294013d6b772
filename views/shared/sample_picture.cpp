#include "views/shared/sample_picture.h"

#include <algorithm>
#include <cmath>

#include "views/shared/tokens.h"

namespace tenon::views {

using data::Image;

namespace {

/// The sizes at which a picture's longer side is no longer than `side`.
std::pair<int64_t, int64_t> fitted(int64_t h, int64_t w, int64_t side) {
  const int64_t most = std::max(h, w);
  if (most <= side) return {h, w};
  return {std::max<int64_t>(1, h * side / most), std::max<int64_t>(1, w * side / most)};
}

void turn_upside_down(Image& image) {
  const auto row = static_cast<std::ptrdiff_t>(image.width * image.channels);
  for (int64_t top = 0, bottom = image.height - 1; top < bottom; ++top, --bottom)
    std::swap_ranges(image.pixels.begin() + top * row, image.pixels.begin() + (top + 1) * row,
                     image.pixels.begin() + bottom * row);
}

Image picture(const float* planes, const Shape& s, const Levels& levels, int64_t side) {
  const auto [h, w] = fitted(s[1], s[2], side);
  Image out{h, w, s[0], std::vector<uint8_t>(static_cast<size_t>(h * w * s[0]))};
  std::vector<float> plane(static_cast<size_t>(h * w));
  for (int64_t c = 0; c < s[0]; ++c) {
    data::resize_plane(planes + c * s[1] * s[2], s[1], s[2], plane.data(), h, w);
    for (int64_t i = 0; i < h * w; ++i)
      out.pixels[static_cast<size_t>(i * s[0] + c)] = levels.byte(plane[static_cast<size_t>(i)]);
  }
  return out;
}

/// The first class, most often the ground, is dark; the others have the colours of series, further ones a shade of
/// them.
Rgb class_color(int64_t c) {
  if (c < 0) return color(Ink::bad, ThemeName::light);
  if (c == 0) return color(Ink::line, ThemeName::dark);
  Rgb out = color(static_cast<Ink>(static_cast<int>(Ink::series0) + static_cast<int>((c - 1) % 8)), ThemeName::dark);
  for (int64_t i = (c - 1) / 8 % 3; i > 0; --i)
    out = {static_cast<uint8_t>(out.r * 2 / 3), static_cast<uint8_t>(out.g * 2 / 3),
           static_cast<uint8_t>(out.b * 2 / 3)};
  return out;
}

/// Between the least and the largest value of each column a line, grey on nothing.
Image wave(const float* values, const Shape& s, int64_t side) {
  const int64_t h = side / 2, w = std::min<int64_t>(side, s[1]);
  Image out{h, w, 1, std::vector<uint8_t>(static_cast<size_t>(h * w), 24)};
  float most = 1e-9f;
  for (int64_t i = 0; i < s.product(); ++i)
    if (std::isfinite(values[i])) most = std::max(most, std::abs(values[i]));
  const auto line_of = [&](float v) {
    const float at = std::isfinite(v) ? v / most : 0;
    return std::clamp<int64_t>(std::lround((1 - at) / 2 * static_cast<float>(h - 1)), 0, h - 1);
  };
  for (int64_t x = 0; x < w; ++x) {
    float low = INFINITY, high = -INFINITY;
    for (int64_t i = x * s[1] / w; i < std::max((x + 1) * s[1] / w, x * s[1] / w + 1); ++i)
      for (int64_t c = 0; c < s[0]; ++c)
        low = std::min(low, values[c * s[1] + i]), high = std::max(high, values[c * s[1] + i]);
    for (int64_t y = line_of(high); y <= line_of(low); ++y) out.pixels[static_cast<size_t>(y * w + x)] = 200;
  }
  return out;
}

}  // namespace

bool is_picture(const Meta& m) {
  return m.dtype == DType::f32 && m.shape.n == 3 && (m.shape[0] == 1 || m.shape[0] == 3) && m.shape[1] >= 4 &&
         m.shape[2] >= 4;
}

bool is_sound(const Meta& m) { return m.dtype == DType::f32 && m.shape.n == 2 && m.shape[0] <= 2 && m.shape[1] >= 64; }

Levels::Levels(const float* values, int64_t n) {
  float least = INFINITY, most = -INFINITY;
  for (int64_t i = 0; i < n; ++i)
    if (std::isfinite(values[i])) least = std::min(least, values[i]), most = std::max(most, values[i]);
  if (least >= 0 && most <= 1) return;
  if (most > least) low = least, high = most;
}

uint8_t Levels::byte(float v) const {
  return std::isfinite(v) ? static_cast<uint8_t>(std::lround(255 * std::clamp((v - low) / (high - low), 0.f, 1.f))) : 0;
}

Image sample_picture(const float* values, const Shape& shape, bool bottom_first, const Levels& levels, int64_t side) {
  if (shape.n == 2) return wave(values, shape, side);
  Image out = picture(values, shape, levels, side);
  if (bottom_first) turn_upside_down(out);
  return out;
}

Image mask_picture(const int64_t* classes, int64_t height, int64_t width, bool bottom_first, int64_t side) {
  const auto [h, w] = fitted(height, width, side);
  Image out{h, w, 3, {}};
  for (int64_t y = 0; y < h; ++y)
    for (int64_t x = 0; x < w; ++x) {
      const Rgb c = class_color(classes[y * height / h * width + x * width / w]);
      out.pixels.insert(out.pixels.end(), {c.r, c.g, c.b});
    }
  if (bottom_first) turn_upside_down(out);
  return out;
}

}  // namespace tenon::views
