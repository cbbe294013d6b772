#include "engine/ops/fft.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <complex>
#include <kissfft/kissfft.hh>
#include <numbers>
#include <vector>

#include "core/backend.h"
#include "core/error.h"
#include "core/parallel.h"
#include "engine/autograd/node.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/op/strided_loop.h"
#include "engine/ops/create.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/index.h"
#include "engine/ops/join.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

using namespace ops;

/// The transform of the axis before the last, which holds real and imaginary part; undivided in both directions.
struct Fourier {
  static constexpr OpInfo info{"fourier", "", OpKind::other};
  struct Attrs {
    bool inverse;
    template <class F>
    void fields(F&& f) const {
      f("inverse", inverse);
    }
  };
  static Meta infer(const Attrs&, const Meta& x) {
    common_float({&x});
    if (x.shape.n < 2 || x.shape.back() != 2)
      throw Error(fmt::format("size {} holds no complex numbers: the last axis has size 2", to_string(x.shape)));
    return x;
  }
  static size_t workspace(const Attrs&, const Call& c) { return dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor x = dense(c.in[0], room);
    const int64_t n = x.size(-2), rows = n ? x.numel() / (2 * n) : 0;
    if (rows == 0) return;
    float_or_double(x.dtype(), [&](auto one) {
      using T = decltype(one);
      const auto* from = reinterpret_cast<const std::complex<T>*>(x.data<T>());
      auto* to = reinterpret_cast<std::complex<T>*>(c.out[0].data<T>());
      parallel_for(rows, std::max<int64_t>(1, kLoopGrain / 8 / n), [&](int64_t begin, int64_t end) {
        kissfft<T> plan(static_cast<size_t>(n), c.as<Attrs>().inverse);
        for (int64_t r = begin; r < end; ++r) plan.transform(from + r * n, to + r * n);
      });
    });
  }
  static void backward(Grad& d) { d.in(0) = apply<Fourier>({!d.as<Attrs>().inverse}, d.out()); }
  static Cost cost(const Attrs&, const Call& c) {
    const double n = static_cast<double>(c.in[0].numel()) / 2;
    return {5 * n * std::log2(std::max(2.0, static_cast<double>(c.in[0].size(-2))))};
  }
  static void samples(Samples& s) {
    s.add("8", Attrs{false}, {s.values({8, 2})});
    s.add("5, inverse", Attrs{true}, {s.values({2, 5, 2})});
    s.add("1", Attrs{false}, {s.values({3, 1, 2})});
  }
};
const Register<Fourier> fourier_op;

double norm_factor(FftNorm norm, bool inverse, int64_t n) {
  if (norm == FftNorm::ortho) return 1 / std::sqrt(static_cast<double>(n));
  return (norm == FftNorm::backward) == inverse ? 1 / static_cast<double>(n) : 1;
}

/// Exactly n elements along an axis: cut, or zeros behind.
Tensor fitted(const Tensor& x, int axis, int64_t n) {
  const int64_t have = x.size(axis);
  if (n < 1) throw Error(fmt::format("a Fourier transform of {} elements", n));
  if (n <= have) return n == have ? x : narrow(x, axis, 0, n);
  Shape rest = x.size();
  rest[axis] = n - have;
  return cat({x, zeros(rest, x.dtype(), x.device())}, axis);
}

int complex_axis(const Tensor& x, int axis, const char* what) {
  if (x.ndim() < 2 || x.size(-1) != 2)
    throw Error(
        fmt::format("{}: size {} holds no complex numbers: the last axis has size 2", what, to_string(x.size())));
  return wrap_axis(axis, x.ndim() - 1);
}

Tensor transform(const Tensor& x, int64_t n, int axis, FftNorm norm, bool inverse, const char* what) {
  const int a = complex_axis(x, axis, what), last = x.ndim() - 2;
  Tensor y = fitted(x, a, n < 0 ? x.size(a) : n);
  const int64_t size = y.size(a);
  y = a == last ? apply<Fourier>({inverse}, y) : transpose(apply<Fourier>({inverse}, transpose(y, a, last)), a, last);
  const double f = norm_factor(norm, inverse, size);
  return f == 1 ? y : mul(y, f);
}

Tensor conjugate(const Tensor& x) {
  Tensor sign = ones({2}, x.dtype(), x.device());
  fill(narrow(sign, 0, 1, 1), -1);
  return mul(x, sign);
}

/// start, start - 1, ...: n numbers.
Tensor falling(int64_t n, int64_t start, Device device) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(start - i);
  return integers(values, device);
}

Tensor cosine_window(int64_t n, bool periodic, DType dtype, double a0, double a1, double a2) {
  if (n < 0) throw Error(fmt::format("a window of {} elements", n));
  Tensor w = empty({n}, DType::f64);
  const double period = std::max<double>(1, static_cast<double>(periodic ? n : n - 1));
  for (int64_t i = 0; i < n; ++i) {
    const double t = 2 * std::numbers::pi * static_cast<double>(i) / period;
    w.data<double>()[i] = n == 1 ? 1 : a0 - a1 * std::cos(t) + a2 * std::cos(2 * t);
  }
  return cast(w, dtype);
}

/// The window as n_fft elements, and the hop.
struct Frames {
  int64_t n, hop;
  Tensor window;
  Frames(const StftOptions& o, const Tensor& x, const char* what) : n(o.n_fft), hop(o.hop ? o.hop : o.n_fft / 4) {
    const DType t = x.dtype();
    if (n < 1 || hop < 1) throw Error(fmt::format("{}: frames of {} elements, {} apart", what, n, hop));
    if (!o.window) {
      window = ones({n}, t, x.device());
      return;
    }
    if (o.window.ndim() != 1 || o.window.numel() > n)
      throw Error(
          fmt::format("{}: a window of size {} for frames of {} elements", what, to_string(o.window.size()), n));
    const int64_t missing = n - o.window.numel();
    window =
        cat({zeros({missing / 2}, t, x.device()), cast(o.window, t), zeros({missing - missing / 2}, t, x.device())}, 0);
  }
  /// Which element of the signal each element of each frame is: [count, n].
  Tensor places(int64_t count) const {
    const Device d = window.device();
    return add(mul(unsqueeze(arange(count, DType::i64, d), 1), static_cast<double>(hop)), arange(n, DType::i64, d));
  }
};

}  // namespace

Tensor fft(const Tensor& x, int64_t n, int axis, FftNorm norm) { return transform(x, n, axis, norm, false, "fft"); }
Tensor ifft(const Tensor& x, int64_t n, int axis, FftNorm norm) { return transform(x, n, axis, norm, true, "ifft"); }

Tensor rfft(const Tensor& x, int64_t n, int axis, FftNorm norm) {
  const int a = wrap_axis(axis, x.ndim());
  const Tensor y = fitted(x, a, n < 0 ? x.size(a) : n);
  const Tensor full = transform(stack({y, zeros_like(y)}, -1), -1, a, norm, false, "rfft");
  return narrow(full, a, 0, y.size(a) / 2 + 1);
}

Tensor irfft(const Tensor& x, int64_t n, int axis, FftNorm norm) {
  const int a = complex_axis(x, axis, "irfft");
  const int64_t size = n < 0 ? 2 * (x.size(a) - 1) : n;
  if (size < 1) throw Error(fmt::format("irfft: a Fourier transform of {} elements", size));
  const Tensor half = fitted(x, a, size / 2 + 1);
  const int64_t mirrored =
      size - half.size(a);  // frequencies size/2 + 1 .. size - 1 are those of 1 .. mirrored, conjugated
  const Tensor full = mirrored > 0 ? cat({half, conjugate(flip(narrow(half, a, 1, mirrored), a))}, a) : half;
  return select(transform(full, -1, a, norm, true, "irfft"), -1, 0);
}

Tensor fft2(const Tensor& x, FftNorm norm) { return fft(fft(x, -1, -1, norm), -1, -2, norm); }
Tensor ifft2(const Tensor& x, FftNorm norm) { return ifft(ifft(x, -1, -1, norm), -1, -2, norm); }
Tensor fftshift(const Tensor& x, int axis) { return roll(x, x.size(wrap_axis(axis, x.ndim())) / 2, axis); }
Tensor ifftshift(const Tensor& x, int axis) { return roll(x, -(x.size(wrap_axis(axis, x.ndim())) / 2), axis); }

Tensor hann_window(int64_t n, bool periodic, DType dtype) { return cosine_window(n, periodic, dtype, 0.5, 0.5, 0); }
Tensor hamming_window(int64_t n, bool periodic, DType dtype) {
  return cosine_window(n, periodic, dtype, 0.54, 0.46, 0);
}
Tensor blackman_window(int64_t n, bool periodic, DType dtype) {
  return cosine_window(n, periodic, dtype, 0.42, 0.5, 0.08);
}

Tensor stft(const Tensor& x, const StftOptions& o) {
  if (x.ndim() < 1) throw Error("stft: a signal without axes");
  const Frames f(o, x, "stft");
  Tensor y = x;
  if (o.center) {
    const int64_t side = f.n / 2, n = x.size(-1);
    if (side >= n) throw Error(fmt::format("stft: {} elements cannot be reflected by {}", n, side), "center = false");
    y = cat({index_select(x, -1, falling(side, side, x.device())), x,
             index_select(x, -1, falling(side, n - 2, x.device()))},
            -1);
  }
  if (y.size(-1) < f.n) throw Error(fmt::format("stft: {} elements are fewer than a frame of {}", y.size(-1), f.n));
  const int64_t count = (y.size(-1) - f.n) / f.hop + 1;
  const Tensor frames = mul(index_select(y, -1, f.places(count)), f.window);
  const FftNorm norm = o.normalized ? FftNorm::ortho : FftNorm::backward;
  const Tensor z = o.onesided ? rfft(frames, -1, -1, norm) : fft(stack({frames, zeros_like(frames)}, -1), -1, -1, norm);
  return transpose(z, -2, -3);
}

Tensor istft(const Tensor& x, const StftOptions& o, int64_t length) {
  complex_axis(x, -1, "istft");
  const Frames f(o, x, "istft");
  const Tensor z = transpose(x, -2, -3);
  const FftNorm norm = o.normalized ? FftNorm::ortho : FftNorm::backward;
  const Tensor frames = mul(o.onesided ? irfft(z, f.n, -1, norm) : select(ifft(z, -1, -1, norm), -1, 0), f.window);
  const int64_t count = frames.size(-2), total = (count - 1) * f.hop + f.n;
  const Tensor at = reshape(f.places(count), {count * f.n});
  Shape flat = frames.size(), size = flat;
  flat.erase(flat.n - 1);
  flat[flat.n - 1] = count * f.n;
  size.erase(size.n - 1);
  size[size.n - 1] = total;
  const Tensor sum_of = index_add(zeros(size, x.dtype(), x.device()), -1, at, reshape(frames, flat));
  const Tensor weight = index_add(zeros({total}, x.dtype(), x.device()), 0, at,
                                  reshape(expand(square(f.window), {count, f.n}), {count * f.n}));
  const int64_t first = o.center ? f.n / 2 : 0, last = length < 0 ? total - first : std::min(total, first + length);
  const Tensor kept = narrow(weight, 0, first, last - first), seen = to_host(kept);
  for (int64_t i = 0; i < seen.numel(); ++i)
    if (std::abs(value_at(seen, {i})) < 1e-11)
      throw Error(fmt::format("istft: the windows leave element {} uncovered", i),
                  "choose a window and hop that overlap");
  Tensor y = div(narrow(sum_of, -1, first, last - first), kept);
  return length < 0 || length == y.size(-1) ? y : fitted(y, y.ndim() - 1, length);
}

}  // namespace tenon
