#pragma once
#include <cstdint>

#include "engine/kernels/dnnl.h"

namespace tenon::kernels {

/// Windows over images of f32 whose channels lie innermost (NHWC), for inference: nothing is kept for a gradient.
struct ChannelPool {
  ConvSizes size;
  int64_t channels, kh, kw, sh, sw, dh = 1, dw = 1;
};

/// The largest of each window, NaN where one is; -infinity where a window sees padding alone.
void max_of_channels(const ChannelPool& p, const float* x, float* y);
/// The mean of each window: of what it sees of the image, and of the padding where that counts.
void mean_of_channels(const ChannelPool& p, bool padding_counts, const float* x, float* y);
/// The mean of each channel of each of n images.
void image_means(int64_t n, int64_t pixels, int64_t channels, const float* x, float* y);
/// From channels that lie one after the other (NCHW) to channels innermost.
void channels_innermost(int64_t n, int64_t pixels, int64_t channels, const float* x, float* y);
/// Runs of `each` numbers, whose beginnings lie `from` apart, to places `to` apart: one input of a join along channels.
void copy_runs(int64_t runs, int64_t each, const float* x, int64_t from, float* y, int64_t to);
/// Of every pixel, channel i of group g becomes channel g of group i.
void shuffle_channels(int64_t pixels, int64_t groups, int64_t each, const float* x, float* y);

}  // namespace tenon::kernels
