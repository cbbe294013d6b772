#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

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
      auto opt = make_optimizer("sgd", problem.parameters,
                                {{"momentum", momentum}, {"weight_decay", 0.01}, {"nesterov", nesterov}});
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
  EXPECT_THROW(make_optimizer("sgd", Problem({2}).parameters, {{"nesterov", true}}), Error);
}

TEST(Adam, FollowsPyTorchsFormula) {
  for (bool decoupled : {false, true}) {
    Problem problem({5, 40000});
    struct {
      double beta1 = 0.9, beta2 = 0.99, eps = 1e-8, weight_decay = 0.1;
    } o;
    auto opt = make_optimizer(decoupled ? "adamw" : "adam", problem.parameters,
                              {{"beta2", o.beta2}, {"weight_decay", o.weight_decay}});
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
  auto opt = make_optimizer("adam", problem.parameters);
  problem.set_gradients(1);
  double want = 0;
  for (size_t p = 0; p < 2; ++p)
    for (size_t i = 0; i < problem.w[p].size(); ++i)
      want += std::pow(problem.gradient(1, p, static_cast<int64_t>(i)), 2);
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
  auto opt = make_optimizer("sgd", problem.parameters, {{"momentum", 0.9}, {"weight_decay", 0.5}});
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

std::unique_ptr<Schedule> schedule(const char* name, const std::vector<Attr>& attrs = {}, int64_t total = 100,
                                   int64_t per_epoch = 10, int64_t warmup = 0) {
  return warmed_up(make_schedule(name, attrs, {total, per_epoch, warmup}), warmup);
}

TEST(Schedule, Values) {
  EXPECT_DOUBLE_EQ(schedule("constant")->at(12345, 0.5), 0.5);
  auto s = schedule("step", {{"gamma", 0.1}});
  EXPECT_DOUBLE_EQ(s->at(9, 1), 1);
  EXPECT_DOUBLE_EQ(s->at(10, 1), 0.1);
  EXPECT_NEAR(s->at(25, 1), 0.01, 1e-15);
  s = schedule("cosine", {{"min_lr", 0.1}}, 110, 10, 10);
  EXPECT_NEAR(s->at(0, 1), 1.0 / 11, 1e-12);
  EXPECT_NEAR(s->at(9, 1), 10.0 / 11, 1e-12);
  EXPECT_DOUBLE_EQ(s->at(10, 1), 1);
  EXPECT_NEAR(s->at(60, 1), 0.55, 1e-12);
  EXPECT_NEAR(s->at(110, 1), 0.1, 1e-12);
  EXPECT_NEAR(s->at(1000, 1), 0.1, 1e-12);
  EXPECT_THROW(schedule("cosin"), Error);
  EXPECT_THROW(schedule("sequential"), Error);
  EXPECT_THROW(schedule("sequential", {{"parts", std::string("linear; cosine")}}), Error);  // how long is the first?
  s = schedule("sequential",
               {{"parts", std::string("constant factor=0.5 factor_steps=100 steps=4; exponential gamma=0.5")}}, 100, 1);
  EXPECT_DOUBLE_EQ(s->at(3, 1), 0.5);
  EXPECT_DOUBLE_EQ(s->at(4, 1), 1);
  EXPECT_DOUBLE_EQ(s->at(6, 1), 0.25);
}

TEST(Schedule, WavesWithRestartsBeginWhereTheyShould) {
  for (int64_t longer : {1, 2, 3}) {
    auto s = schedule("cosine_restarts", {{"t_0", 0.7}, {"t_mult", longer}}, 1000, 10);
    int64_t begin = 0, wave = 7;
    for (int64_t i = 0; i < 1000; ++i) {
      if (i == begin + wave) begin = i, wave *= longer;
      EXPECT_NEAR(s->at(i, 1), 0.5 * (1 + std::cos(M_PI * static_cast<double>(i - begin) / static_cast<double>(wave))),
                  1e-9)
          << longer << " " << i;
    }
  }
}

TEST(Schedule, APlateauRemembersWhatItSaw) {
  auto a = schedule("plateau", {{"patience", int64_t{1}}, {"factor", 0.5}});
  a->report(1, 10);
  a->report(1, 20);
  EXPECT_EQ(a->at(20, 1), 1);
  auto b = schedule("plateau", {{"patience", int64_t{1}}, {"factor", 0.5}});
  b->load(nlohmann::json::parse(a->state().dump()));
  for (auto* s : {a.get(), b.get()}) {
    s->report(2, 30);
    EXPECT_EQ(s->at(30, 1), 0.5);
  }
  EXPECT_EQ(a->state(), b->state());
  EXPECT_THROW(a->load({{"bad", -1}}), Error);
  EXPECT_THROW(schedule("cosine")->load(a->state()), Error);
  auto list = schedule("chained", {{"parts", std::string("plateau patience=0 factor=0.1; constant")}});
  list->report(1, 1);
  list->report(1, 2);
  EXPECT_DOUBLE_EQ(list->at(2, 1), 0.1);
  auto again = schedule("chained", {{"parts", std::string("plateau patience=0 factor=0.1; constant")}});
  again->load(list->state());
  EXPECT_DOUBLE_EQ(again->at(2, 1), 0.1);
}

TEST(Optimizer, RulesHoldForWhatTheyName) {
  Problem problem({4, 4, 4});
  auto opt = make_optimizer("sgd", problem.parameters, {{"weight_decay", 0.5}});
  apply_rules(*opt, "layer1.*: lr=10; *3.weight weight_decay=0", false, "optimizer.groups");
  problem.set_gradients(1);
  opt->step(0.01);
  for (size_t p = 0; p < 3; ++p)
    for (size_t i = 0; i < 4; ++i)
      problem.w[p][i] -= (p == 0 ? 0.1 : 0.01) *
                         (problem.gradient(1, p, static_cast<int64_t>(i)) + (p == 2 ? 0 : 0.5) * problem.w[p][i]);
  problem.expect_near(1e-6);
  apply_rules(*opt, "", true, "optimizer.groups");  // parameters of one axis do not decay
  EXPECT_EQ(opt->settings(0).weight_decay, 0);
  for (const char* bad : {"layer9.*: lr=1", "layer1.weight: speed=1", "layer1.weight lr", "layer1.weight: lr=-1"})
    EXPECT_THROW(apply_rules(*opt, bad, false, "optimizer.groups"), Error) << bad;
}

TEST(Optimizer, ClippingKeepsTheDirectionOrTheRange) {
  Problem problem({3, 5});
  auto opt = make_optimizer("sgd", problem.parameters);
  problem.set_gradients(1);
  double norm = opt->gradient_norm();
  EXPECT_DOUBLE_EQ(opt->clip_norm(norm * 2), norm);
  EXPECT_DOUBLE_EQ(opt->gradient_norm(), norm);
  opt->clip_norm(norm / 4);
  EXPECT_NEAR(opt->gradient_norm(), norm / 4, 1e-5);
  EXPECT_NEAR(grad_of(problem.parameters[0].tensor).data<float>()[0], problem.gradient(1, 0, 0) / 4, 1e-5);
  problem.set_gradients(1);
  opt->clip_value(0.3);
  for (int64_t i = 0; i < 5; ++i)
    EXPECT_FLOAT_EQ(grad_of(problem.parameters[1].tensor).data<float>()[i],
                    static_cast<float>(std::clamp(problem.gradient(1, 1, i), -0.3, 0.3)));
}

}  // namespace
}  // namespace tenon::optim
