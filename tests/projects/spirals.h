#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/templates/templates.h"
#include "projects/run_driver.h"
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

}  // namespace tenon::projects::testing_files
