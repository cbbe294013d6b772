// Products, linear algebra and Fourier transforms.
#include <fmt/format.h>

#include <cmath>

#include "engine/ops/fft.h"
#include "engine/ops/linalg.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/view.h"
#include "tests/peers/ops_cases.h"

namespace tenon::peers {
namespace {

using In = const std::vector<Tensor>&;
using Out = std::vector<Tensor>;

void products(std::vector<OpCase>& to, Draw& d) {
  struct Equation {
    const char* text;
    std::vector<Shape> sizes;
  };
  const std::vector<Equation> equations = {{"ij,jk->ik", {{2, 3}, {3, 4}}},
                                           {"ij,jk", {{2, 3}, {3, 4}}},
                                           {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 2}}},
                                           {"ij->ji", {{2, 3}}},
                                           {"ij->", {{2, 3}}},
                                           {"ij->j", {{2, 3}}},
                                           {"ii->i", {{3, 3}}},
                                           {"ii", {{3, 3}}},
                                           {"i,i", {{4}, {4}}},
                                           {"i,j->ij", {{2}, {3}}},
                                           {"...ij,...jk->...ik", {{2, 3, 4}, {4, 2}}},
                                           {"...ij,...jk->...ik", {{5, 1, 2, 3}, {4, 3, 2}}},
                                           {"b...i,bi->b...", {{2, 3, 4}, {2, 4}}},
                                           {"ba", {{2, 3}}},
                                           {"iij,jk->ik", {{3, 3, 2}, {2, 4}}},
                                           {"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}},
                                           {"bhqd,bhkd->bhqk", {{2, 2, 3, 4}, {2, 2, 5, 4}}},
                                           {"i...->...", {{2, 3, 4}}},
                                           {"...ii->...i", {{2, 3, 3}}},
                                           {"ijk,ilm->jklm", {{2, 3, 2}, {2, 2, 3}}},
                                           {"i,ij,j", {{2}, {2, 3}, {3}}},
                                           {"ik,jk->ij", {{2, 3}, {4, 3}}},
                                           {"abc,cd,be->ade", {{2, 3, 2}, {2, 4}, {3, 2}}},
                                           {" i j , j k -> i k ", {{2, 3}, {3, 4}}}};
  for (const Equation& e : equations) {
    OpCase c{
        "torch.einsum('" + std::string(e.text) + "', *x)", {}, [text = e.text](In i) { return Out{einsum(text, i)}; }};
    for (const Shape& s : e.sizes) c.inputs.push_back(d.values(s));
    to.push_back(c);
  }
  to.push_back({"torch.einsum('ij,jk->ik', *x)", {d.integers({2, 3}, -3, 3), d.integers({3, 2}, -3, 3)}, [](In i) {
                  return Out{einsum("ij,jk->ik", i)};
                }});
  to.push_back({"(torch.tensordot(x[0], x[1], 2), torch.tensordot(x[0], x[2], ([0, 2], [1, 0])))",
                {d.values({2, 3, 4}), d.values({3, 4, 5}), d.values({4, 2, 3})},
                [](In i) {
                  return Out{tensordot(i[0], i[1], 2), tensordot(i[0], i[2], {0, 2}, {1, 0})};
                }});
  to.push_back({"(torch.bmm(x[0], x[1]), torch.baddbmm(x[2], x[0], x[1], beta=0.5, alpha=2))",
                {d.values({2, 3, 4}), d.values({2, 4, 5}), d.values({2, 3, 5})},
                [](In i) {
                  return Out{bmm(i[0], i[1]), baddbmm(i[2], i[0], i[1], 0.5, 2)};
                }});
  to.push_back(
      {"(torch.addmm(x[2], x[0], x[1], beta=0.5, alpha=2), torch.mv(x[0], x[3]), torch.dot(x[3], x[3]), "
       "torch.outer(x[3], x[2]))",
       {d.values({3, 4}), d.values({4, 5}), d.values({5}), d.values({4})},
       [](In i) {
         return Out{addmm(i[2], i[0], i[1], 0.5, 2), mv(i[0], i[3]), dot(i[3], i[3]), outer(i[3], i[2])};
       }});
  to.push_back({"(torch.cross(x[0], x[1], dim=1), torch.kron(x[0], x[2]))",
                {d.values({2, 3, 2}), d.values({2, 3, 2}), d.values({2, 2})},
                [](In i) {
                  return Out{cross(i[0], i[1], 1), kron(i[0], i[2])};
                }});
}

Tensor square_matrix(Draw& d, const Shape& size) {
  Tensor x = d.values(size);
  for (int64_t k = 0; k < x.numel() / size.back(); ++k) x.data<double>()[k * size.back() + k % size.back()] += 3;
  return x;
}

void linear_algebra(std::vector<OpCase>& to, Draw& d) {
  const char* positive = "x[0] @ x[0].transpose(-1, -2) + torch.eye(x[0].size(-1), dtype=torch.float64)";
  auto our_positive = [](const Tensor& x) { return add(matmul(x, x, false, true), eye(x.size(-1), -1, DType::f64)); };
  for (const Shape& s : {Shape{3, 3}, Shape{2, 4, 4}, Shape{2, 1, 2, 2}}) {
    const int64_t n = s.back();
    Shape right = s, vector = s;
    right[right.n - 1] = 2;
    vector.erase(vector.n - 1);
    to.push_back({fmt::format("(torch.linalg.cholesky({0}), torch.linalg.cholesky({0}, upper=True))", positive),
                  {d.values(s)},
                  [=](In i) {
                    return Out{cholesky(our_positive(i[0])), cholesky(our_positive(i[0]), true)};
                  },
                  true,
                  1e-7});
    to.push_back({fmt::format("torch.cholesky_solve(x[1], torch.linalg.cholesky({}))", positive),
                  {d.values(s), d.values(right)},
                  [=](In i) { return Out{cholesky_solve(i[1], cholesky(our_positive(i[0])))}; },
                  true,
                  1e-7});
    const Tensor a = square_matrix(d, s);
    to.push_back(
        {"(torch.linalg.solve(x[0], x[1]), torch.linalg.solve(x[0], x[2]), torch.linalg.inv(x[0]), "
         "torch.linalg.det(x[0]), "
         "torch.linalg.slogdet(x[0]))",
         {a, d.values(right), d.values(vector)},
         [](In i) {
           const SlogDet l = slogdet(i[0]);
           return Out{solve(i[0], i[1]), solve(i[0], i[2]), inv(i[0]), det(i[0]), l.sign, l.logabsdet};
         },
         true,
         1e-7});
    for (bool upper : {false, true})
      for (bool unit : {false, true})
        to.push_back({fmt::format("torch.linalg.solve_triangular(x[0], x[1], upper={}, unitriangular={})",
                                  upper ? "True" : "False", unit ? "True" : "False"),
                      {a, d.values(right)},
                      [=](In i) { return Out{solve_triangular(i[0], i[1], upper, true, unit)}; },
                      true,
                      1e-7});
    Shape left = s;
    left[left.n - 2] = 2;
    to.push_back({"torch.linalg.solve_triangular(x[0], x[1], upper=True, left=False)",
                  {a, d.values(left)},
                  [](In i) { return Out{solve_triangular(i[0], i[1], true, false)}; },
                  true,
                  1e-7});
    // Vectors up to their sign: squares.
    to.push_back({"(lambda e: (e[0], e[1] ** 2))(torch.linalg.eigh(x[0] + x[0].transpose(-1, -2)))",
                  {d.values(s)},
                  [](In i) {
                    const Eigh e = eigh(add(i[0], transpose(i[0], -1, -2)));
                    return Out{e.values, square(e.vectors)};
                  },
                  true,
                  1e-6});
    for (int64_t rows : {n, n + 2, std::max<int64_t>(1, n - 1)}) {
      Shape r = s;
      r[r.n - 2] = rows;
      to.push_back({"(lambda f: (f[0] ** 2, f[1], f[2] ** 2))(torch.linalg.svd(x[0], full_matrices=False))",
                    {d.values(r)},
                    [](In i) {
                      const Svd f = svd(i[0]);
                      return Out{square(f.u), f.s, square(f.vh)};
                    },
                    true,
                    1e-6});
      to.push_back({"torch.linalg.qr(x[0])",
                    {d.values(r)},
                    [](In i) {
                      const Qr f = qr(i[0]);
                      return Out{f.q, f.r};
                    },
                    rows >= n,
                    1e-6});
      to.push_back({"torch.linalg.pinv(x[0])", {d.values(r)}, [](In i) { return Out{pinv(i[0])}; }, true, 1e-5});
      Shape b = r;
      b[b.n - 1] = 2;
      to.push_back({"torch.linalg.lstsq(x[0], x[1]).solution",
                    {d.values(r), d.values(b)},
                    [](In i) { return Out{lstsq(i[0], i[1])}; },
                    true,
                    1e-5});
      static constexpr const char* names[] = {"'fro'", "'nuc'", "float('inf')", "-float('inf')", "1", "-1", "2", "-2"};
      for (int k = 0; k < 8; ++k)
        to.push_back(
            {fmt::format("(torch.linalg.matrix_norm(x[0], {0}), torch.linalg.matrix_norm(x[0], {0}, keepdim=True))",
                         names[k]),
             {d.values(r)},
             [k](In i) {
               return Out{matrix_norm(i[0], static_cast<MatrixNorm>(k)),
                          matrix_norm(i[0], static_cast<MatrixNorm>(k), true)};
             },
             true,
             1e-6});
      for (const char* order : {"2", "1", "0", "3", "0.5", "float('inf')", "-float('inf')"})
        to.push_back(
            {fmt::format("(torch.linalg.vector_norm(x[0], {0}), torch.linalg.vector_norm(x[0], {0}, -1))", order),
             {d.values(r)},
             [order](In i) {
               const double p = order[0] == 'f' ? INFINITY : order[0] == '-' ? -INFINITY : std::atof(order);
               return Out{vector_norm(i[0], p), vector_norm(i[0], p, {-1})};
             }});
    }
    for (int64_t p : {0, 1, 3, -2})
      to.push_back({fmt::format("torch.linalg.matrix_power(x[0], {})", p),
                    {a},
                    [p](In i) { return Out{matrix_power(i[0], p)}; },
                    p != 0,
                    1e-7});
  }
  to.push_back({"torch.trace(x[0])", {d.values({3, 4})}, [](In i) { return Out{trace(i[0])}; }});
}

void fourier(std::vector<OpCase>& to, Draw& d) {
  static constexpr const char* norms[] = {"'backward'", "'ortho'", "'forward'"};
  for (int k = 0; k < 3; ++k) {
    const auto norm = static_cast<FftNorm>(k);
    for (int64_t n : {int64_t{-1}, int64_t{1}, int64_t{5}, int64_t{8}, int64_t{11}}) {
      const std::string size = n < 0 ? "None" : std::to_string(n);
      for (int axis : {-1, 0}) {
        to.push_back({fmt::format("[torch.view_as_real(f(torch.view_as_complex(x[0]), {}, {}, {})) for f in "
                                  "(torch.fft.fft, torch.fft.ifft)]",
                                  size, axis, norms[k]),
                      {d.values({4, 6, 2})},
                      [=](In i) {
                        return Out{fft(i[0], n, axis, norm), ifft(i[0], n, axis, norm)};
                      }});
        to.push_back({fmt::format("torch.view_as_real(torch.fft.rfft(x[0], {}, {}, {}))", size, axis, norms[k]),
                      {d.values({7, 6})},
                      [=](In i) { return Out{rfft(i[0], n, axis, norm)}; }});
        to.push_back({fmt::format("torch.fft.irfft(torch.view_as_complex(x[0]), {}, {}, {})", size, axis, norms[k]),
                      {d.values({5, 6, 2})},
                      [=](In i) { return Out{irfft(i[0], n, axis, norm)}; }});
      }
    }
    to.push_back(
        {fmt::format(
             "[torch.view_as_real(f(torch.view_as_complex(x[0]), norm={})) for f in (torch.fft.fft2, torch.fft.ifft2)]",
             norms[k]),
         {d.values({2, 3, 4, 2})},
         [=](In i) {
           return Out{fft2(i[0], norm), ifft2(i[0], norm)};
         }});
  }
  to.push_back({"(torch.fft.fftshift(x[0], 1), torch.fft.ifftshift(x[0], 1), torch.fft.fftshift(x[0], 0))",
                {d.values({4, 5})},
                [](In i) {
                  return Out{fftshift(i[0], 1), ifftshift(i[0], 1), fftshift(i[0], 0)};
                }});
  for (bool periodic : {true, false})
    to.push_back({fmt::format("[f(9, periodic={}, dtype=torch.float64) for f in (torch.hann_window, "
                              "torch.hamming_window, torch.blackman_window)]",
                              periodic ? "True" : "False"),
                  {},
                  [=](In) {
                    return Out{hann_window(9, periodic, DType::f64), hamming_window(9, periodic, DType::f64),
                               blackman_window(9, periodic, DType::f64)};
                  }});
  for (bool center : {true, false})
    for (bool onesided : {true, false})
      for (bool normalized : {true, false}) {
        StftOptions o;
        o.n_fft = 8;
        o.hop = 3;
        o.center = center;
        o.onesided = onesided;
        o.normalized = normalized;
        const std::string words =
            fmt::format("8, 3, window=x[1], center={}, onesided={}, normalized={}", center ? "True" : "False",
                        onesided ? "True" : "False", normalized ? "True" : "False");
        const Tensor signal = d.values({2, 29}), window = add(hann_window(8, true, DType::f64), 0.2);
        to.push_back({"torch.view_as_real(torch.stft(x[0], " + words + ", return_complex=True))",
                      {signal, window},
                      [o](In i) mutable {
                        o.window = i[1];
                        return Out{stft(i[0], o)};
                      }});
        to.push_back({"torch.istft(torch.stft(x[0], " + words + ", return_complex=True), " + words + ")",
                      {signal, window},
                      [o](In i) mutable {
                        o.window = i[1];
                        return Out{istft(stft(i[0], o), o)};
                      },
                      false});
      }
}

}  // namespace

void linear_cases(std::vector<OpCase>& to, Draw d) {
  products(to, d);
  linear_algebra(to, d);
  fourier(to, d);
}

}  // namespace tenon::peers
