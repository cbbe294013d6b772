// A teacher: what a student loses to it, and that it goes with the checkpoints.
#include "engine/train/teacher.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/nn/module.h"
#include "engine/ops/create.h"
#include "engine/train/task.h"
#include "tests/engine/files.h"
#include "tests/engine/sessions.h"

namespace tenon::teacher_tests {
namespace {

using namespace testing_sessions;
using testing_files::error_of;
using I = int64_t;

ModelSpec big_model(I outputs = 2) {
  return Chain("big", {2})
      .add("a", "Linear", {{"out_features", I{24}}})
      .add("drop", "Dropout")
      .add("bn", "BatchNorm1d")
      .add("act", "ReLU")
      .add("b", "Linear", {{"out_features", outputs}})
      .done();
}
std::unique_ptr<Teacher> teacher_of(const ModelSpec& spec, uint64_t seed = 5) {
  GraphModule m(spec);
  m.initialize(seed);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const nn::Named& n : m.state_dict()) tensors.emplace_back(n.name, n.tensor);
  return std::make_unique<Teacher>(spec, std::move(tensors), Device{});
}
Recipe taught(const Settings& set = {}) {
  return with(spirals({{"data.batch_size", "16"}, {"epochs", "4"}, {"distill.from", "big"}}), set);
}

TEST(Teacher, the_distance_is_the_formula) {
  TrainingSession s(tanh_model(), taught());
  Meta two = s.train_data().input();
  const Task task(taught(), s.train_data(), two, two);
  Tensor student = zeros({2, 2}), teacher = zeros({2, 2});
  const double x[2][2] = {{0.5, -1}, {2, 0.25}}, t[2][2] = {{1, 3}, {-2, 0.5}}, T = 3;
  double expected = 0;
  for (int i = 0; i < 2; ++i) {
    double zx = 0, zt = 0;
    for (int k = 0; k < 2; ++k) {
      student.data<float>()[i * 2 + k] = static_cast<float>(x[i][k]);
      teacher.data<float>()[i * 2 + k] = static_cast<float>(t[i][k]);
      zx += std::exp(x[i][k] / T), zt += std::exp(t[i][k] / T);
    }
    for (int k = 0; k < 2; ++k) {
      const double p = std::exp(t[i][k] / T) / zt, q = std::exp(x[i][k] / T) / zx;
      expected += p * (std::log(p) - std::log(q)) * T * T / 2;
    }
  }
  EXPECT_NEAR(item(task.distance(student, teacher, T)), expected, 1e-6);
  EXPECT_NEAR(item(task.distance(teacher, teacher, T)), 0, 1e-7);
}

TEST(Teacher, shares_the_loss_and_is_not_changed) {
  TrainingSession plain(tanh_model(), taught({{"distill.from", ""}})),
      none(tanh_model(), taught({{"distill.weight", "0"}})), all(tanh_model(), taught({{"distill.weight", "1"}})),
      half(tanh_model(), taught({{"distill.weight", "0.5"}}));
  for (TrainingSession* s : {&none, &all, &half}) s->learn_from(teacher_of(big_model()));
  const Checkpoint before = half.save();
  const double a = plain.step().loss, b = all.step().loss, c = half.step().loss;
  EXPECT_EQ(none.step().loss, a);
  EXPECT_NEAR(c, (a + b) / 2, 1e-6);
  EXPECT_NE(a, b);
  run(half, 10);
  const Checkpoint after = half.save();
  I compared = 0;
  std::vector<char> x, y;
  for (size_t i = 0; i < after.tensors.size(); ++i)
    if (Teacher::owns(after.tensors[i].first)) {
      EXPECT_EQ(logical_bytes(before.tensors[i].second, x), logical_bytes(after.tensors[i].second, y));
      ++compared;
    }
  EXPECT_EQ(compared, 4 + 4) << "weights, biases, and what the norm has";
}

TEST(Teacher, goes_with_the_checkpoint_and_no_other_file_is_needed) {
  const Recipe r = taught({{"data.micro_batches", "2"}, {"distill.temperature", "2"}});
  TrainingSession through(tanh_model(), r);
  through.learn_from(teacher_of(big_model()));
  run(through, 20);
  TrainingSession a(tanh_model(), r), b(tanh_model(), r), child(tanh_model(), r);
  a.learn_from(teacher_of(big_model()));
  run(a, 7);
  EXPECT_TRUE(b.lacks_teacher());
  b.load(a.save());
  EXPECT_FALSE(b.lacks_teacher());
  run(b, 13);
  expect_same(b.save(), through.save());
  child.branch(a.save(), r);
  run(child, 13);
  expect_same(child.save(), through.save());
}

TEST(Teacher, what_does_not_fit_is_said) {
  TrainingSession s(tanh_model(), taught());
  EXPECT_NE(error_of([&] { s.step(); }).find("the teacher that distill.from = big names is not there"),
            std::string::npos);
  EXPECT_NE(error_of([&] { s.learn_from(teacher_of(big_model(3))); }).find("the teacher gives [3]"), std::string::npos);
  TrainingSession values(Chain("values", {2}).add("fc", "Linear", {{"out_features", I{2}}}).done(),
                         taught({{"data.target", "input"}, {"loss.type", "mse"}}));
  EXPECT_NE(error_of([&] { values.learn_from(teacher_of(big_model())); }).find("is for tasks with classes"),
            std::string::npos);
  TrainingSession plain(tanh_model(), taught({{"distill.from", ""}}));
  s.learn_from(teacher_of(big_model()));
  EXPECT_THROW(plain.load(s.save()), Error);
  EXPECT_THROW(s.load(plain.save()), Error);
}

}  // namespace
}  // namespace tenon::teacher_tests
