// Learning from a teacher: a run of the project, of another one, or an ONNX file; what a replay needs of it.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "projects/copy.h"
#include "projects/finish.h"
#include "projects/teacher_file.h"
#include "tests/messages.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

using testing_files::KeyValues;

struct Distilled : testing_files::SpiralsTest {
  void SetUp() override {
    SpiralsTest::SetUp();
    train("big", {}, 60);
  }
  std::string digest_of(const std::string& run) {
    const RunInfo r = project->run(run);
    return digest_at(*project, r.id, r.steps);
  }
};

TEST_F(Distilled, one_teacher_from_three_places) {
  export_run(*project, project->run("big"), 60, ExportFormat::onnx, dir / "big.onnx", false);
  copy_project(dir / "a.tenon", dir / "other.tenon");
  train("alone", {}, 20);
  train("of_run", {{"distill.from", "big@60"}}, 20);
  train("of_file", {{"distill.from", (dir / "other.tenon") + ":big@last"}}, 20);
  train("of_onnx", {{"distill.from", dir / "big.onnx"}}, 20);
  const auto losses = [&](const char* run) {
    std::vector<double> v;
    for (const MetricPoint& p : project->metric(project->run(run).id, "loss")) v.push_back(p.value);
    return v;
  };
  EXPECT_EQ(losses("of_run"), losses("of_file"));
  EXPECT_NE(losses("of_run"), losses("alone"));
  const auto a = losses("of_run"), b = losses("of_onnx");
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4);
}

TEST_F(Distilled, a_replay_needs_no_file_and_has_no_other_teacher) {
  const std::string other = dir / "other.tenon";
  copy_project(dir / "a.tenon", other);
  train("student", {{"distill.from", other}, {"checkpoint_every", "8"}}, 20);
  const RunInfo run = project->run("student");
  const std::string kept = digest_of("student");
  const Recipe recipe = Recipe::from_json(run.recipe);
  EXPECT_EQ(recipe.text("distill.sha256").size(), 64u);
  std::filesystem::remove(other);
  EXPECT_EQ(digest_at(*project, run.id, 20, 1), kept);
  // From its first state, every step again.
  for (const CheckpointInfo& c : project->checkpoints(run.id))
    if (c.step > 0) project->delete_checkpoint(c.id);
  EXPECT_EQ(digest_at(*project, run.id, 20), kept);
  // A branch has its parent's teacher.
  TrainOptions o;
  o.from = "student", o.from_step = 10;
  auto d = RunDriver::start(project, o);
  d->wait();
  ASSERT_EQ(d->status().state, RunStatus::State::finished) << d->status().error;
  EXPECT_EQ(digest_at(*project, d->status().run, 20), kept);
}

TEST_F(Distilled, a_teacher_that_is_not_there_is_named) {
  const auto error = [&](const KeyValues& set) {
    TrainOptions o;
    o.max_steps = 2;
    o.set = set;
    return testing_words::error_of([&] { RunDriver::start(project, o)->wait(); });
  };
  EXPECT_NE(error({{"distill.from", "bug@60"}}).find("distill.from = bug@60"), std::string::npos);
  EXPECT_NE(error({{"distill.from", dir / "none.onnx"}}).find("none.onnx"), std::string::npos);
  EXPECT_NE(error({{"distill.from", "big"}, {"distill.sha256", std::string(64, '0')}}).find("distill.sha256"),
            std::string::npos);
  EXPECT_EQ(project->runs().size(), 1u);
}

}  // namespace
}  // namespace tenon::projects
