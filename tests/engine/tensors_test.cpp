#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "core/parallel.h"
#include "engine/autograd/autograd.h"
#include "engine/autograd/gradcheck.h"
#include "engine/ops/create.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/random.h"
#include "engine/ops/reduce.h"
#include "engine/ops/statistics.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

Tensor of(std::initializer_list<double> values, DType dtype = DType::f64) {
  Tensor t = empty({static_cast<int64_t>(values.size())}, DType::f64);
  std::copy(values.begin(), values.end(), t.data<double>());
  return cast(t, dtype);
}
double at(const Tensor& t, int64_t i) { return value_at(t, {i}); }

TEST(Create, RangesGridsAndIdentities) {
  Tensor r = arange(0, 1, 0.1, DType::f64);
  EXPECT_EQ(r.numel(), 10);
  EXPECT_EQ(arange(5, 0, -2, DType::i64).numel(), 3);
  EXPECT_THROW(arange(0, 5, -1), Error);
  EXPECT_THROW(arange(0, 5, 0), Error);
  Tensor l = linspace(-1, 2, 4, DType::f64);
  EXPECT_EQ(at(l, 0), -1);
  EXPECT_EQ(at(l, 3), 2);
  EXPECT_EQ(linspace(3, 4, 1).numel(), 1);
  EXPECT_NEAR(at(logspace(0, 2, 3, 10, DType::f64), 2), 100, 1e-9);
  Tensor e = eye(2, 3);
  EXPECT_EQ(value_at(e, {1, 1}), 1);
  EXPECT_EQ(item(sum(e)), 2);
  auto grid = meshgrid({arange(2), arange(3)});
  EXPECT_EQ(value_at(grid[0], {1, 2}), 1);
  EXPECT_EQ(value_at(grid[1], {1, 2}), 2);
}

TEST(Statistics, VarianceNormsAndTheirLimits) {
  Tensor x = of({1, 2, 3, 6});
  EXPECT_NEAR(item(var(x)), 14.0 / 3, 1e-12);
  EXPECT_NEAR(item(stddev(x, {}, 0)), std::sqrt(3.5), 1e-12);
  EXPECT_TRUE(std::isnan(item(var(of({1})))));
  EXPECT_NEAR(item(logsumexp(of({1000, 1000}), {})), 1000 + std::log(2), 1e-9);
  EXPECT_EQ(item(logsumexp(of({-INFINITY, -INFINITY}), {})), -INFINITY);
  EXPECT_NEAR(item(norm(of({3, 4}))), 5, 1e-12);
  EXPECT_EQ(item(norm(of({3, -4}), INFINITY)), 4);
  EXPECT_EQ(item(norm(of({3, 0}), 0)), 1);
  EXPECT_NEAR(item(norm(of({1, 2}), 3)), std::cbrt(9), 1e-12);
  Tensor zero = zeros({3}, DType::f64);
  set_requires_grad(zero);
  backward(norm(zero));
  EXPECT_EQ(at(grad_of(zero), 1), 0);
  EXPECT_EQ(item(prod(of({2, 3, 4}, DType::i32))), 24);
  EXPECT_EQ(prod(of({2, 3}, DType::i32)).dtype(), DType::i64);
}

TEST(Statistics, TruthAndMissingValues) {
  Tensor none = zeros({0});
  EXPECT_EQ(item(any(none)), 0);
  EXPECT_EQ(item(all(none)), 1);
  EXPECT_EQ(any(of({0, 1})).dtype(), DType::boolean);
  EXPECT_EQ(item(count_nonzero(of({0, 2, NAN}))), 2);
  EXPECT_EQ(item(nansum(of({1, NAN, 2}))), 3);
  EXPECT_EQ(item(nanmean(of({1, NAN, 2}))), 1.5);
  EXPECT_EQ(item(quantile(of({4, 1, 3, 2}), scalar(0.5, DType::f64), 0)), 2.5);
  EXPECT_TRUE(std::isnan(item(quantile(of({4, NAN}), scalar(0.5, DType::f64), 0))));
  Tensor fixed = nan_to_num(of({NAN, INFINITY, -INFINITY, 1}, DType::f32), 7);
  EXPECT_EQ(at(fixed, 0), 7);
  EXPECT_EQ(at(fixed, 1), std::numeric_limits<float>::max());
  EXPECT_EQ(at(fixed, 3), 1);
  Tensor two = view(of({1, 2, 3, 2, 4, 6}), {2, 3});
  EXPECT_NEAR(value_at(cov(two), {0, 1}), 2, 1e-12);
  EXPECT_NEAR(value_at(corrcoef(two), {0, 1}), 1, 1e-12);
}

TEST(Statistics, AreDifferentiableTwice) {
  Tensor x = view(of({0.3, -1.2, 0.8, 2.0, 0.1, -0.4}), {2, 3});
  set_requires_grad(x);
  for (auto f : {+[](const Tensor& t) { return var(t, {1}); }, +[](const Tensor& t) { return norm(t, 3, {0}); },
                 +[](const Tensor& t) { return logsumexp(t, {1}); }, +[](const Tensor& t) { return norm(t, 2); },
                 +[](const Tensor& t) { return cov(t); }, +[](const Tensor& t) { return clamp(t, -1, 1); },
                 +[](const Tensor& t) { return polygamma(1, add(t, 2.0)); }}) {
    auto wrapped = [f](const std::vector<Tensor>& in) { return std::vector<Tensor>{f(in[0])}; };
    EXPECT_EQ(gradcheck(wrapped, {x}), "");
    EXPECT_EQ(gradgradcheck(wrapped, {x}), "");
  }
}

TEST(Pointwise, SpecialValues) {
  EXPECT_EQ(at(round(of({0.5, 1.5, -2.5})), 0), 0);
  EXPECT_EQ(at(round(of({0.5, 1.5, -2.5})), 1), 2);
  EXPECT_EQ(at(remainder(of({-7}), of({3})), 0), 2);
  EXPECT_EQ(at(fmod(of({-7}), of({3})), 0), -1);
  EXPECT_EQ(at(floor_divide(of({-7}, DType::i64), of({2}, DType::i64)), 0), -4);
  EXPECT_EQ(at(floor_divide(of({7}, DType::i64), of({0}, DType::i64)), 0), 0);
  EXPECT_EQ(at(floor_divide(of({-7}), of({2})), 0), -4);
  EXPECT_EQ(at(gcd(of({-12}, DType::i64), of({18}, DType::i64)), 0), 6);
  EXPECT_EQ(at(bitwise_not(of({5}, DType::i32)), 0), -6);
  EXPECT_THROW(bitwise_and(of({1}), of({1})), Error);
  EXPECT_NEAR(at(digamma(of({1})), 0), -0.57721566490153286, 1e-12);
  EXPECT_NEAR(at(digamma(of({-0.5})), 0), 0.03648997397857652, 1e-12);
  EXPECT_NEAR(at(polygamma(1, of({1})), 0), M_PI * M_PI / 6, 1e-12);
  EXPECT_NEAR(at(polygamma(3, of({0.5})), 0), std::pow(M_PI, 4), 1e-9);
  for (double y : {-0.999999, -0.3, 1e-9, 0.7, 0.99999999})
    EXPECT_NEAR(at(erf(erfinv(of({y}))), 0), y, 1e-15 + 1e-15 * std::abs(y));
  EXPECT_EQ(at(erfinv(of({1})), 0), INFINITY);
  EXPECT_EQ(at(xlogy(of({0}), of({0})), 0), 0);
  EXPECT_EQ(at(logaddexp(of({-INFINITY}), of({-INFINITY})), 0), -INFINITY);
  EXPECT_EQ(at(sinc(of({0})), 0), 1);
  EXPECT_EQ(at(isinf(of({-INFINITY, 3})), 0), 1);
  EXPECT_EQ(at(logical_xor(of({2, 0}), of({3, 4})), 0), 0);
  Tensor c = clamp(of({-3, 5}), -1, INFINITY);
  EXPECT_EQ(at(c, 0), -1);
  EXPECT_EQ(at(c, 1), 5);
}

TEST(Random, IsAFunctionOfSeedStreamAndCounterOnAnyThreads) {
  Generator a{5, 1, 0}, b{5, 1, 0};
  set_num_threads(1);
  Tensor x = randn({20000}, DType::f32, &a);
  set_num_threads(2);
  Tensor y = randn({20000}, DType::f32, &b);
  set_num_threads(0);
  EXPECT_EQ(item(sum(ne(x, y))), 0);
  EXPECT_GT(item(sum(ne(x, randn({20000}, DType::f32, &a)))), 19000) << "the generator moved on";
  EXPECT_NEAR(item(mean(x)), 0, 0.03);
  EXPECT_NEAR(item(stddev(x)), 1, 0.03);
}

TEST(Random, LawsHaveTheirMomentsAndLimits) {
  manual_seed(3);
  Tensor u = rand({50000}, DType::bf16);
  EXPECT_LT(item(amax(u)), 1);
  EXPECT_GE(item(amin(u)), 0);
  EXPECT_NEAR(item(mean(cast(u, DType::f32))), 0.5, 0.01);
  Tensor n = randint(-2, 3, {5000});
  EXPECT_EQ(item(amin(n)), -2);
  EXPECT_EQ(item(amax(n)), 2);
  Tensor p = randperm(100);
  std::set<int64_t> seen(p.data<int64_t>(), p.data<int64_t>() + 100);
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_NEAR(item(mean(bernoulli(full({20000}, 0.3)))), 0.3, 0.02);
  EXPECT_NEAR(item(mean(poisson(full({20000}, 4)))), 4, 0.1);
  EXPECT_NEAR(item(mean(poisson(full({200}, 1200)))), 1200, 12);
  Tensor t = empty({20000});
  EXPECT_NEAR(item(mean(exponential_(t, 2))), 0.5, 0.02);
  EXPECT_NEAR(item(mean(geometric_(t, 0.25))), 4, 0.15);
  Tensor m = multinomial(of({0, 1, 3}), 4000, true);
  EXPECT_NEAR(item(mean(cast(m, DType::f32))), 1.75, 0.05);
  Tensor each = multinomial(of({1, 2, 0, 4}), 3);
  std::set<int64_t> drawn(each.data<int64_t>(), each.data<int64_t>() + 3);
  EXPECT_EQ(drawn, (std::set<int64_t>{0, 1, 3}));
  EXPECT_THROW(multinomial(of({1, 0}), 2), Error);
  EXPECT_THROW(bernoulli(of({1.5})), Error);
  EXPECT_THROW(randint(3, 3, {1}), Error);
}

}  // namespace
}  // namespace tenon
