// How weights, gradients and updates are spread, against the tensors themselves: of checkpoints, of states reached by
// time travel, and of recorded steps.
#include "projects/distributions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "core/error.h"
#include "core/parallel.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"
#include "engine/train/session.h"
#include "projects/time_travel.h"
#include "tests/projects/spirals.h"
#include "tracing/record/numbers.h"
#include "tracing/record/step_record.h"

namespace tenon::projects {
namespace {

/// What a spread should be, from sorted numbers and tracing's statistics.
void expect_spread(const Spread& s, const Tensor& t, double scale, const std::string& what) {
  SCOPED_TRACE(what);
  std::vector<double> finite;
  tracing::each_value(t, [&](int64_t, double v) {
    if (std::isfinite(v)) finite.push_back(v / scale);
    return true;
  });
  std::sort(finite.begin(), finite.end());
  const tracing::Statistics told = tracing::statistics(t);
  EXPECT_EQ(s.count, t.numel());
  EXPECT_EQ(s.bad, told.bad());
  EXPECT_EQ(s.zeros, told.zeros);
  if (finite.empty()) return;
  EXPECT_DOUBLE_EQ(s.mean, told.mean / scale);
  EXPECT_DOUBLE_EQ(s.deviation, told.deviation / scale);
  EXPECT_DOUBLE_EQ(s.norm, told.norm / scale);
  for (size_t q = 0; q < Spread::kShares.size(); ++q) {
    const double place = Spread::kShares[q] * static_cast<double>(finite.size() - 1);
    const auto below = static_cast<size_t>(place), above = std::min(below + 1, finite.size() - 1);
    const double wanted = finite[below] + (finite[above] - finite[below]) * (place - std::floor(place));
    EXPECT_FLOAT_EQ(s.quantiles[q], static_cast<float>(wanted)) << "quantile " << Spread::kShares[q];
  }
}

void expect_same_points(const Distributions& a, const Distributions& b) {
  const auto text = [](const Distributions& d) {
    std::string all;
    for (const auto& p : d.points)
      for (const ParameterSpreads& s : p.parameters)
        for (const Spread* of : {&s.weight, &s.gradient, &s.update}) {
          all += std::to_string(p.step);
          all.append(reinterpret_cast<const char*>(of->quantiles.data()), sizeof of->quantiles);
          for (const double v : {of->mean, of->deviation, of->norm}) all.append(reinterpret_cast<const char*>(&v), 8);
          for (const int64_t n : {of->count, of->zeros, of->bad}) all += std::to_string(n) + " ";
        }
    return all;
  };
  ASSERT_EQ(a.points.size(), b.points.size());
  EXPECT_EQ(text(a), text(b));
}

/// Keeps the gradients of a step as backward left them.
struct GradientWitness : TrainingObserver {
  TrainingSession* session = nullptr;
  std::map<std::string, Tensor> gradients;
  void on_backward() override {
    for (const nn::Named& p : session->model().parameters())
      if (const Tensor g = grad_of(p.tensor)) gradients[p.name] = clone(detach(g));
  }
};

struct DistributionsOfRuns : testing_files::SpiralsTest {
  RunInfo run() { return project->run("r"); }
  Distributions read() { return distributions(*project, run().id); }
  size_t parameter(const Distributions& d, const std::string& name) {
    for (size_t i = 0; i < d.parameters.size(); ++i)
      if (d.parameters[i].name == name) return i;
    ADD_FAILURE() << "no parameter " << name;
    return 0;
  }
  /// Every number of every point, against tensors that came another way.
  void expect_true(const Distributions& d) {
    for (const Distributions::Point& p : d.points) {
      const Checkpoint after = state_at(*project, d.id, p.step);
      const std::map<std::string, Tensor> now(after.tensors.begin(), after.tensors.end());
      const auto at = [&](size_t i) { return now.at("model/" + d.parameters[i].name); };
      for (size_t i = 0; i < d.parameters.size(); ++i)
        expect_spread(p.parameters[i].weight, at(i), 1, "weights of " + d.parameters[i].name);
      if (!p.replayed) {
        for (const ParameterSpreads& s : p.parameters) EXPECT_FALSE(s.gradient.any() || s.update.any());
        continue;
      }
      const Checkpoint before = state_at(*project, d.id, p.step - 1);
      const std::map<std::string, Tensor> then(before.tensors.begin(), before.tensors.end());
      GradientWitness witness;
      const auto session = replay_to(*project, d.id, p.step - 1, {});
      witness.session = session.get();
      session->add_observer(&witness);
      session->step();
      double scale = 1;
      if (const auto s = before.state.find("scaler"); s != before.state.end()) scale = s->at("scale").get<double>();
      for (size_t i = 0; i < d.parameters.size(); ++i) {
        const std::string& name = d.parameters[i].name;
        SCOPED_TRACE(name + " at step " + std::to_string(p.step));
        const ParameterSpreads& s = p.parameters[i];
        ASSERT_EQ(s.gradient.any(), witness.gradients.contains(name));
        if (!s.gradient.any()) continue;
        expect_spread(s.gradient, witness.gradients[name], scale, "gradient");
        const Tensor update = zeros(at(i).size(), DType::f32);
        const Tensor x = at(i), y = then.at("model/" + name);
        for (int64_t k = 0; k < update.numel(); ++k) update.data<float>()[k] = x.data<float>()[k] - y.data<float>()[k];
        expect_spread(s.update, update, 1, "update of " + name);
      }
    }
  }
};

TEST(SpreadOfNumbers, quantiles_sums_and_counts_are_those_of_the_sorted_numbers) {
  const auto of = [](const std::vector<float>& numbers) {
    const Tensor t = zeros({static_cast<int64_t>(numbers.size())}, DType::f32);
    std::copy(numbers.begin(), numbers.end(), t.data<float>());
    const Spread s = spread_of(t);
    expect_spread(s, t, 1, "numbers");
    return s;
  };
  std::vector<float> many(1001);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>((i * 379) % 1001);
  EXPECT_FLOAT_EQ(of(many).quantiles[1], 50);
  EXPECT_FLOAT_EQ(of(many).quantiles[5], 950);
  EXPECT_FLOAT_EQ(of({1, 2}).quantiles[3], 1.5f);
  of({7});
  of(std::vector<float>(50, -2.5f));
  const Spread odd = of({NAN, 1, INFINITY, 0, -INFINITY, -3, 0});
  EXPECT_EQ(odd.bad, 3);
  EXPECT_EQ(odd.zeros, 2);
  EXPECT_EQ(odd.quantiles.front(), -3);
  const Spread none = of({NAN, NAN});
  EXPECT_EQ(none.bad, 2);
  EXPECT_EQ(none.norm, 0);
  EXPECT_FALSE(spread_of(Tensor()).any());
}

TEST(SpreadOfNumbers, a_tensor_with_strides_of_its_own_is_its_numbers) {
  const Tensor t = zeros({4, 6}, DType::f64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = 0.5 * static_cast<double>(i);
  const Tensor part = narrow(t, 1, 1, 3);
  expect_spread(spread_of(part), part, 1, "a slice of f64");
}

TEST(SpreadOfNumbers, what_began_at_0_has_no_ratio) {
  ParameterSpreads p;
  p.weight = p.update = spread_of(full({3}, 0.25));
  EXPECT_TRUE(std::isnan(p.ratio())) << "all it is came with this update";
  p.weight = spread_of(full({3}, 25.0));
  EXPECT_NEAR(p.ratio(), 0.01, 1e-9);
}

TEST_F(DistributionsOfRuns, are_those_of_the_tensors_at_each_checkpoint) {
  train("r", {{"checkpoint_every", "7"}}, 33);
  const Distributions d = read();
  EXPECT_EQ(d.run, "r");
  EXPECT_EQ(d.steps, 33);
  ASSERT_GE(d.points.size(), 5u);
  EXPECT_EQ(d.points.size(), d.wanted);
  EXPECT_TRUE(std::is_sorted(d.points.begin(), d.points.end(), [](auto& a, auto& b) { return a.step < b.step; }));
  EXPECT_EQ(d.points.front().step, 1);
  EXPECT_EQ(d.points.back().step, 33);
  EXPECT_FALSE(d.points.back().replayed);
  // Weights without any way of ours: the file's own tensors.
  const Checkpoint end = project->load_checkpoint(project->checkpoints(d.id).back().id);
  for (const auto& [name, t] : end.tensors)
    if (name.starts_with("model/"))
      expect_spread(d.points.back().parameters[parameter(d, name.substr(6))].weight, t, 1, name);
  expect_true(d);
  const auto* last = d.last_replayed();
  ASSERT_TRUE(last);
  // And as the instruments see such a step; where it was clipped, they no longer have what it was before.
  size_t recorded = 0;
  for (const Distributions::Point& p : d.points) {
    if (!p.replayed) continue;
    const auto record = record_step(*project, d.id, p.step);
    for (const auto& t : record->tensors)
      if (t.name.starts_with("grad of ") && t.value) {
        expect_spread(p.parameters[parameter(d, t.name.substr(8))].gradient, t.value, 1, t.name);
        ++recorded;
      }
  }
  EXPECT_GE(recorded, d.parameters.size());
  double squares = 0;
  for (const ParameterSpreads& s : last->parameters) squares += s.gradient.norm * s.gradient.norm;
  const auto norms = project->metric(d.id, "grad_norm");
  EXPECT_NEAR(std::sqrt(squares), norms.at(static_cast<size_t>(last->step) - 1).value, 1e-5);
}

TEST_F(DistributionsOfRuns, have_the_same_bits_on_1_and_2_threads_and_read_again) {
  train("r", {{"checkpoint_every", "10"}}, 40);
  const int threads = num_threads();
  set_num_threads(1);
  const Distributions one = read();
  set_num_threads(2);
  const Distributions two = read();
  set_num_threads(threads);
  expect_same_points(one, two);
}

TEST_F(DistributionsOfRuns, follow_a_recipe_that_changed_on_the_way) {
  train("r", {{"checkpoint_every", "5"}}, 20);
  train("r", {{"optimizer.lr", "0.0001"}, {"optimizer.clip_norm", "0.1"}, {"max_steps", "40"}}, 0, "r");
  ASSERT_EQ(run().changes.size(), 1u);
  const Distributions d = read();
  ASSERT_GT(d.points.size(), 6u);
  expect_true(d);
}

TEST_F(DistributionsOfRuns, of_a_frozen_parameter_are_its_weights_alone) {
  train("r", {{"checkpoint_every", "6"}, {"init.freeze", "*.weight"}}, 18);
  const Distributions d = read();
  expect_true(d);
  for (size_t i = 0; i < d.parameters.size(); ++i)
    for (const auto& p : d.points) {
      const bool frozen = d.parameters[i].name.ends_with(".weight");
      EXPECT_TRUE(p.parameters[i].weight.any());
      EXPECT_EQ(p.parameters[i].update.any(), p.replayed && !frozen) << d.parameters[i].name;
      EXPECT_TRUE(!frozen || std::isnan(p.parameters[i].ratio()));
    }
}

TEST_F(DistributionsOfRuns, of_micro_batches_and_of_half_precision_have_the_gradient_of_the_whole_batch) {
  train("r", {{"checkpoint_every", "6"}, {"data.micro_batches", "3"}, {"amp", "fp16"}, {"amp_scale", "1024"}}, 12);
  const Distributions d = read();
  expect_true(d);
  double squares = 0;
  for (const ParameterSpreads& s : d.points.front().parameters) squares += s.gradient.norm * s.gradient.norm;
  const double told = project->metric(d.id, "grad_norm").front().value;
  EXPECT_NEAR(std::sqrt(squares), told, 1e-4 * told);
}

TEST_F(DistributionsOfRuns, count_what_is_not_finite) {
  train("r", {{"optimizer.lr", "1e30"}, {"on_nan", "continue"}, {"checkpoint_every", "3"}}, 9);
  const Distributions d = read();
  int64_t bad = 0;
  for (const ParameterSpreads& s : d.points.back().parameters) bad += s.weight.bad;
  EXPECT_GT(bad, 0);
  expect_true(d);
}

TEST_F(DistributionsOfRuns, come_coarse_to_fine_from_even_places_and_stop_where_they_are_told) {
  train("r", {{"checkpoint_every", "1"}}, 100);
  std::vector<std::vector<int64_t>> seen;
  std::vector<std::pair<int64_t, int64_t>> told;
  const Distributions d = distributions(
      *project, run().id,
      [&](int64_t done, int64_t total) {
        told.emplace_back(done, total);
        return true;
      },
      [&](const Distributions& so_far) {
        std::vector<int64_t> steps;
        for (const auto& p : so_far.points) steps.push_back(p.step);
        seen.push_back(steps);
      });
  ASSERT_EQ(d.points.size(), Distributions::kMostPoints);
  EXPECT_EQ(d.checkpoints, 101u);
  ASSERT_EQ(seen.size(), d.points.size());
  EXPECT_EQ(seen[0], (std::vector<int64_t>{1}));
  EXPECT_EQ(seen[1], (std::vector<int64_t>{1, 100}));
  ASSERT_EQ(seen[2].size(), 3u);
  EXPECT_NEAR(static_cast<double>(seen[2][1]), 50, 3);
  EXPECT_EQ(told.front(), (std::pair<int64_t, int64_t>{0, 40}));
  for (size_t i = 1; i < d.points.size(); ++i) {
    EXPECT_GE(d.points[i].step - d.points[i - 1].step, 1);
    EXPECT_LE(d.points[i].step - d.points[i - 1].step, 4);
  }
  size_t points = 0;
  try {
    distributions(
        *project, run().id, [&](int64_t done, int64_t) { return done < 5; },
        [&](const Distributions& so_far) { points = so_far.points.size(); });
    ADD_FAILURE() << "it went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "cancelled");
  }
  EXPECT_EQ(points, 5u);
}

TEST_F(DistributionsOfRuns, without_a_checkpoint_say_so) {
  train("r", {}, 3);
  for (const CheckpointInfo& c : project->checkpoints(run().id)) project->delete_checkpoint(c.id);
  try {
    read();
    ADD_FAILURE() << "of what?";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("run r has no checkpoint"), std::string::npos) << e.message();
    EXPECT_FALSE(e.hint().empty());
  }
}

TEST(EffectiveRank, counts_the_directions_that_are_used) {
  const auto filled = [](const Shape& size, const std::function<double(int64_t, int64_t)>& f) {
    Tensor t = empty(size);
    const int64_t columns = t.numel() / t.size(0);
    for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(f(i / columns, i % columns));
    return t;
  };
  EXPECT_NEAR(effective_rank(filled({6, 6}, [](int64_t i, int64_t j) { return i == j ? 2 : 0; })), 6, 1e-6);
  EXPECT_NEAR(effective_rank(filled({6, 3}, [](int64_t i, int64_t j) { return i == j ? 2 : 0; })), 3, 1e-6);
  const auto one = [](int64_t i, int64_t j) { return static_cast<double>((i + 1) * (j - 2)); };
  EXPECT_NEAR(effective_rank(filled({5, 2, 3, 3}, one)), 1, 1e-3) << "a filter is a row";
  // Singular values 3 and 1: shares 3/4 and 1/4.
  const double entropy = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  EXPECT_NEAR(effective_rank(filled({2, 2}, [](int64_t i, int64_t j) { return i != j ? 0
                                                                              : i    ? 1
                                                                                     : 3; })),
              std::exp(entropy), 1e-6);
  EXPECT_TRUE(std::isnan(effective_rank(zeros({4, 4}))));
  EXPECT_TRUE(std::isnan(effective_rank(ones({4}))));
  EXPECT_TRUE(std::isnan(effective_rank(ones({4, 4}), 3)));
  EXPECT_TRUE(std::isnan(effective_rank(filled({2, 2}, [](int64_t i, int64_t) { return i ? NAN : 1; }))));
}

TEST_F(DistributionsOfRuns, hold_two_successive_gradients_against_each_other) {
  train("a", {{"checkpoint_every", "7"}, {"data.batch_size", "25"}}, 30);
  const RunInfo run = project->run("a");
  const Distributions d = distributions(*project, run.id);
  for (const Distributions::Point& p : d.points) {
    if (!p.replayed || p.step == run.steps) {
      EXPECT_TRUE(std::isnan(p.cosine)) << "there is no next step behind " << p.step;
      continue;
    }
    const auto session = replay_to(*project, run.id, p.step - 1, {});
    GradientWitness one, two;
    one.session = two.session = session.get();
    session->add_observer(&one);
    const StepResult r = replay_step(*session);
    session->remove_observer(&one);
    session->add_observer(&two);
    session->step();
    session->remove_observer(&two);
    double dot = 0, a = 0, b = 0;
    for (size_t i = 0; i < d.parameters.size(); ++i) {
      double dot_i = 0, a_i = 0, b_i = 0;
      const Tensor x = contiguous(one.gradients.at(d.parameters[i].name)),
                   y = contiguous(two.gradients.at(d.parameters[i].name));
      for (int64_t k = 0; k < x.numel(); ++k) {
        const double u = x.data<float>()[k], v = y.data<float>()[k];
        dot_i += u * v, a_i += u * u, b_i += v * v;
      }
      EXPECT_NEAR(p.parameters[i].cosine, dot_i / std::sqrt(a_i * b_i), 1e-9) << d.parameters[i].name;
      dot += dot_i, a += a_i, b += b_i;
    }
    EXPECT_NEAR(p.cosine, dot / std::sqrt(a * b), 1e-9);
    EXPECT_EQ(p.noise.pairs, 1);
    EXPECT_NEAR(p.noise.signal, dot, 1e-12);
    EXPECT_NEAR(p.noise.variance, (a + b - 2 * dot) / 2 * static_cast<double>(r.samples), 1e-9);
  }
  EXPECT_GT(d.noise().pairs, 3);
  for (size_t i = 0; i < d.parameters.size(); ++i) {
    const double rank = d.last_rank(i);
    if (d.parameters[i].name.ends_with("bias"))
      EXPECT_TRUE(std::isnan(rank));
    else
      EXPECT_TRUE(rank >= 1 && rank <= 64) << d.parameters[i].name << ": " << rank;
  }
}

TEST(GradientNoise, sums_of_pairs_are_divided) {
  GradientNoise n;
  EXPECT_TRUE(std::isnan(n.scale()));
  n += {100, 2, 1};
  n += {300, -1, 1};
  EXPECT_DOUBLE_EQ(n.scale(), 400);
  n += {0, -5, 1};
  EXPECT_TRUE(std::isinf(n.scale()));
}

}  // namespace
}  // namespace tenon::projects
