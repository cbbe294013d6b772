// Reading images at given places, in public ops throughout: gradients of any order come with them.
#include <cmath>

#include "core/backend.h"
#include "core/error.h"
#include "engine/ops/create.h"
#include "engine/ops/embedding.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/resample.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

/// From -1..1 to places of an axis of n elements.
Tensor unnormalised(const Tensor& g, int64_t n, bool align) {
  double half = static_cast<double>(n) / 2;
  return align ? mul(add(g, 1), static_cast<double>(n - 1) / 2) : sub(mul(add(g, 1), half), 0.5);
}
/// Folded back at the edges lo and hi.
Tensor reflected(const Tensor& p, double lo, double hi) {
  double span = hi - lo;
  if (span <= 0) return mul(p, 0);
  Tensor x = abs(sub(p, lo)), turns = floor(div(x, span)), extra = sub(x, mul(turns, span));
  Tensor odd = ne(sub(turns, mul(floor(mul(turns, 0.5)), 2)), 0);
  return where(odd, sub(scalar_like(hi, p), extra), add(extra, lo));
}
Tensor within(const Tensor& p, int64_t n, GridPadding padding, bool align) {
  double last = static_cast<double>(n - 1);
  if (padding == GridPadding::reflection) {
    Tensor r = align ? reflected(p, 0, last) : reflected(p, -0.5, last + 0.5);
    return clamp(r, 0, last);
  }
  return padding == GridPadding::border ? clamp(p, 0, last) : p;
}
Tensor cubic_weight(const Tensor& x, bool near) {  // x = distance; Keys' kernel with a = -0.75
  constexpr double A = -0.75;
  if (near) return add(mul(square(x), sub(mul(x, A + 2), A + 3)), 1);
  return sub(mul(add(mul(sub(mul(x, A), 5 * A), x), 8 * A), x), 4 * A);
}

struct Image {
  Tensor rows;  ///< [n h w, c]
  int64_t n, h, w;

  /// Values at whole places (tensors [n, oh, ow] of numbers), 0 outside: [n, oh, ow, c].
  Tensor at(const Tensor& x, const Tensor& y) const {
    Tensor inside = logical_and(logical_and(ge(x, 0), le(x, static_cast<double>(w - 1))),
                                logical_and(ge(y, 0), le(y, static_cast<double>(h - 1))));
    if (rows.is_meta()) {
      Shape s = x.size();
      s.push_back(rows.size(1));
      return empty(s, rows.dtype(), rows.device());
    }
    Tensor column = cast(clamp(x, 0, static_cast<double>(w - 1)), DType::i64),
           row = cast(clamp(y, 0, static_cast<double>(h - 1)), DType::i64);
    Tensor image = reshape(mul(arange(n, DType::i64, rows.device()), static_cast<double>(h * w)), {n, 1, 1});
    Tensor index = add(add(mul(row, static_cast<double>(w)), column), image);
    return mul(embedding(index, rows), unsqueeze(cast(inside, rows.dtype()), -1));
  }
};

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, Resample mode, GridPadding padding, bool align) {
  if (x.ndim() != 4 || grid.ndim() != 4 || grid.size(3) != 2 || grid.size(0) != x.size(0))
    throw Error("grid_sample: an input of size " + to_string(x.size()) + " and a grid of size " +
                to_string(grid.size()) + " do not fit: [n, c, h, w] and [n, oh, ow, 2]");
  if (mode == Resample::area)
    throw Error("grid_sample: there are no areas at single places", "nearest, linear or cubic");
  int64_t n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3);
  if (h < 1 || w < 1) throw Error("grid_sample: an image of size " + to_string(x.size()) + " has nothing to read");
  Image image{reshape(permute(x, {0, 2, 3, 1}), {n * h * w, c}), n, h, w};
  Tensor px = unnormalised(select(grid, 3, 0), w, align), py = unnormalised(select(grid, 3, 1), h, align);
  auto held = [](const Tensor& t) { return floor(t); };  // its gradient is 0: whole places are constants
  auto weighted = [](const Tensor& v, const Tensor& weight) { return mul(v, unsqueeze(weight, -1)); };
  Tensor y;
  if (mode != Resample::cubic) {
    px = within(px, w, padding, align);
    py = within(py, h, padding, align);
  }
  if (mode == Resample::nearest) {
    y = image.at(round(px), round(py));
  } else if (mode == Resample::linear) {
    Tensor x0 = held(px), y0 = held(py), x1 = add(x0, 1), y1 = add(y0, 1), fx = sub(px, x0), fy = sub(py, y0),
           gx = sub(x1, px), gy = sub(y1, py);
    y = add(add(weighted(image.at(x0, y0), mul(gx, gy)), weighted(image.at(x1, y0), mul(fx, gy))),
            add(weighted(image.at(x0, y1), mul(gx, fy)), weighted(image.at(x1, y1), mul(fx, fy))));
  } else {
    Tensor x0 = held(px), y0 = held(py), fx = sub(px, x0), fy = sub(py, y0);
    auto weights = [](const Tensor& f) {
      Tensor g = sub(scalar_like(1, f), f);
      return std::vector<Tensor>{cubic_weight(add(f, 1), false), cubic_weight(f, true), cubic_weight(g, true),
                                 cubic_weight(add(g, 1), false)};
    };
    std::vector<Tensor> wx = weights(fx), wy = weights(fy);
    for (int j = 0; j < 4; ++j)
      for (int i = 0; i < 4; ++i) {
        Tensor v = image.at(within(add(x0, i - 1.0), w, padding, align), within(add(y0, j - 1.0), h, padding, align));
        Tensor part = weighted(v, mul(wx[static_cast<size_t>(i)], wy[static_cast<size_t>(j)]));
        y = y ? add(y, part) : part;
      }
  }
  return permute(y, {0, 3, 1, 2});
}

Tensor affine_grid(const Tensor& theta, const Shape& size, bool align) {
  if (theta.ndim() != 3 || theta.size(1) != 2 || theta.size(2) != 3 || size.n != 4 || size[0] != theta.size(0))
    throw Error("affine_grid: a map of size " + to_string(theta.size()) + " and an image of size " + to_string(size) +
                " do not fit: [n, 2, 3] and [n, c, h, w]");
  int64_t n = size[0], h = size[2], w = size[3];
  if (theta.is_meta()) return empty({n, h, w, 2}, theta.dtype(), theta.device());
  Tensor base = empty({h * w, 3}, theta.dtype());
  auto place = [align](int64_t i, int64_t count) {
    if (count == 1) return 0.0;
    double p = align ? 2.0 * static_cast<double>(i) / static_cast<double>(count - 1) - 1
                     : (2.0 * static_cast<double>(i) + 1) / static_cast<double>(count) - 1;
    return p;
  };
  for (int64_t y = 0; y < h; ++y)
    for (int64_t x = 0; x < w; ++x) {
      double v[3] = {place(x, w), place(y, h), 1};
      for (int k = 0; k < 3; ++k) {
        int64_t at = (y * w + x) * 3 + k;
        if (theta.dtype() == DType::f64)
          base.data<double>()[at] = v[k];
        else
          base.data<float>()[at] = static_cast<float>(v[k]);
      }
    }
  base = to_device(base, theta.device());
  return reshape(matmul(expand(base, {n, h * w, 3}), theta, false, true), {n, h, w, 2});
}

}  // namespace tenon
