#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/random.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/create.h"
#include "engine/optim/optimizer.h"
#include "engine/optim/schedule.h"

namespace tenon::optim {
namespace {

struct Problem {
  std::vector<nn::Named> parameters;
  std::vector<std::vector<double>> w;  // the reference's copy
  explicit Problem(std::initializer_list<int64_t> sizes) {
    uint64_t stream = 0;
    for (int64_t n : sizes) {
      Tensor t = empty({n});
      Philox random{5, ++stream};
      std::vector<double> copy;
      for (int64_t i = 0; i < n; ++i) {
        t.data<float>()[i] = random.uniform(static_cast<uint64_t>(i)) - 0.5f;
        copy.push_back(t.data<float>()[i]);
      }
      set_requires_grad(t);
      parameters.push_back({"layer" + std::to_string(stream) + ".weight", t});
      w.push_back(copy);
    }
  }
  /// Sets every gradient to something that depends on the step.
  double gradient(int step, size_t p, int64_t i) const {
    return std::sin(0.1 * static_cast<double>(i) + step + 2.0 * static_cast<double>(p));
  }
  void set_gradients(int step) {
    for (size_t p = 0; p < parameters.size(); ++p) {
      Tensor g = empty(parameters[p].tensor.size());
      for (int64_t i = 0; i < g.numel(); ++i) g.data<float>()[i] = static_cast<float>(gradient(step, p, i));
      set_grad(parameters[p].tensor, g);
    }
  }
  void expect_near(double tolerance) const {
    for (size_t p = 0; p < w.size(); ++p)
      for (size_t i = 0; i < w[p].size(); ++i)
        ASSERT_NEAR(parameters[p].tensor.data<float>()[i], w[p][i], tolerance) << "parameter " << p << " element " << i;
  }
};

TEST(Sgd, FollowsPyTorchsFormula) {
  for (double momentum : {0.0, 0.9})
    for (bool nesterov : {false, true}) {
      if (nesterov && momentum == 0) continue;
      Problem problem({3, 70000});
      auto opt = sgd(problem.parameters, {momentum, 0.01, nesterov});
      std::vector<std::vector<double>> buf;
      for (auto& w : problem.w) buf.emplace_back(w.size());
      for (int step = 0; step < 5; ++step) {
        problem.set_gradients(step);
        opt->step(0.1);
        for (size_t p = 0; p < buf.size(); ++p)
          for (size_t i = 0; i < buf[p].size(); ++i) {
            double g = problem.gradient(step, p, static_cast<int64_t>(i)) + 0.01 * problem.w[p][i];
            buf[p][i] = momentum * buf[p][i] + g;
            problem.w[p][i] -= 0.1 * (momentum == 0 ? g : nesterov ? g + momentum * buf[p][i] : buf[p][i]);
          }
      }
      problem.expect_near(1e-5);
    }
  EXPECT_THROW(sgd(Problem({2}).parameters, {0, 0, true}), Error);
}

TEST(Adam, FollowsPyTorchsFormula) {
  for (bool decoupled : {false, true}) {
    Problem problem({5, 40000});
    AdamOptions o{0.9, 0.99, 1e-8, 0.1, decoupled};
    auto opt = adam(problem.parameters, o);
    std::vector<std::vector<double>> m, v;
    for (auto& w : problem.w) m.emplace_back(w.size()), v.emplace_back(w.size());
    for (int step = 1; step <= 6; ++step) {
      problem.set_gradients(step);
      opt->step(0.01);
      for (size_t p = 0; p < m.size(); ++p)
        for (size_t i = 0; i < m[p].size(); ++i) {
          double g = problem.gradient(step, p, static_cast<int64_t>(i)), &w = problem.w[p][i];
          if (decoupled)
            w *= 1 - 0.01 * o.weight_decay;
          else
            g += o.weight_decay * w;
          m[p][i] = o.beta1 * m[p][i] + (1 - o.beta1) * g;
          v[p][i] = o.beta2 * v[p][i] + (1 - o.beta2) * g * g;
          double mean = m[p][i] / (1 - std::pow(o.beta1, step)), square = v[p][i] / (1 - std::pow(o.beta2, step));
          w -= 0.01 * mean / (std::sqrt(square) + o.eps);
        }
    }
    problem.expect_near(2e-6);
    EXPECT_EQ(opt->steps(), 6);
    ASSERT_EQ(opt->state().size(), 4u);
    EXPECT_EQ(opt->state()[0].name, "layer1.weight/exp_avg");
    EXPECT_EQ(opt->state()[3].name, "layer2.weight/exp_avg_sq");
  }
}

TEST(Optimizer, NormIsKnownBeforeAnythingIsWritten) {
  Problem problem({3, 1000});
  auto opt = adam(problem.parameters);
  problem.set_gradients(1);
  double want = 0;
  for (size_t p = 0; p < 2; ++p)
    for (size_t i = 0; i < problem.w[p].size(); ++i) want += std::pow(problem.gradient(1, p, static_cast<int64_t>(i)), 2);
  EXPECT_NEAR(opt->gradient_norm(), std::sqrt(want), 1e-5);
  EXPECT_NEAR(std::pow(opt->gradient_norms()[0], 2) + std::pow(opt->gradient_norms()[1], 2), want, 1e-3);
  problem.expect_near(0);
  grad_of(problem.parameters[1].tensor).data<float>()[500] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(opt->gradient_norm()));
  EXPECT_TRUE(std::isfinite(opt->gradient_norms()[0]));
  problem.expect_near(0);
}

TEST(Optimizer, LeavesAParameterWithoutGradientAlone) {
  Problem problem({4, 4});
  auto opt = sgd(problem.parameters, {0.9, 0.5, false});
  set_grad(problem.parameters[1].tensor, full({4}, 1));
  EXPECT_DOUBLE_EQ(opt->gradient_norm(), 2);
  uint32_t version = problem.parameters[1].tensor.version();
  opt->step(1);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(problem.parameters[0].tensor.data<float>()[i], static_cast<float>(problem.w[0][static_cast<size_t>(i)]));
  EXPECT_NE(problem.parameters[1].tensor.data<float>()[0], static_cast<float>(problem.w[1][0]));
  EXPECT_GT(problem.parameters[1].tensor.version(), version);
  opt->zero_grad();
  EXPECT_FALSE(grad_of(problem.parameters[1].tensor));
}

TEST(Schedule, Values) {
  Schedule s;
  EXPECT_DOUBLE_EQ(s.at(12345, 0.5), 0.5);
  s.type = Schedule::Type::step;
  s.every = 10;
  s.gamma = 0.1;
  EXPECT_DOUBLE_EQ(s.at(9, 1), 1);
  EXPECT_DOUBLE_EQ(s.at(10, 1), 0.1);
  EXPECT_NEAR(s.at(25, 1), 0.01, 1e-15);
  s = {};
  s.type = Schedule::Type::cosine;
  s.total = 110;
  s.warmup = 10;
  s.min_lr = 0.1;
  EXPECT_NEAR(s.at(0, 1), 1.0 / 11, 1e-12);
  EXPECT_NEAR(s.at(9, 1), 10.0 / 11, 1e-12);
  EXPECT_DOUBLE_EQ(s.at(10, 1), 1);
  EXPECT_NEAR(s.at(60, 1), 0.55, 1e-12);
  EXPECT_NEAR(s.at(110, 1), 0.1, 1e-12);
  EXPECT_NEAR(s.at(1000, 1), 0.1, 1e-12);
}

}  // namespace
}  // namespace tenon::optim
