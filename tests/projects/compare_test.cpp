// Two of one kind compared: models as findings, the checkpoints of a project, and what cannot be compared.
#include "projects/compare.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/formats/safetensors.h"
#include "tests/messages.h"
#include "tests/projects/project_files.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::projects {
namespace {

using testing_files::small_model;
using testing_files::small_recipe;
using testing_files::TempDir;

Tensor counted_up(const Shape& shape, float first) {
  Tensor t = empty(shape, DType::f32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = first + static_cast<float>(i);
  return t;
}

struct Compared : ::testing::Test {
  std::shared_ptr<const formats::ModelFile> saved(const std::string& name, const formats::NamedTensors& tensors) {
    formats::save_safetensors(dir / name, tensors);
    return formats::ModelFile::open(dir / name);
  }
  template <class T>
  T fact(const tracing::Finding& f, const std::string& name) {
    for (const auto& x : f.facts)
      if (x.name == name) return std::get<T>(x.value);
    ADD_FAILURE() << "no fact " << name;
    return T();
  }
  TempDir dir;
};

TEST_F(Compared, models_say_which_weights_changed_and_where_most) {
  Tensor moved = counted_up({2, 3}, 0);
  moved.data<float>()[5] = 9;
  const auto a = saved(
                 "a.safetensors",
                 {{"fc.weight", counted_up({2, 3}, 0)}, {"fc.bias", counted_up({3}, 1)}, {"old", counted_up({2}, 0)}}),
             b = saved("b.safetensors", {{"fc.weight", moved}, {"fc.bias", counted_up({3}, 1)}});
  const Comparison c = compare({.model = a}, {.model = b}, 100);
  EXPECT_EQ(c.flames, nullptr);
  EXPECT_EQ(fact<int64_t>(c.finding, "changed"), 1);
  EXPECT_EQ(fact<int64_t>(c.finding, "same"), 1);
  EXPECT_EQ(fact<int64_t>(c.finding, "only_a"), 1);
  EXPECT_EQ(fact<double>(c.finding, "norm"), 4);
  EXPECT_NE(c.finding.sentence.find("1 of 2 tensors differ"), std::string::npos) << c.finding.sentence;
  EXPECT_NE(c.finding.sentence.find("fc.weight"), std::string::npos) << c.finding.sentence;
  const tracing::Table& weights = c.finding.tables.at(0);
  ASSERT_EQ(weights.rows.size(), 2u);
  EXPECT_EQ(std::get<std::string>(weights.rows[0][0]), "fc.weight") << "what changed most stands first";
  EXPECT_EQ(std::get<std::string>(weights.rows[0][5]), "[1, 2]");
  EXPECT_EQ(std::get<double>(weights.rows[0][6]), 5);
  EXPECT_EQ(std::get<double>(weights.rows[0][7]), 9);
  EXPECT_EQ(std::get<std::string>(weights.rows[1][11]), "equal");
  EXPECT_EQ(weights.sights[0].tensor, "fc.weight");
  EXPECT_EQ(weights.others[0].tensor, "fc.weight");
  const tracing::Table& tensors = c.finding.tables.at(1);
  EXPECT_EQ(std::get<std::string>(tensors.rows.at(0)[1]), "only in A");
  EXPECT_EQ(tensors.others[0].tensor, "");
  const Comparison same = compare({.model = a}, {.model = a}, 100);
  EXPECT_NE(same.finding.sentence.find("All 3 tensors"), std::string::npos) << same.finding.sentence;
}

TEST_F(Compared, what_became_nan_comes_before_every_number) {
  Tensor odd = counted_up({4}, 1), far = counted_up({4}, 1000);
  odd.data<float>()[2] = NAN;
  const auto a = saved("a.safetensors", {{"far", counted_up({4}, 1)}, {"odd", counted_up({4}, 1)}}),
             b = saved("b.safetensors", {{"far", far}, {"odd", odd}});
  const tracing::Finding f = compare_models(*a, *b, 1);
  ASSERT_EQ(f.tables.at(0).rows.size(), 1u);
  EXPECT_EQ(std::get<std::string>(f.tables[0].rows[0][0]), "odd");
  EXPECT_EQ(std::get<std::string>(f.tables[0].rows[0][5]), "[2]");
  EXPECT_NE(f.sentence.find("1 value that is not finite in A or in B, the first that changed at [2]"),
            std::string::npos)
      << f.sentence;
}

TEST_F(Compared, a_checkpoint_counts_as_the_file_of_its_weights) {
  const auto project = Project::create(dir / "a.tenon", small_model(), small_recipe());
  const int64_t run = project->new_run("r", project->model(), project->recipe(), 100).id;
  for (int64_t step : {5, 9}) {
    Checkpoint c;
    c.step = step;
    c.tensors = {{"model/fc.weight", counted_up({2, 3}, static_cast<float>(step))},
                 {"optimizer/fc.weight/exp_avg", counted_up({2, 3}, 0)}};
    c.state = {{"step", step}};
    project->save_checkpoint(run, c);
  }
  const auto a = weights_after(*project, run, 5), b = weights_after(*project, run, 9);
  ASSERT_EQ(a->tensors.size(), 1u) << "the optimizer's are no weights";
  EXPECT_EQ(a->tensors[0].name, "fc.weight");
  EXPECT_NE(a->path.find("a.tenon@r@5"), std::string::npos) << a->path;
  const tracing::Finding f = compare_models(*a, *b, 10);
  EXPECT_EQ(fact<int64_t>(f, "elements_changed"), 6);
  EXPECT_EQ(std::get<double>(f.tables.at(0).rows.at(0)[4]), 4);
  // And with a file.
  const auto file = saved("f.safetensors", {{"fc.weight", counted_up({2, 3}, 5)}});
  EXPECT_EQ(fact<int64_t>(compare_models(*a, *file, 10), "same"), 1);
}

TEST_F(Compared, two_kinds_have_nothing_to_be_compared_by) {
  const auto m = saved("a.safetensors", {{"w", counted_up({2}, 0)}});
  const std::string message = testing_words::message_of(
      [&] { compare({.model = m}, {.trace = traces::parse_trace(R"({"traceEvents": []})")}, 10); });
  EXPECT_NE(message.find("A is a model and B is a trace"), std::string::npos) << message;
}

}  // namespace
}  // namespace tenon::projects
