#pragma once
#include <cstdint>

namespace tenon::kernels {

/// A pooling window over NHWC activations.
struct PoolShape {
  int64_t n, c, ih, iw, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw;
};

/// Each output is the largest value its window touches, the first one where several are equal, NaN where any is NaN
/// (PyTorch's rule). `index` gets the number of that tap in the window, ky * kw + kx. Index is uint8_t for windows of
/// at most 255 taps, else int32_t.
template <class T, class Index>
void max_pool2d_forward(const PoolShape& s, const T* x, T* y, Index* index);
/// The largest of u8 alone; 0 where a window touches nothing of the image.
void max_pool2d_u8(const PoolShape& s, const uint8_t* x, uint8_t* y);
/// Every output's gradient goes to the input that won; gx is written whole.
template <class T, class Index>
void max_pool2d_backward(const PoolShape& s, const T* gy, const Index* index, T* gx);
/// The gradient of the backward pass: for every output the value of v at the input that won.
template <class T, class Index>
void max_pool2d_gather(const PoolShape& s, const T* v, const Index* index, T* out);

}  // namespace tenon::kernels
