// Products of bf16 and f16: on the processor's own instructions where it has them, in f32 elsewhere, and alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/half.h"
#include "core/parallel.h"
#include "core/random.h"
#include "core/tensor_values.h"
#include "engine/autograd/autograd.h"
#include "engine/kernels/bf16_product.h"
#include "engine/kernels/dnnl_matmul.h"
#include "engine/kernels/gemm.h"
#include "engine/op/autocast.h"
#include "engine/ops/attention.h"
#include "engine/ops/conv.h"
#include "engine/ops/create.h"
#include "engine/ops/matmul.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/random.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

std::vector<uint16_t> halves(int64_t n, uint64_t stream) {
  Philox random{42, stream};
  std::vector<uint16_t> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) v[i] = float_to_bfloat(2 * random.uniform(i) - 1);
  return v;
}

struct Size {
  int64_t m, n, k;
};

TEST(HalfProducts, FollowPlainLoopsInEveryForm) {
  if (!kernels::has_bf16_products()) GTEST_SKIP() << "this processor has no products of bf16";
  for (const auto [m, n, k] :
       {Size{1, 1, 1}, Size{5, 7, 3}, Size{33, 40, 100}, Size{1, 300, 64}, Size{300, 1, 64}, Size{130, 97, 61},
        Size{3, 2, 0}, Size{600, 70, 300}, Size{16, 24, 2100}, Size{67, 700, 101}, Size{300, 131, 1000}})
    for (bool ta : {false, true})
      for (bool tb : {false, true})
        for (bool bias : {false, true}) {
          const int64_t lda = (ta ? m : k) + 3, ldb = (tb ? k : n) + 1, ldc = n + 2;
          const auto a = halves((ta ? k : m) * lda, 1), b = halves((tb ? n : k) * ldb, 2), row = halves(n, 3);
          auto c = halves(m * ldc, 4);
          const auto before = c;
          kernels::gemm_bf16(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, bias ? row.data() : nullptr, c.data(), ldc);
          auto at = [](const std::vector<uint16_t>& v, int64_t i) {
            return static_cast<double>(bfloat_to_float(v[static_cast<size_t>(i)]));
          };
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              double sum = bias ? at(row, j) : 0, size = std::fabs(sum);
              for (int64_t p = 0; p < k; ++p) {
                const double x = at(a, ta ? p * lda + i : i * lda + p) * at(b, tb ? j * ldb + p : p * ldb + j);
                sum += x;
                size += std::fabs(x);
              }
              ASSERT_NEAR(at(c, i * ldc + j), sum, std::fabs(sum) / 256 + size * 1e-5)
                  << m << " x " << n << " x " << k << (ta ? " ta" : "") << (tb ? " tb" : "") << (bias ? " bias" : "");
            }
          for (int64_t i = 0; i + 1 < m; ++i)
            for (int64_t j = n; j < ldc; ++j)
              ASSERT_EQ(c[static_cast<size_t>(i * ldc + j)], before[static_cast<size_t>(i * ldc + j)])
                  << "beside the result";
        }
}

/// As oneDNN multiplies them where it uses such tiles itself: a result without gaps. What is no number counts too.
TEST(HalfProducts, TilesHaveOneDnnsBits) {
  if (!kernels::has_bf16_tiles()) GTEST_SKIP() << "this processor has no tiles of bf16";
  for (const auto [m, n, k] :
       {Size{64, 128, 544}, Size{96, 160, 64}, Size{50, 40, 33}, Size{1, 1, 1}, Size{64, 1100, 8192}}) {
    auto a = halves(m * k, 1);
    const auto b = halves(k * n, 2), row = halves(n, 3);
    a[0] = float_to_bfloat(std::numeric_limits<float>::quiet_NaN());
    if (m > 2) a[static_cast<size_t>(k)] = float_to_bfloat(std::numeric_limits<float>::infinity());
    if (m > 3) a[static_cast<size_t>(2 * k + 1)] = 1;  // the smallest subnormal
    std::vector<uint16_t> ours(static_cast<size_t>(m * n)), theirs(ours);
    kernels::tiled_bf16(false, false, m, n, k, a.data(), k, b.data(), n, row.data(), ours.data(), n);
    kernels::dnnl_matmul({m, n, k, k, n, n, false, false, true, false, true}, a.data(), b.data(), row.data(),
                         theirs.data());
    for (size_t i = 0; i < ours.size(); ++i) {
      const float x = bfloat_to_float(ours[i]), y = bfloat_to_float(theirs[i]);
      const bool a_step_apart = k > 4096 && std::fabs(x - y) <= std::fabs(y) / 128;  // oneDNN cuts sums so long
      ASSERT_TRUE(ours[i] == theirs[i] || (std::isnan(x) && std::isnan(y)) || a_step_apart)
          << x << " and " << y << " at " << i;
    }
  }
}

/// The value of `x` rounded to `type`, of which one step is at most so much of it.
double step_of(DType type) { return type == DType::bf16 ? 1.0 / 128 : 1.0 / 1024; }

void expect_a_step_apart(const Tensor& got, const Tensor& want, DType type, const char* what) {
  ASSERT_EQ(got.dtype(), type) << what;
  ASSERT_TRUE(got.size() == want.size()) << what;
  std::vector<double> a(static_cast<size_t>(got.numel())), b(a.size());
  read_values(got, 0, got.numel(), a.data());
  read_values(want, 0, want.numel(), b.data());
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], step_of(type) * std::max(1.0, std::fabs(b[i]))) << what << " element " << i;
}

TEST(HalfProducts, OpsAndTheirGradientsAreThoseOfF32RoundedOnce) {
  for (DType type : {DType::bf16, DType::f16}) {
    auto values = [&](const Shape& size) { return cast(rand(size, DType::f32), type); };
    auto wide = [](const Tensor& t) { return cast(detach(t), DType::f32); };
    auto leaf = [](Tensor t) {
      set_requires_grad(t);
      return t;
    };
    const Tensor x = leaf(values({9, 20})), w = leaf(values({12, 20})), b = leaf(values({12})), g = values({9, 12});
    const Tensor x32 = leaf(wide(x)), w32 = leaf(wide(w)), b32 = leaf(wide(b));
    const Tensor y = linear(x, w, b), y32 = linear(x32, w32, b32);
    expect_a_step_apart(y, y32, type, "linear");
    backward(y, g);
    backward(y32, wide(g));
    expect_a_step_apart(grad_of(x), grad_of(x32), type, "gradient of the input");
    expect_a_step_apart(grad_of(w), grad_of(w32), type, "gradient of the weight");
    expect_a_step_apart(grad_of(b), grad_of(b32), type, "gradient of the bias");
    NoGrad off;
    const Tensor batch = values({3, 4, 6}), other = values({3, 5, 6});
    expect_a_step_apart(matmul(batch, other, false, true), matmul(wide(batch), wide(other), false, true), type,
                        "batch");
    const Tensor turned = transpose(batch, -1, -2), every_other = slice(other, 2, 0, 6, 2);
    const Tensor thin = values({3, 4, 2}), matrix = values({3, 7});
    expect_a_step_apart(matmul(turned, thin), matmul(wide(turned), wide(thin)), type, "turned");
    expect_a_step_apart(matmul(every_other, matrix), matmul(wide(every_other), wide(matrix)), type, "strided");
  }
}

TEST(HalfProducts, ConvolutionsAndTheirGradientsAreThoseOfF32RoundedOnce) {
  struct Case {
    Shape x, w;
    Conv2dOptions o;
    bool bias;
  };
  const std::vector<Case> cases = {
      {{5, 3, 9, 8}, {4, 3, 3, 3}, {.padding = {1, 1}}, true},
      {{3, 8, 11, 11}, {16, 8, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}, false},
      {{2, 8, 7, 9}, {12, 4, 3, 2}, {.dilation = {2, 1}, .groups = 2}, true},
      {{9, 6, 8, 8}, {6, 1, 3, 3}, {.padding = {1, 1}, .groups = 6}, true},
      {{1, 16, 5, 5}, {8, 16, 1, 1}, {}, false},
  };
  for (DType type : {DType::bf16, DType::f16})
    for (const Case& c : cases) {
      auto values = [&](const Shape& size) { return cast(rand(size, DType::f32), type); };
      auto leaf = [](Tensor t) {
        set_requires_grad(t);
        return t;
      };
      auto wide = [](const Tensor& t) { return t ? cast(detach(t), DType::f32) : t; };
      auto wide_leaf = [&](const Tensor& t) { return t ? leaf(wide(t)) : t; };
      const Tensor x = leaf(values(c.x)), w = leaf(values(c.w)), b = c.bias ? leaf(values({c.w[0]})) : Tensor();
      const Tensor x32 = wide_leaf(x), w32 = wide_leaf(w), b32 = wide_leaf(b);
      const Tensor y = conv2d(x, w, b, c.o), y32 = conv2d(x32, w32, b32, c.o), g = values(y.size());
      expect_a_step_apart(y, y32, type, "conv2d");
      backward(y, g);
      backward(y32, wide(g));
      expect_a_step_apart(grad_of(x), grad_of(x32), type, "gradient of the input");
      expect_a_step_apart(grad_of(w), grad_of(w32), type, "gradient of the weight");
      if (c.bias) expect_a_step_apart(grad_of(b), grad_of(b32), type, "gradient of the bias");
    }
}

/// Everything that follows from attention: the result, its gradients, and theirs.
std::vector<Tensor> attention_and_gradients(const std::vector<Tensor>& given, const Tensor& mask, DType type) {
  std::vector<Tensor> in;
  for (const Tensor& t : given) {
    in.push_back(cast(t, type));
    set_requires_grad(in.back());
  }
  const Tensor y = scaled_dot_product_attention(in[0], in[1], in[2], mask, {0, true}), gy = cast(given[3], type);
  std::vector<Tensor> all = grad({y}, {in[0], in[1], in[2]}, {gy}, {.retain_graph = true});
  const Tensor again = grad({y}, {in[0], in[1], in[2]}, {gy}, {.create_graph = true})[0];
  for (const Tensor& t : grad({again}, {in[1], in[2]}, {cast(given[0], type)})) all.push_back(t);
  all.insert(all.begin(), y);
  return all;
}

TEST(HalfProducts, AttentionAndItsGradientsAreThoseOfF32) {
  const Tensor keep = lt(rand({9, 12}, DType::f32), 0.9);
  for (DType type : {DType::bf16, DType::f16})
    for (const int which : {0, 1, 2}) {
      const auto values = [&](const Shape& size) {
        return cast(cast(sub(mul(rand(size, DType::f32), 2), 1), type), DType::f32);
      };
      const std::vector<Tensor> in = {transpose(values({2, 9, 3, 8}), 1, 2), values({2, 3, 12, 8}),
                                      values({2, 3, 12, 6}), values({2, 3, 9, 6})};
      const Tensor added = values({3, 1, 12}), mask = which == 0 ? Tensor() : which == 1 ? keep : added;
      const auto all = attention_and_gradients(in, which == 2 ? cast(added, type) : mask, type);
      const auto all32 = attention_and_gradients(in, mask, DType::f32);
      for (size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(all[i].dtype(), type) << i;
        const Tensor a = cast(contiguous(detach(all[i])), DType::f32), b = contiguous(detach(all32[i]));
        double largest = 0;
        for (int64_t k = 0; k < b.numel(); ++k) largest = std::max(largest, std::fabs(double{b.data<float>()[k]}));
        for (int64_t k = 0; k < b.numel(); ++k)
          ASSERT_NEAR(a.data<float>()[k], b.data<float>()[k], 2e-2 * largest) << name(type) << ", result " << i;
      }
      expect_a_step_apart(all[0], all32[0], type, "attention");
      // A mask of f32 makes it a matter of f32.
      const NoGrad off;
      const Tensor mixed = scaled_dot_product_attention(cast(in[0], type), cast(in[1], type), cast(in[2], type),
                                                        which == 2 ? added : mask, {0, true});
      expect_a_step_apart(mixed, all32[0], type, "a mask of f32");
    }
}

/// The gradient works in the types of the forward pass, also while autocast is on.
TEST(HalfProducts, AttentionUnderAutocast) {
  const auto run = [](bool low) {
    std::vector<Tensor> in;
    for (const Shape& size : {Shape{2, 9, 8}, Shape{2, 12, 8}, Shape{2, 12, 6}}) {
      in.push_back(cast(cast(rand(size, DType::f32), DType::bf16), DType::f32));
      set_requires_grad(in.back());
    }
    const AutocastScope scope(DType::bf16, low);
    const Tensor y = scaled_dot_product_attention(in[0], in[1], in[2]);
    EXPECT_EQ(y.dtype(), low ? DType::bf16 : DType::f32);
    const auto all = grad({y}, in, {full(y.size(), 0.5, y.dtype())});
    for (const Tensor& t : all) {
      EXPECT_EQ(t.dtype(), DType::f32);
      for (int64_t k = 0; k < t.numel(); ++k) EXPECT_TRUE(std::isfinite(t.data<float>()[k]));
    }
  };
  run(true);
  run(false);
}

TEST(HalfProducts, OfTwoTypesAreThoseOfF32) {
  const Tensor x = cast(rand({4, 8}, DType::f32), DType::bf16), w = rand({3, 8}, DType::f32);
  const NoGrad off;
  expect_a_step_apart(linear(x, w, {}), linear(cast(x, DType::f32), w, {}), DType::bf16, "bf16 by f32");
  EXPECT_EQ(linear(x, cast(w, DType::f16), {}).dtype(), DType::f32);
}

TEST(HalfProducts, HaveTheSameBitsAtAnyThreadCount) {
  const NoGrad off;
  const Tensor x = cast(rand({700, 300}, DType::f32), DType::bf16), w = cast(rand({900, 300}, DType::f32), DType::bf16);
  const Tensor images = cast(rand({20, 16, 14, 14}, DType::f32), DType::bf16),
               kernel = cast(rand({32, 16, 3, 3}, DType::f32), DType::bf16);
  std::vector<Tensor> products, convolutions;
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    products.push_back(linear(x, w, {}));
    convolutions.push_back(conv2d(images, kernel, {}, {}));
  }
  set_num_threads(0);
  for (const auto& all : {products, convolutions})
    for (const Tensor& t : all)
      EXPECT_EQ(std::memcmp(t.raw(), all[0].raw(), static_cast<size_t>(t.numel()) * sizeof(uint16_t)), 0);
}

}  // namespace
}  // namespace tenon
