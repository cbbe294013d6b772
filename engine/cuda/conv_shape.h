#pragma once
#include "engine/cuda/gemm_tile.h"

// Note [Convolutions are products]
// The elements of a product's left side are read out of the image where they lie; nothing is unrolled in memory. The
// result and the gradient of the input are one kernel: each output is a sum over taps of the kernel and channels of an
// image, at a row that is a linear function of the output's row and the tap. Of the gradient of a strided convolution
// only every s-th tap meets an output, and which ones depends on the output's row modulo s: outputs with one remainder
// (a phase) are a product of their own, over their own taps alone.
namespace tenon::cuda {

/// A tensor [images, channels, height, width].
struct ConvImage {
  void* data;
  int32_t channels, height, width;
  int64_t by_image, by_channel, by_row, by_col;
  __host__ __device__ int64_t at(int64_t image, int64_t channel, int64_t row, int64_t col) const {
    return image * by_image + channel * by_channel + row * by_row + col * by_col;
  }
};

/// How a convolution of x [n, .., ..] to y [n, .., ..] goes, whichever of them is computed.
struct ConvShape {
  int32_t images, groups;
  int32_t kernel[2], stride[2], padding[2], dilation[2];
  __host__ __device__ int32_t taps() const { return kernel[0] * kernel[1]; }
  bool one_by_one() const {
    return groups == 1 && taps() == 1 && stride[0] == 1 && stride[1] == 1 && padding[0] == 0 && padding[1] == 0;
  }
};

/// Rows (or columns) of one phase of outputs, and the taps that they meet: output first + q step sees by tap number t
/// (the kernel's tap_first + t tap_step) the image's row q in_step + base + t in_tap.
struct ConvAxis {
  int32_t first, step, count, in_step, base, in_tap, tap_first, tap_step, taps;
};

/// Rows of outputs of the convolution itself (`size` of them) by axis 0 or 1.
__host__ __device__ inline ConvAxis axis_of_result(const ConvShape& s, int axis, int32_t size) {
  return {0, 1, size, s.stride[axis], -s.padding[axis], s.dilation[axis], 0, 1, s.kernel[axis]};
}
/// Rows of inputs, whose gradient is computed, with one remainder modulo the stride.
__host__ __device__ inline ConvAxis axis_of_gradient(const ConvShape& s, int axis, int32_t size, int32_t phase) {
  const int32_t stride = s.stride[axis], dilation = s.dilation[axis], from = phase + s.padding[axis];
  int32_t divisor = stride, rest = dilation % stride;
  while (rest) {
    const int32_t next = divisor % rest;
    divisor = rest, rest = next;
  }
  const int32_t apart = stride / divisor;
  ConvAxis a{phase, stride, size > phase ? (size - phase - 1) / stride + 1 : 0, 1, 0, -(dilation / divisor), 0,
             apart, 0};
  while (a.tap_first < apart && (from - a.tap_first * dilation) % stride) ++a.tap_first;
  if (a.tap_first >= apart || a.tap_first >= s.kernel[axis]) return a;
  a.base = (from - a.tap_first * dilation) / stride;  // without a remainder, so also where it is negative
  a.taps = (s.kernel[axis] - a.tap_first - 1) / apart + 1;
  return a;
}

ConvImage conv_image(const Operand& x);
/// `kernel`: its height and width. Unsupported where a count of pixels or taps does not fit 32 bits.
ConvShape conv_shape(const Args& c, const Operand& x, const Operand& y, const int64_t* kernel);

/// A tensor's pixels as rows of a matrix, channels as its columns. False where one stride does not reach all pixels.
bool pixels_as_rows(const Operand& x, int64_t& by_pixel);

}  // namespace tenon::cuda
