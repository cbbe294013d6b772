#pragma once
#include "core/tensor.h"

// Fourier transforms, with torch.fft's names. There is no complex dtype: a complex tensor has a last axis of size 2
// (real, imaginary), as PyTorch's view_as_real() gives it, and `axis` arguments do not count that axis. f32 and f64.
// Computed by kissfft, one row on one thread.
namespace tenon {

/// Which direction is divided by what: backward: the inverse by n; forward: the forward one by n; ortho: both by
/// sqrt(n).
enum class FftNorm : uint8_t { backward, ortho, forward };

/// Complex to complex along one axis, cut or padded with zeros to n elements first (-1: as many as there are).
Tensor fft(const Tensor& x, int64_t n = -1, int axis = -1, FftNorm norm = FftNorm::backward);
Tensor ifft(const Tensor& x, int64_t n = -1, int axis = -1, FftNorm norm = FftNorm::backward);
/// Real [.., n, ..] -> complex [.., n / 2 + 1, .., 2]: the half that is not the other's mirror image.
Tensor rfft(const Tensor& x, int64_t n = -1, int axis = -1, FftNorm norm = FftNorm::backward);
/// The inverse, real with n elements (-1: 2 (m - 1)); imaginary parts that a real signal cannot have are passed over.
Tensor irfft(const Tensor& x, int64_t n = -1, int axis = -1, FftNorm norm = FftNorm::backward);
/// Along the last two axes.
Tensor fft2(const Tensor& x, FftNorm norm = FftNorm::backward);
Tensor ifft2(const Tensor& x, FftNorm norm = FftNorm::backward);
/// Moves the zero frequency to the middle of one axis, and back. For a complex x count its last axis in, or use a
/// negative axis below -1.
Tensor fftshift(const Tensor& x, int axis);
Tensor ifftshift(const Tensor& x, int axis);

/// Windows of n elements; periodic ones are the first n of n + 1.
Tensor hann_window(int64_t n, bool periodic = true, DType dtype = DType::f32);
Tensor hamming_window(int64_t n, bool periodic = true, DType dtype = DType::f32);
Tensor blackman_window(int64_t n, bool periodic = true, DType dtype = DType::f32);

struct StftOptions {
  int64_t n_fft = 0, hop = 0;  ///< hop 0: n_fft / 4
  Tensor window;               ///< at most n_fft elements, centred; undefined: ones
  bool center = true;          ///< reflect half a frame on both sides first, so that frame t is centred at t * hop
  bool normalized = false;     ///< divide by sqrt(n_fft)
  bool onesided = true;        ///< only frequencies up to the middle
};
/// Short-time Fourier transform: x [.., time] -> complex [.., frequency, frame, 2].
Tensor stft(const Tensor& x, const StftOptions& o);
/// The inverse by overlap and add, divided by the windows' squared sum: Griffin and Lim (1984). length -1: what the
/// frames cover.
Tensor istft(const Tensor& x, const StftOptions& o, int64_t length = -1);

}  // namespace tenon
