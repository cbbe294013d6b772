#include <vector>

#include "engine/autograd/node.h"
#include "engine/kernels/lapack.h"
#include "engine/op/op.h"
#include "engine/op/samples.h"
#include "engine/ops/dense_room.h"
#include "engine/ops/join.h"
#include "engine/ops/linalg.h"
#include "engine/ops/linalg_batch.h"
#include "engine/ops/matmul.h"
#include "engine/ops/reduce.h"

namespace tenon {
namespace {

using namespace ops;
using namespace linalg;
namespace lp = kernels::lapack;

Meta with_last(const Meta& a, int64_t rows, int64_t cols) {
  Meta m = a;
  m.shape[m.shape.n - 2] = rows;
  m.shape[m.shape.n - 1] = cols;
  return m;
}
Tensor columns_by(const Tensor& a, const Tensor& s) { return mul(a, unsqueeze(s, -2)); }  // a diag(s)
Tensor rows_by(const Tensor& a, const Tensor& s) { return mul(a, unsqueeze(s, -1)); }     // diag(s) a

struct QrOp {
  static constexpr OpInfo info{"qr", "", OpKind::other, 2};
  static void infer(const NoAttrs&, const Tensor* in, int, Meta* out) {
    const Meta& a = in[0].meta();
    need_matrix(a, false);
    const int64_t m = a.shape[a.shape.n - 2], n = a.shape.back(), k = std::min(m, n);
    out[0] = with_last(a, m, k);
    out[1] = with_last(a, k, n);
  }
  static size_t workspace(const NoAttrs&, const Call& c) { return dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor a = dense(c.in[0], room);
    const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
    float_or_double(a.dtype(), [&](auto one) {
      using T = decltype(one);
      each(matrices(a.size()), std::max(m, n), [&](int64_t b) {
        if (k == 0) return;
        std::vector<T> work(a.data<T>() + b * m * n, a.data<T>() + (b + 1) * m * n), tau(static_cast<size_t>(k));
        refuse_nan(lp::geqrf<T>(m, n, work.data(), tau.data()), b, a.size());
        T *q = c.out[0].data<T>() + b * m * k, *r = c.out[1].data<T>() + b * k * n;
        for (int64_t i = 0; i < k; ++i)
          for (int64_t j = 0; j < n; ++j) r[i * n + j] = j < i ? T(0) : work[static_cast<size_t>(i * n + j)];
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < k; ++j) q[i * k + j] = work[static_cast<size_t>(i * n + j)];
        lp::orgqr<T>(m, k, k, q, tau.data());
      });
    });
  }
  static constexpr Saves saves{.inputs = 0b1, .outputs = 0b11};
  // Walter and Lehmann, Algorithmic differentiation of linear algebra functions (2018). A wide A = [X, Y] is X = Q U
  // with V = Q^T Y.
  static void backward(Grad& d) {
    const Tensor a = d.x(0), q = d.y(0), r = d.y(1);
    Tensor gq = d.out(0), gr = d.out(1);
    const int64_t m = a.size(-2), n = a.size(-1);
    if (!gq) gq = mul(q, 0.0);
    if (!gr) gr = mul(r, 0.0);
    if (m >= n) {
      d.in(0) = tall(q, r, gq, gr);
      return;
    }
    const Tensor gv = slice(gr, -1, m, n);
    const Tensor gx =
        tall(q, slice(r, -1, 0, m), add(gq, matmul(slice(a, -1, m, n), gv, false, true)), slice(gr, -1, 0, m));
    d.in(0) = cat({gx, matmul(q, gv)}, -1);
  }
  static Tensor tall(const Tensor& q, const Tensor& r, const Tensor& gq, const Tensor& gr) {
    const Tensor mid = sub(matmul(r, gr, false, true), matmul(gq, q, true, false));
    const Tensor low = tril(mid), sym = add(low, transposed(tril(mid, -1)));
    return transposed(solve_triangular(r, transposed(add(gq, matmul(q, sym))), true));
  }
  static void samples(Samples& s) {
    auto clear = [&](const Shape& size) {
      Tensor id = size[size.n - 2] > size.back() ? slice(identity(size[size.n - 2], DType::f64), 1, 0, size.back())
                                                 : slice(identity(size.back(), DType::f64), 0, 0, size[size.n - 2]);
      return add(mul(s.values(size), 0.5), id);
    };
    s.add("tall", NoAttrs{}, {clear({4, 3})});
    s.add("square batch", NoAttrs{}, {clear({2, 2, 2})});
    s.add("wide", NoAttrs{}, {clear({2, 4})});
  }
};

/// 1 / (w_j - w_i) off the diagonal, 0 on it.
Tensor inverse_gaps(const Tensor& w) {
  const Tensor gap = sub(unsqueeze(w, -2), unsqueeze(w, -1)), id = identity(w.size(-1), w.dtype(), w.device());
  return mul(reciprocal(add(gap, id)), sub(scalar_like(1, id), id));
}

struct EighOp {
  static constexpr OpInfo info{"eigh", "", OpKind::other, 2};
  static void infer(const NoAttrs&, const Tensor* in, int, Meta* out) {
    need_matrix(in[0].meta(), true);
    out[0] = out[1] = in[0].meta();
    out[0].shape.erase(out[0].shape.n - 1);
  }
  static size_t workspace(const NoAttrs&, const Call& c) { return dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor a = dense(c.in[0], room);
    const int64_t n = a.size(-1);
    float_or_double(a.dtype(), [&](auto one) {
      using T = decltype(one);
      each(matrices(a.size()), n, [&](int64_t m) {
        const T* from = a.data<T>() + m * n * n;
        T* to = c.out[1].data<T>() + m * n * n;
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j) to[i * n + j] = (from[i * n + j] + from[j * n + i]) / 2;
        if (n && lp::syev<T>(n, to, c.out[0].data<T>() + m * n) != 0)
          throw Error(
              fmt::format("the eigenvalues of {} were not found: it may hold NaN or infinity", which(m, a.size())));
      });
    });
  }
  static constexpr Saves saves{.inputs = 0, .outputs = 0b11};
  static void backward(Grad& d) {
    const Tensor w = d.y(0), v = d.y(1), id = identity(w.size(-1), w.dtype(), w.device());
    Tensor mid;
    if (d.out(1)) mid = mul(inverse_gaps(w), matmul(v, d.out(1), true, false));
    if (d.out(0)) mid = mid ? add(mid, mul(id, unsqueeze(d.out(0), -2))) : mul(id, unsqueeze(d.out(0), -2));
    if (!mid) return;
    const Tensor g = matmul(matmul(v, mid), v, false, true);
    d.in(0) = mul(add(g, transposed(g)), 0.5);
  }
  static void samples(Samples& s) {
    auto apart = [&](const Shape& size) {
      Tensor ramp = arange(size.back(), DType::f64);
      return add(mul(s.values(size), 0.3), mul(identity(size.back(), DType::f64), ramp));
    };
    s.add("one", NoAttrs{}, {apart({3, 3})});
    s.add("batch", NoAttrs{}, {apart({2, 2, 2})});
  }
};

struct SvdOp {
  static constexpr OpInfo info{"svd", "", OpKind::other, 3};
  static void infer(const NoAttrs&, const Tensor* in, int, Meta* out) {
    const Meta& a = in[0].meta();
    need_matrix(a, false);
    const int64_t m = a.shape[a.shape.n - 2], n = a.shape.back(), k = std::min(m, n);
    out[0] = with_last(a, m, k);
    out[1] = with_last(a, k, k);
    out[1].shape.erase(out[1].shape.n - 1);
    out[2] = with_last(a, k, n);
  }
  static size_t workspace(const NoAttrs&, const Call& c) { return dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor a = dense(c.in[0], room);
    const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
    float_or_double(a.dtype(), [&](auto one) {
      using T = decltype(one);
      each(matrices(a.size()), std::max(m, n), [&](int64_t b) {
        if (k == 0) return;
        std::vector<T> work(a.data<T>() + b * m * n, a.data<T>() + (b + 1) * m * n);
        if (lp::gesdd<T>(m, n, work.data(), c.out[1].data<T>() + b * k, c.out[0].data<T>() + b * m * k,
                         c.out[2].data<T>() + b * k * n) != 0)
          throw Error(
              fmt::format("the singular values of {} were not found: it may hold NaN or infinity", which(b, a.size())));
      });
    });
  }
  static constexpr Saves saves{.inputs = 0, .outputs = 0b111};
  // PyTorch's svd_backward for real matrices.
  static void backward(Grad& d) {
    const Tensor u = d.y(0), s = d.y(1), vh = d.y(2), id = identity(s.size(-1), s.dtype(), s.device());
    const int64_t m = u.size(-2), n = vh.size(-1), k = s.size(-1);
    Tensor mid = d.out(1) ? mul(id, unsqueeze(d.out(1), -2)) : mul(mul(id, unsqueeze(s, -2)), 0.0);
    const Tensor gaps = inverse_gaps(square(s));
    auto skew = [](const Tensor& t) { return sub(t, transposed(t)); };
    if (d.out(0)) mid = add(mid, columns_by(mul(skew(matmul(u, d.out(0), true, false)), gaps), s));
    if (d.out(2)) mid = add(mid, rows_by(mul(skew(matmul(vh, d.out(2), false, true)), gaps), s));
    Tensor g = matmul(matmul(u, mid), vh);
    if (d.out(0) && m > k) {
      const Tensor gu = columns_by(d.out(0), reciprocal(s));
      g = add(g, matmul(sub(gu, matmul(u, matmul(u, gu, true, false))), vh));
    }
    if (d.out(2) && n > k) {
      const Tensor gv = rows_by(d.out(2), reciprocal(s));
      g = add(g, matmul(u, sub(gv, matmul(matmul(gv, vh, false, true), vh))));
    }
    d.in(0) = g;
  }
  static void samples(Samples& s) {
    auto apart = [&](int64_t m, int64_t n) {
      const int64_t k = std::max(m, n);
      Tensor ramp = slice(slice(mul(identity(k, DType::f64), add(arange(k, DType::f64), 1.0)), 0, 0, m), 1, 0, n);
      return add(mul(s.values({m, n}), 0.4), ramp);
    };
    s.add("tall", NoAttrs{}, {apart(4, 3)});
    s.add("wide", NoAttrs{}, {apart(2, 4)});
    s.add("square", NoAttrs{}, {apart(3, 3)});
  }
};

const Register<QrOp> qr_op;
const Register<EighOp> eigh_op;
const Register<SvdOp> svd_op;

}  // namespace

Qr qr(const Tensor& a) {
  Tensor out[2];
  apply_many<QrOp>({}, &a, 1, out);
  return {out[0], out[1]};
}
Eigh eigh(const Tensor& a) {
  Tensor out[2];
  apply_many<EighOp>({}, &a, 1, out);
  return {out[0], out[1]};
}
Svd svd(const Tensor& a) {
  Tensor out[3];
  apply_many<SvdOp>({}, &a, 1, out);
  return {out[0], out[1], out[2]};
}

}  // namespace tenon
