#include "engine/kernels/pool.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/parallel.h"

namespace tenon::kernels {
namespace {

/// Output rows a piece: about 64 Ki inputs.
int64_t pool_grain(const PoolShape& s) {
  return std::max<int64_t>(1, 64 * 1024 / std::max<int64_t>(1, s.ow * s.c * s.kh * s.kw));
}

struct Window {
  int64_t y0, x0;
};
Window window(const PoolShape& s, int64_t oy, int64_t ox) { return {oy * s.sh - s.ph, ox * s.sw - s.pw}; }

/// Calls f(tap, iy * iw + ix) for every tap of an output's window that lies inside the image, in order of the taps.
template <class F>
inline void each_window_tap(const PoolShape& s, int64_t oy, int64_t ox, const F& f) {
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

/// 32 bytes of values, and of integers as wide.
template <class T>
struct PoolLanes;
template <>
struct PoolLanes<float> {
  typedef float Values __attribute__((vector_size(32)));
  typedef int32_t Numbers __attribute__((vector_size(32)));
};
template <>
struct PoolLanes<double> {
  typedef double Values __attribute__((vector_size(32)));
  typedef int64_t Numbers __attribute__((vector_size(32)));
};

/// The inputs of one window, in order.
template <class P>
struct Taps {
  static constexpr int kMost = 64;  // larger windows go in groups
  P* at[kMost];
  int32_t number[kMost];
  int count = 0;
};

/// Largest of the taps for c channels; with `more`, y and index already hold those of earlier taps.
template <class T, class Index>
void window_max(const Taps<const T>& taps, int64_t c, bool more, T* y, Index* index) {
  using V = typename PoolLanes<T>::Values;
  using N = typename PoolLanes<T>::Numbers;
  constexpr int64_t L = 32 / sizeof(T);
  int64_t j = 0;
  for (; j + L <= c; j += L) {
    V best;
    N which;
    std::memcpy(&best, more ? y + j : taps.at[0] + j, sizeof best);
    if (more)
      for (int64_t l = 0; l < L; ++l) which[l] = index[j + l];
    else
      which = N{} + taps.number[0];
    for (int t = more ? 0 : 1; t < taps.count; ++t) {
      V v;
      std::memcpy(&v, taps.at[t] + j, sizeof v);
      N larger = (v > best) | (v != v);
      best = larger ? v : best;
      which = larger ? N{} + taps.number[t] : which;
    }
    std::memcpy(y + j, &best, sizeof best);
    typedef Index Narrow __attribute__((vector_size(L * sizeof(Index))));
    Narrow narrow = __builtin_convertvector(which, Narrow);
    std::memcpy(index + j, &narrow, sizeof narrow);
  }
  for (; j < c; ++j) {
    T best = more ? y[j] : taps.at[0][j];
    Index which = more ? index[j] : static_cast<Index>(taps.number[0]);
    for (int t = more ? 0 : 1; t < taps.count; ++t) {
      T v = taps.at[t][j];
      if (v > best || v != v) {
        best = v;
        which = static_cast<Index>(taps.number[t]);
      }
    }
    y[j] = best;
    index[j] = which;
  }
}

/// The same of u8 alone; 0 where there is no tap.
void window_max_u8(const Taps<const uint8_t>& taps, int64_t c, bool more, uint8_t* y) {
  typedef uint8_t Bytes __attribute__((vector_size(32)));
  constexpr int64_t L = sizeof(Bytes);
  int64_t j = 0;
  for (; j + L <= c; j += L) {
    Bytes best{};
    if (more) std::memcpy(&best, y + j, sizeof best);
    for (int t = 0; t < taps.count; ++t) {
      Bytes v;
      std::memcpy(&v, taps.at[t] + j, sizeof v);
      best = v > best ? v : best;
    }
    std::memcpy(y + j, &best, sizeof best);
  }
  for (; j < c; ++j) {
    uint8_t best = more ? y[j] : 0;
    for (int t = 0; t < taps.count; ++t) best = std::max(best, taps.at[t][j]);
    y[j] = best;
  }
}

/// Every tap gets the gradient where it won, 0 (or, with `add`, nothing) elsewhere.
template <class T, class Index>
void scatter(const Taps<T>& taps, int64_t c, bool add, const T* from, const Index* won) {
  using V = typename PoolLanes<T>::Values;
  using N = typename PoolLanes<T>::Numbers;
  constexpr int64_t L = 32 / sizeof(T);
  int64_t j = 0;
  for (; j + L <= c; j += L) {
    V g;
    typedef Index Narrow __attribute__((vector_size(L * sizeof(Index))));
    Narrow narrow;
    std::memcpy(&g, from + j, sizeof g);
    std::memcpy(&narrow, won + j, sizeof narrow);
    N which = __builtin_convertvector(narrow, N);
    for (int t = 0; t < taps.count; ++t) {
      V mine = which == N{} + taps.number[t] ? g : V{};
      if (add) {
        V old;
        std::memcpy(&old, taps.at[t] + j, sizeof old);
        mine += old;
      }
      std::memcpy(taps.at[t] + j, &mine, sizeof mine);
    }
  }
  for (; j < c; ++j)
    for (int t = 0; t < taps.count; ++t) {
      T mine = won[j] == static_cast<Index>(taps.number[t]) ? from[j] : T(0);
      taps.at[t][j] = add ? taps.at[t][j] + mine : mine;
    }
}

}  // namespace

template <class T, class Index>
void max_pool2d_forward(const PoolShape& s, const T* x, T* y, Index* index) {
  parallel_for(s.n * s.oh, pool_grain(s), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* image = x + row / s.oh * s.ih * s.iw * s.c;
      for (int64_t ox = 0; ox < s.ow; ++ox) {
        int64_t out = (row * s.ow + ox) * s.c;
        Taps<const T> taps;
        bool more = false;
        // The op refuses windows that could lie in the padding alone, so there is always a tap inside the image.
        each_window_tap(s, row % s.oh, ox, [&](int32_t number, int64_t at) {
          if (taps.count == Taps<const T>::kMost) {
            window_max(taps, s.c, more, y + out, index + out);
            more = true;
            taps.count = 0;
          }
          taps.at[taps.count] = image + at * s.c;
          taps.number[taps.count++] = number;
        });
        window_max(taps, s.c, more, y + out, index + out);
      }
    }
  });
}

void max_pool2d_u8(const PoolShape& s, const uint8_t* x, uint8_t* y) {
  parallel_for(s.n * s.oh, pool_grain(s), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const uint8_t* image = x + row / s.oh * s.ih * s.iw * s.c;
      for (int64_t ox = 0; ox < s.ow; ++ox) {
        uint8_t* out = y + (row * s.ow + ox) * s.c;
        Taps<const uint8_t> taps;
        bool more = false;
        each_window_tap(s, row % s.oh, ox, [&](int32_t, int64_t at) {
          if (taps.count == Taps<const uint8_t>::kMost) {
            window_max_u8(taps, s.c, more, out);
            more = true;
            taps.count = 0;
          }
          taps.at[taps.count++] = image + at * s.c;
        });
        window_max_u8(taps, s.c, more, out);
      }
    }
  });
}

template <class T, class Index>
void max_pool2d_backward(const PoolShape& s, const T* gy, const Index* index, T* gx) {
  bool overlap = s.sh < (s.kh - 1) * s.dh + 1 || s.sw < (s.kw - 1) * s.dw + 1;
  // Windows side by side that reach every input write each of them once; else what no window touches is cleared first.
  bool covered = s.sh == s.kh && s.sw == s.kw && s.dh == 1 && s.dw == 1 && s.ph == 0 && s.pw == 0 &&
                 s.ih == s.oh * s.kh && s.iw == s.ow * s.kw;
  parallel_for(s.n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) {
      T* g = gx + image * s.ih * s.iw * s.c;
      if (!covered) std::memset(g, 0, static_cast<size_t>(s.ih * s.iw * s.c) * sizeof(T));
      for (int64_t oy = 0; oy < s.oh; ++oy)
        for (int64_t ox = 0; ox < s.ow; ++ox) {
          int64_t out = ((image * s.oh + oy) * s.ow + ox) * s.c;
          Taps<T> taps;
          each_window_tap(s, oy, ox, [&](int32_t number, int64_t at) {
            if (taps.count == Taps<T>::kMost) {
              scatter(taps, s.c, overlap, gy + out, index + out);
              taps.count = 0;
            }
            taps.at[taps.count] = g + at * s.c;
            taps.number[taps.count++] = number;
          });
          scatter(taps, s.c, overlap, gy + out, index + out);
        }
    }
  });
}

template <class T, class Index>
void max_pool2d_gather(const PoolShape& s, const T* v, const Index* index, T* out) {
  parallel_for(s.n * s.oh, pool_grain(s), [&](int64_t begin, int64_t end) {
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

#define POOL_OF(T, I)                                                                \
  template void max_pool2d_forward<T, I>(const PoolShape&, const T*, T*, I*);        \
  template void max_pool2d_backward<T, I>(const PoolShape&, const T*, const I*, T*); \
  template void max_pool2d_gather<T, I>(const PoolShape&, const T*, const I*, T*);
POOL_OF(float, uint8_t)
POOL_OF(float, int32_t)
POOL_OF(double, uint8_t)
POOL_OF(double, int32_t)
#undef POOL_OF

}  // namespace tenon::kernels
