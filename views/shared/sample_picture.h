#pragma once
#include <cstdint>

#include "core/tensor.h"
#include "engine/data/image.h"

namespace tenon::views {

/// No side of a sample's picture is longer, and of one that is looked at for itself.
inline constexpr int64_t kSampleSide = 96, kLookSide = 384;

/// What samples can be seen as: planes of one or three channels, or one or two lines over time.
bool is_picture(const Meta& m);
bool is_sound(const Meta& m);

/// Values that are shown from black to white: 0 to 1 where all of them lie there, else from the least to the largest,
/// for data sets shift and scale their values as they please.
struct Levels {
  float low = 0, high = 1;
  Levels(const float* values, int64_t n);
  uint8_t byte(float v) const;
};
/// Planes as a picture; a sound as a line round its middle, as high as it is loud. The shape is one that is_picture()
/// or is_sound() knows. `bottom_first`: see data::Dataset::bottom_first().
data::Image sample_picture(const float* values, const Shape& shape, bool bottom_first, const Levels& levels,
                           int64_t side = kSampleSide);
/// Classes of pixels as colours.
data::Image mask_picture(const int64_t* classes, int64_t height, int64_t width, bool bottom_first,
                         int64_t side = kSampleSide);

}  // namespace tenon::views
