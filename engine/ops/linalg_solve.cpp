#include <cmath>
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
#include "engine/ops/onnx_op.h"
#include "engine/ops/reduce.h"
#include "engine/ops/scan.h"

namespace tenon {
namespace {

using namespace ops;
using namespace linalg;
namespace lp = kernels::lapack;

/// A well-conditioned matrix near the identity, and a symmetric positive one.
Tensor regular(Samples& s, const Shape& size) {
  return add(mul(s.values(size), 0.4), identity(size.back(), DType::f64));
}
Tensor positive(Samples& s, const Shape& size) {
  Tensor x = s.values(size);
  return add(matmul(x, transposed(x), false, false), identity(size.back(), DType::f64));
}

struct Cholesky {
  static constexpr OpInfo info{"cholesky", "", OpKind::other};
  static Meta infer(const NoAttrs&, const Meta& a) {
    need_matrix(a, true);
    return a;
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
        T* to = c.out[0].data<T>() + m * n * n;
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j) to[i * n + j] = j <= i ? (from[i * n + j] + from[j * n + i]) / 2 : T(0);
        const int k = n ? lp::potrf<T>(n, to) : 0;
        refuse_nan(k, m, a.size());
        if (k != 0)
          throw Error(
              fmt::format("{} is not positive definite: its leading minor of order {} is not", which(m, a.size()), k));
        for (int64_t i = 0; i < n; ++i) std::fill(to + i * n + i + 1, to + (i + 1) * n, T(0));
      });
    });
  }
  static constexpr Saves saves{.inputs = 0, .outputs = 0b1};
  // Murray, Differentiation of the Cholesky decomposition (2016), eq. 9: L^-T phi(L^T gL) L^-1, made symmetric.
  static void backward(Grad& d) {
    const Tensor l = d.y(), lt = transposed(l);
    Tensor phi = tril(matmul(lt, tril(d.out())));
    phi = sub(phi, mul(mul(phi, identity(l.size(-1), l.dtype(), l.device())), 0.5));
    const Tensor left = solve_triangular(lt, phi, true), s = transposed(solve_triangular(lt, transposed(left), true));
    d.in(0) = mul(add(s, transposed(s)), 0.5);
  }
  static void samples(Samples& s) {
    s.add("one", NoAttrs{}, {positive(s, {3, 3})});
    s.add("batch", NoAttrs{}, {positive(s, {2, 2, 2})});
  }
};

struct SolveTriangular {
  static constexpr OpInfo info{"solve_triangular", "", OpKind::other};
  struct Attrs {
    bool upper, unit;
    template <class F>
    void fields(F&& f) const {
      f("upper", upper);
      f("unitriangular", unit);
    }
  };
  static Meta infer(const Attrs&, const Meta& a, const Meta& b) {
    need_matrix(a, true);
    common_float({&a, &b});
    bool fits = a.shape.n == b.shape.n;
    for (int i = 0; fits && i < a.shape.n - 1; ++i) fits = a.shape[i] == b.shape[i];
    if (!fits)
      throw Error(
          fmt::format("right sides of size {} do not fit matrices of size {}", to_string(b.shape), to_string(a.shape)));
    return b;
  }
  static size_t workspace(const Attrs&, const Call& c) { return dense_bytes(c, {0, 1}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    const auto& at = c.as<Attrs>();
    Tensor a = dense(c.in[0], room), b = dense(c.in[1], room);
    const int64_t n = a.size(-1), k = b.size(-1);
    float_or_double(a.dtype(), [&](auto one) {
      using T = decltype(one);
      each(matrices(a.size()), n, [&](int64_t m) {
        T* to = c.out[0].data<T>() + m * n * k;
        std::copy_n(b.data<T>() + m * n * k, n * k, to);
        if (n == 0 || k == 0) return;
        const int bad = lp::trtrs<T>(at.upper, at.unit, n, k, a.data<T>() + m * n * n, to);
        refuse_nan(bad, m, a.size());
        if (bad != 0)
          throw Error(fmt::format("{} is singular: element {} of its diagonal is 0", which(m, a.size()), bad - 1));
      });
    });
  }
  static constexpr Saves saves{.inputs = 0b01, .outputs = 0b1};
  static void backward(Grad& d) {
    const auto& at = d.as<Attrs>();
    const Tensor gb = apply<SolveTriangular>({!at.upper, at.unit}, transposed(d.x(0)), d.out());
    if (d.needs(1)) d.in(1) = gb;
    if (!d.needs(0)) return;
    const Tensor ga = neg(matmul(gb, d.y(), false, true));
    const int64_t skip = at.unit ? 1 : 0;
    d.in(0) = at.upper ? triu(ga, skip) : tril(ga, -skip);
  }
  static void samples(Samples& s) {
    s.add("lower", Attrs{false, false}, {regular(s, {3, 3}), s.values({3, 2})});
    s.add("upper batch", Attrs{true, false}, {regular(s, {2, 2, 2}), s.values({2, 2, 3})});
    s.add("ones on the diagonal", Attrs{false, true}, {regular(s, {3, 3}), s.values({3, 2})});
  }
};

struct Solve {
  static constexpr OpInfo info{"solve", "", OpKind::other};
  static Meta infer(const NoAttrs&, const Meta& a, const Meta& b) { return SolveTriangular::infer({}, a, b); }
  static size_t workspace(const NoAttrs&, const Call& c) { return dense_bytes(c, {0, 1}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor a = dense(c.in[0], room), b = dense(c.in[1], room);
    const int64_t n = a.size(-1), k = b.size(-1);
    float_or_double(a.dtype(), [&](auto one) {
      using T = decltype(one);
      each(matrices(a.size()), n, [&](int64_t m) {
        std::vector<T> lu(a.data<T>() + m * n * n, a.data<T>() + (m + 1) * n * n);
        std::vector<int> pivots(static_cast<size_t>(n));
        T* to = c.out[0].data<T>() + m * n * k;
        std::copy_n(b.data<T>() + m * n * k, n * k, to);
        if (n == 0 || k == 0) return;
        const int bad = lp::gesv<T>(n, k, lu.data(), pivots.data(), to);
        refuse_nan(bad, m, a.size());
        if (bad != 0) throw Error(fmt::format("{} is singular", which(m, a.size())), "lstsq() or pinv() may serve");
      });
    });
  }
  static constexpr Saves saves{.inputs = 0b01, .outputs = 0b1};
  static void backward(Grad& d) {
    const Tensor gb = apply<Solve>({}, transposed(d.x(0)), d.out());
    if (d.needs(1)) d.in(1) = gb;
    if (d.needs(0)) d.in(0) = neg(matmul(gb, d.y(), false, true));
  }
  static void samples(Samples& s) {
    s.add("one", NoAttrs{}, {regular(s, {3, 3}), s.values({3, 2})});
    s.add("batch", NoAttrs{}, {regular(s, {2, 3, 3}), s.values({2, 3, 1})});
  }
};

struct Inv {
  static constexpr OpInfo info{"inv", "", OpKind::other};
  static Meta infer(const NoAttrs&, const Meta& a) {
    need_matrix(a, true);
    return a;
  }
  static size_t workspace(const NoAttrs&, const Call& c) { return dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor a = dense(c.in[0], room);
    const int64_t n = a.size(-1);
    float_or_double(a.dtype(), [&](auto one) {
      using T = decltype(one);
      each(matrices(a.size()), n, [&](int64_t m) {
        T* to = c.out[0].data<T>() + m * n * n;
        std::copy_n(a.data<T>() + m * n * n, n * n, to);
        std::vector<int> pivots(static_cast<size_t>(n));
        if (n == 0) return;
        int bad = lp::getrf<T>(n, to, pivots.data());
        refuse_nan(bad, m, a.size());
        if (bad == 0) bad = lp::getri<T>(n, to, pivots.data());
        if (bad != 0) throw Error(fmt::format("{} is singular", which(m, a.size())), "pinv() may serve");
      });
    });
  }
  static constexpr Saves saves{.inputs = 0, .outputs = 0b1};
  static void backward(Grad& d) {
    const Tensor y = d.y();
    d.in(0) = neg(matmul(matmul(y, d.out(), true, false), y, false, true));
  }
  static void samples(Samples& s) {
    s.add("one", NoAttrs{}, {regular(s, {3, 3})});
    s.add("batch", NoAttrs{}, {regular(s, {2, 2, 2})});
  }
};

/// sign and log |det| of dense matrices.
template <class T, class F>
void determinants(const Tensor& a, const F& f) {
  const int64_t n = a.size(-1);
  each(matrices(a.size()), n, [&](int64_t m) {
    std::vector<T> lu(a.data<T>() + m * n * n, a.data<T>() + (m + 1) * n * n);
    std::vector<int> pivots(static_cast<size_t>(n));
    if (n && lp::getrf<T>(n, lu.data(), pivots.data()) < 0) return f(m, T(NAN), T(NAN), T(NAN));
    T sign = 1, log_abs = 0, product = 1;
    for (int64_t i = 0; i < n; ++i) {
      const T p = lu[static_cast<size_t>(i * n + i)] * (pivots[static_cast<size_t>(i)] == i + 1 ? T(1) : T(-1));
      product *= p;
      log_abs += std::log(std::abs(p));
      sign *= p > 0 ? T(1) : p < 0 ? T(-1) : T(0);
    }
    f(m, sign, log_abs, product);
  });
}

Meta one_a_matrix(const Meta& a) {
  need_matrix(a, true);
  Meta m = a;
  m.shape.erase(m.shape.n - 1);
  m.shape.erase(m.shape.n - 1);
  return m;
}
Tensor as_matrices(const Tensor& t) { return unsqueeze(unsqueeze(t, -1), -1); }

/// The matrix of cofactors, det(A) A^-T, of singular matrices too: with A = U S V^T it is det(U) det(V) U S' V^T, where
/// S' has the product of all other singular values.
Tensor cofactors(const Tensor& a) {
  const Svd f = svd(a);
  const Tensor first = add(mul(narrow(f.s, -1, 0, 1), 0.0), 1.0);
  const int64_t n = f.s.size(-1);
  const Tensor below = cumprod(cat({first, narrow(f.s, -1, 0, n - 1)}, -1), -1);
  const Tensor above = flip(cumprod(cat({first, narrow(flip(f.s, -1), -1, 0, n - 1)}, -1), -1), -1);
  const Tensor sign = det(matmul(f.u, f.vh));
  return matmul(mul(f.u, unsqueeze(mul(mul(below, above), unsqueeze(sign, -1)), -2)), f.vh);
}

struct Det {
  static constexpr OpInfo info{"det", "Det", OpKind::other};
  static Meta infer(const NoAttrs&, const Meta& a) { return one_a_matrix(a); }
  static size_t workspace(const NoAttrs&, const Call& c) { return dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor a = dense(c.in[0], room);
    float_or_double(a.dtype(), [&](auto one) {
      using T = decltype(one);
      determinants<T>(a, [&](int64_t m, T, T, T product) { c.out[0].data<T>()[m] = product; });
    });
  }
  static constexpr Saves saves{.inputs = 0b1, .outputs = 0b1};
  static void backward(Grad& d) {
    const Tensor a = d.x(0), y = d.y();
    const bool singular = !y.is_meta() && y.numel() > 0 && item(sum(cast(eq(y, 0), DType::i64))) > 0;
    d.in(0) =
        singular ? mul(as_matrices(d.out()), cofactors(a)) : mul(as_matrices(mul(d.out(), y)), transposed(inv(a)));
  }
  static void samples(Samples& s) {
    s.add("one", NoAttrs{}, {regular(s, {3, 3})});
    s.add("batch", NoAttrs{}, {regular(s, {2, 2, 2})});
    Tensor singular = regular(s, {3, 3});
    fill(narrow(singular, 0, 2, 1), 0);
    s.add("singular", NoAttrs{}, {singular});
  }
};

struct SlogDetOp {
  static constexpr OpInfo info{"slogdet", "", OpKind::other, 2};
  static void infer(const NoAttrs&, const Tensor* in, int, Meta* out) { out[0] = out[1] = one_a_matrix(in[0].meta()); }
  static size_t workspace(const NoAttrs&, const Call& c) { return dense_bytes(c, {0}); }
  static void cpu(const Call& c) {
    kernels::Room room(c.workspace);
    Tensor a = dense(c.in[0], room);
    float_or_double(a.dtype(), [&](auto one) {
      using T = decltype(one);
      determinants<T>(a, [&](int64_t m, T sign, T log_abs, T) {
        c.out[0].data<T>()[m] = sign;
        c.out[1].data<T>()[m] = log_abs;
      });
    });
  }
  static constexpr Saves saves{.inputs = 0b1};
  static void backward(Grad& d) {
    if (d.out(1)) d.in(0) = mul(as_matrices(d.out(1)), transposed(inv(d.x(0))));
  }
  static void samples(Samples& s) {
    s.add("one", NoAttrs{}, {regular(s, {3, 3})});
    s.add("batch", NoAttrs{}, {regular(s, {2, 2, 2})});
  }
};

const Register<Cholesky> cholesky_op;
const Register<SolveTriangular> solve_triangular_op;
const Register<Solve> solve_op;
const Register<Inv> inv_op;
const Register<Det> det_op;
const Register<SlogDetOp> slogdet_op;

/// Both sides with the same batch axes; a vector side becomes a column.
struct Sides {
  Tensor a, b;
  bool vector;
  Sides(const Tensor& left, const Tensor& right) {
    Shape batch = left.size();
    if (left.ndim() < 2) throw Error(fmt::format("solve: size {} has no matrix", to_string(left.size())));
    batch.erase(batch.n - 1);
    vector = right.ndim() == 1 || right.size() == batch;
    b = vector ? unsqueeze(right, -1) : right;
    if (b.ndim() < 2) throw Error(fmt::format("solve: a right side of size {}", to_string(right.size())));
    batch.erase(batch.n - 1);
    Shape other = b.size();
    other.erase(other.n - 1);
    other.erase(other.n - 1);
    const Shape both = broadcast_shape(batch, other);
    a = spread(left, both);
    b = spread(b, both);
  }
  static Tensor spread(const Tensor& t, const Shape& batch) {
    Shape s = batch;
    s.push_back(t.size(-2));
    s.push_back(t.size(-1));
    return t.size() == s ? t : expand(t, s);
  }
  Tensor result(const Tensor& x) const { return vector ? squeeze(x, -1) : x; }
};

}  // namespace

Tensor cholesky(const Tensor& a, bool upper) {
  Tensor l = apply<Cholesky>({}, a);
  return upper ? transposed(l) : l;
}
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unitriangular) {
  if (!left) return transposed(solve_triangular(transposed(a), transposed(b), !upper, true, unitriangular));
  const Sides s(a, b);
  return s.result(apply<SolveTriangular>({upper, unitriangular}, s.a, s.b));
}
Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper) {
  const Tensor l = upper ? transposed(factor) : factor;
  return solve_triangular(transposed(l), solve_triangular(l, b, false), true);
}
Tensor solve(const Tensor& a, const Tensor& b) {
  const Sides s(a, b);
  return s.result(apply<Solve>({}, s.a, s.b));
}
Tensor inv(const Tensor& a) { return apply<Inv>({}, a); }
Tensor det(const Tensor& a) { return apply<Det>({}, a); }
SlogDet slogdet(const Tensor& a) {
  Tensor out[2];
  apply_many<SlogDetOp>({}, &a, 1, out);
  return {out[0], out[1]};
}

}  // namespace tenon
