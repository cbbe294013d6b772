#include "engine/kernels/pool.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/parallel.h"

namespace tenon::kernels {
namespace {

constexpr int64_t kChannels = 64;  // handled at a time, so that their running maxima stay in registers and L1

/// Output rows a piece: about 64 Ki inputs.
int64_t rows_cut(const PoolShape& s) { return std::max<int64_t>(1, 64 * 1024 / std::max<int64_t>(1, s.ow * s.c * s.kh * s.kw)); }

struct Window {
  int64_t y0, x0;
};
Window window(const PoolShape& s, int64_t oy, int64_t ox) { return {oy * s.sh - s.ph, ox * s.sw - s.pw}; }

/// Calls f(tap, iy * iw + ix) for every tap of an output's window that lies inside the image, in order of the taps.
template <class F>
inline void each_tap(const PoolShape& s, int64_t oy, int64_t ox, const F& f) {
  Window w = window(s, oy, ox);
  for (int64_t ky = 0; ky < s.kh; ++ky) {
    int64_t iy = w.y0 + ky * s.dh;
    if (iy < 0 || iy >= s.ih) continue;
    for (int64_t kx = 0; kx < s.kw; ++kx) {
      int64_t ix = w.x0 + kx * s.dw;
      if (ix >= 0 && ix < s.iw) f(static_cast<int32_t>(ky * s.kw + kx), iy * s.iw + ix);
    }
  }
}

template <class T, int Fixed>
inline void take_larger(const T* __restrict v, int32_t tap, T* __restrict best, int32_t* __restrict which, int64_t n) {
  if constexpr (Fixed) n = Fixed;
  for (int64_t j = 0; j < n; ++j) {
    bool larger = (v[j] > best[j]) | (v[j] != v[j]);
    best[j] = larger ? v[j] : best[j];
    which[j] = larger ? tap : which[j];
  }
}

}  // namespace

template <class T, class Index>
void max_pool2d_forward(const PoolShape& s, const T* x, T* y, Index* index) {
  parallel_for(s.n * s.oh, rows_cut(s), [&](int64_t begin, int64_t end) {
    T best[kChannels];
    int32_t which[kChannels];
    for (int64_t row = begin; row < end; ++row) {
      const T* image = x + row / s.oh * s.ih * s.iw * s.c;
      for (int64_t ox = 0; ox < s.ow; ++ox) {
        int64_t out = (row * s.ow + ox) * s.c;
        for (int64_t c = 0; c < s.c; c += kChannels) {
          int64_t n = std::min(kChannels, s.c - c);
          std::fill_n(best, n, -std::numeric_limits<T>::infinity());
          // A window of -inf alone keeps its first tap, and there is always one inside: padding is at most half the window.
          int32_t first = -1;
          each_tap(s, row % s.oh, ox, [&](int32_t tap, int64_t at) {
            const T* v = image + at * s.c + c;
            if (first < 0) {
              first = tap;
              std::fill_n(which, n, tap);
            }
            if (n == 64) take_larger<T, 64>(v, tap, best, which, n);
            else if (n == 32) take_larger<T, 32>(v, tap, best, which, n);
            else take_larger<T, 0>(v, tap, best, which, n);
          });
          std::memcpy(y + out + c, best, static_cast<size_t>(n) * sizeof(T));
          if (index)
            for (int64_t j = 0; j < n; ++j) index[out + c + j] = static_cast<Index>(which[j]);
        }
      }
    }
  });
}

template <class T, class Index>
void max_pool2d_backward(const PoolShape& s, const T* gy, const Index* index, T* gx) {
  bool overlap = s.sh < (s.kh - 1) * s.dh + 1 || s.sw < (s.kw - 1) * s.dw + 1;
  // Without overlap windows never share an input, so an image's rows may be written from anywhere; else one piece owns the image.
  parallel_for(s.n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) {
      T* g = gx + image * s.ih * s.iw * s.c;
      std::memset(g, 0, static_cast<size_t>(s.ih * s.iw * s.c) * sizeof(T));
      for (int64_t oy = 0; oy < s.oh; ++oy)
        for (int64_t ox = 0; ox < s.ow; ++ox) {
          int64_t out = ((image * s.oh + oy) * s.ow + ox) * s.c;
          const T* __restrict from = gy + out;
          const Index* __restrict won = index + out;
          each_tap(s, oy, ox, [&](int32_t tap, int64_t at) {
            T* __restrict to = g + at * s.c;
            if (overlap)
              for (int64_t j = 0; j < s.c; ++j) to[j] += won[j] == static_cast<Index>(tap) ? from[j] : T(0);
            else
              for (int64_t j = 0; j < s.c; ++j) to[j] = won[j] == static_cast<Index>(tap) ? from[j] : T(0);
          });
        }
    }
  });
}

template <class T, class Index>
void max_pool2d_gather(const PoolShape& s, const T* v, const Index* index, T* out) {
  parallel_for(s.n * s.oh, rows_cut(s), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* image = v + row / s.oh * s.ih * s.iw * s.c;
      for (int64_t ox = 0; ox < s.ow; ++ox) {
        int64_t at = (row * s.ow + ox) * s.c;
        Window w = window(s, row % s.oh, ox);
        for (int64_t j = 0; j < s.c; ++j) {
          int64_t tap = index[at + j], iy = w.y0 + tap / s.kw * s.dh, ix = w.x0 + tap % s.kw * s.dw;
          out[at + j] = image[(iy * s.iw + ix) * s.c + j];
        }
      }
    }
  });
}

#define POOL_OF(T, I)                                                             \
  template void max_pool2d_forward<T, I>(const PoolShape&, const T*, T*, I*);        \
  template void max_pool2d_backward<T, I>(const PoolShape&, const T*, const I*, T*); \
  template void max_pool2d_gather<T, I>(const PoolShape&, const T*, const I*, T*);
POOL_OF(float, uint8_t)
POOL_OF(float, int32_t)
POOL_OF(double, uint8_t)
POOL_OF(double, int32_t)
#undef POOL_OF

}  // namespace tenon::kernels
