#pragma once
#include <vector>

#include "core/tensor.h"

namespace tenon {

enum class Resample : uint8_t { nearest, linear, cubic, area };
struct InterpolateOptions {
  Dims size;                  ///< of the axes behind the channels; empty: by scale
  std::vector<double> scale;  ///< one number an axis, or one for all
  Resample mode = Resample::nearest;
  bool align_corners = false;  ///< the centres of the corners stay where they are (linear and cubic)
};
/// Images of another size, axis by axis: x [n, c, 1 to 3 axes]. linear is PyTorch's linear, bilinear, trilinear; cubic
/// has a = -0.75.
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

/// [.., c r r, h, w] -> [.., c, h r, w r], and back. Shi et al. (2016).
Tensor pixel_shuffle(const Tensor& x, int64_t factor);
Tensor pixel_unshuffle(const Tensor& x, int64_t factor);
/// Channels of `groups` groups dealt out in turn. Zhang et al.: ShuffleNet (2018).
Tensor channel_shuffle(const Tensor& x, int64_t groups);

enum class GridPadding : uint8_t { zeros, border, reflection };
/// x [n, c, h, w] read at the places of grid [n, oh, ow, 2] = (x, y), where -1 and 1 are the edges (with align_corners
/// the centres of the corners) -> [n, c, oh, ow]. Differentiable in both. Jaderberg et al.: Spatial transformer
/// networks (2015). Modes: nearest, linear, cubic.
Tensor grid_sample(const Tensor& x, const Tensor& grid, Resample mode = Resample::linear,
                   GridPadding padding = GridPadding::zeros, bool align_corners = false);
/// The grid that theta [n, 2, 3] maps an image of size [n, c, h, w] to.
Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners = false);

}  // namespace tenon
