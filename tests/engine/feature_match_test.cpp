// What layers inside a teacher give: how far a student's are from it, what a step of that teaches, what cannot be
// asked.
#include "engine/train/feature_match.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "engine/ops/create.h"
#include "engine/train/watch.h"
#include "tests/engine/files.h"
#include "tests/engine/sessions.h"

namespace tenon::feature_match_tests {
namespace {

using namespace testing_sessions;
using testing_files::error_of;
using I = int64_t;

ModelSpec two_layers(const char* name, I width) {
  return Chain(name, {2})
      .add("stage", "Linear", {{"out_features", width}})
      .add("act", "Tanh")
      .add("head", "Linear", {{"out_features", I{2}}})
      .done();
}
std::unique_ptr<Teacher> wide_teacher(I width) {
  const ModelSpec spec = two_layers("teacher", width);
  GraphModule m(spec);
  m.initialize(5);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const nn::Named& n : m.state_dict()) tensors.emplace_back(n.name, n.tensor);
  return std::make_unique<Teacher>(spec, std::move(tensors), Device{});
}
Recipe features(const Settings& set) {
  return with(spirals({{"data.batch_size", "16"}, {"epochs", "4"}, {"distill.from", "big"}}), set);
}

/// Both models on the same batch; the distance of their layers.
double distance_of(const Settings& set, I mine, I theirs, const Tensor& x, std::vector<Tensor>* outputs = nullptr) {
  const NoGrad off;
  const ModelSpec spec = two_layers("student", mine);
  const auto student = std::make_shared<GraphModule>(spec);
  student->initialize(9);
  const auto teacher = wide_teacher(theirs);
  LayerOutputs a(student, {"act"}, "the model"), b(teacher->model(), {"act"}, "the teacher");
  FeatureMatch match(features(set), spec, student, *teacher);
  a.keep(true), b.keep(true);
  match.begin();
  (*student)(x);
  (*teacher)(x);
  if (outputs) *outputs = {a.take().at(0), b.take().at(0)};
  return item(match.distance());
}

TEST(FeatureMatch, distances_are_their_formulas) {
  const Tensor x = empty({3, 2});
  for (I i = 0; i < 6; ++i) x.data<float>()[i] = static_cast<float>(std::sin(1.0 + static_cast<double>(i)));
  std::vector<Tensor> out;
  const double values = distance_of({{"distill.features", "act"}}, 4, 4, x, &out);
  double expected = 0;
  for (I i = 0; i < 12; ++i) {
    const double d = out[0].data<float>()[i] - out[1].data<float>()[i];
    expected += d * d / 12;
  }
  EXPECT_NEAR(values, expected, 1e-6);
  EXPECT_GT(values, 1e-3);

  const double similar =
      distance_of({{"distill.features", "act"}, {"distill.features_by", "similarity"}}, 3, 5, x, &out);
  double rows[2][3][3];
  for (int m = 0; m < 2; ++m) {
    const I width = out[static_cast<size_t>(m)].size(1);
    const float* v = out[static_cast<size_t>(m)].data<float>();
    for (I i = 0; i < 3; ++i) {
      double squares = 0;
      for (I j = 0; j < 3; ++j) {
        rows[m][i][j] = 0;
        for (I k = 0; k < width; ++k) rows[m][i][j] += static_cast<double>(v[i * width + k]) * v[j * width + k];
        squares += rows[m][i][j] * rows[m][i][j];
      }
      for (I j = 0; j < 3; ++j) rows[m][i][j] /= std::sqrt(squares);
    }
  }
  expected = 0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) expected += std::pow(rows[0][i][j] - rows[1][i][j], 2) / 9;
  EXPECT_NEAR(similar, expected, 1e-6);
  EXPECT_GT(similar, 1e-4);
}

TEST(FeatureMatch, joins_the_loss_with_its_weight_and_is_told_by_itself) {
  const Settings base = {{"distill.features", "stage=stage"}, {"distill.weight", "0"}, {"optimizer.lr", "0.02"}};
  TrainingSession plain(two_layers("s", 6), features({{"distill.weight", "0"}})),
      once(two_layers("s", 6), features(base)),
      much(two_layers("s", 6), with(features(base), {{"distill.features_weight", "10"}})),
      parts(two_layers("s", 6), with(features(base), {{"data.micro_batches", "4"}}));
  for (TrainingSession* s : {&plain, &once, &much, &parts}) s->learn_from(wide_teacher(6));
  EXPECT_EQ(once.loss_ahead(), once.loss_ahead());
  const double ahead = once.loss_ahead();
  const StepResult a = plain.step(), b = once.step(), c = much.step(), d = parts.step();
  EXPECT_TRUE(std::isnan(a.feature_loss));
  EXPECT_FALSE(std::isnan(a.teacher_loss));
  EXPECT_GT(b.feature_loss, 0);
  EXPECT_NEAR(ahead, b.loss, 1e-6);
  EXPECT_NEAR(b.loss, a.loss + b.feature_loss, 1e-5);
  EXPECT_NEAR(c.loss, a.loss + 10 * b.feature_loss, 1e-4);
  EXPECT_NEAR(d.feature_loss, b.feature_loss, 1e-5);
  const auto told = step_metrics(b, false);
  EXPECT_TRUE(std::any_of(told.begin(), told.end(), [](const auto& m) { return m.first == "feature_loss"; }));
  // It falls while it is learnt, and of an evaluation nothing is kept that the next step would take.
  run(much, 30);
  much.evaluate();
  EXPECT_LT(much.step().feature_loss, 0.5 * c.feature_loss);
}

TEST(FeatureMatch, a_run_that_goes_on_has_the_same_bits) {
  const Recipe r = features({{"distill.features", "act"}, {"distill.features_by", "similarity"}});
  TrainingSession through(two_layers("s", 3), r), a(two_layers("s", 3), r), b(two_layers("s", 3), r);
  through.learn_from(wide_teacher(7));
  a.learn_from(wide_teacher(7));
  run(through, 20);
  run(a, 7);
  b.load(a.save());
  run(b, 13);
  expect_same(b.save(), through.save());
}

TEST(FeatureMatch, what_cannot_be_compared_is_said) {
  const auto said = [](const Settings& set) {
    TrainingSession s(two_layers("s", 3), features(set));
    return error_of([&] { s.learn_from(wide_teacher(7)); });
  };
  EXPECT_NE(said({{"distill.features", "stagge"}}).find("the model has no layer stagge"), std::string::npos);
  EXPECT_NE(said({{"distill.features", "act=actt"}}).find("the teacher has no layer actt"), std::string::npos);
  EXPECT_NE(said({{"distill.features", "act"}}).find("the student gives [2, 3], the teacher [2, 7]"),
            std::string::npos);
  EXPECT_NE(said({{"distill.features", "act="}}).find("\"act=\" is no pair of layers"), std::string::npos);
  EXPECT_NE(said({{"distill.features", "head"}, {"recompute", "2"}}).find("recompute = 2"), std::string::npos);
  EXPECT_EQ(said({{"distill.features", "head; act=act"}, {"distill.features_by", "similarity"}}), "no error");
}

}  // namespace
}  // namespace tenon::feature_match_tests
