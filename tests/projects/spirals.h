#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/templates/templates.h"
#include "projects/run_driver.h"
#include "projects/time_travel.h"
#include "tests/projects/project_files.h"

namespace tenon::projects::testing_files {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

/// A project of the template that needs no files.
inline std::shared_ptr<Project> spirals(const std::string& path) {
  const Template& t = find_template("spirals");
  return Project::create(path, t.model, t.recipe.to_json());
}

/// A test in such a project.
struct SpiralsTest : ::testing::Test {
  TempDir dir;
  std::shared_ptr<Project> project;
  void SetUp() override { project = spirals(dir / "a.tenon"); }
  /// A new run of so many steps, or one that is gone on with, to its end.
  void train(const std::string& name, const KeyValues& set, int64_t steps, const std::string& resume = {}) {
    TrainOptions o;
    if (resume.empty())
      o.run_name = name, o.max_steps = steps;
    else
      o.resume = resume;
    o.set = set;
    auto d = RunDriver::start(project, o);
    d->wait();
    ASSERT_EQ(d->status().state, RunStatus::State::finished) << d->status().error;
  }
};

/// A test of branches of a run of 60 steps, "parent".
struct BranchesTest : SpiralsTest {
  void SetUp() override {
    SpiralsTest::SetUp();
    train("parent", {{"data.samples", "200"}, {"data.batch_size", "10"}, {"checkpoint_every", "15"}}, 60);
  }
  static TrainOptions from(const std::string& run, int64_t step, const KeyValues& set = {}) {
    TrainOptions o;
    o.from = run;
    o.from_step = step;
    o.set = set;
    return o;
  }
  /// Trained to its end.
  RunInfo branch(const TrainOptions& options) {
    auto d = RunDriver::start(project, options);
    d->wait();
    EXPECT_EQ(d->status().state, RunStatus::State::finished) << d->status().error;
    return project->run(d->status().run);
  }
  std::string digest_of(const RunInfo& run, int64_t step, int threads = 0) {
    return digest_at(*project, run.id, step, threads);
  }
};

}  // namespace tenon::projects::testing_files
