#include "views/project/project_model.h"

#include <gtest/gtest.h>

#include "projects/run_driver.h"
#include "views/details/details_model.h"
#include "views/shared/project_contents.h"

namespace tenon::views {
namespace {

using projects::RunStatus;

ProjectContents one_run() {
  ProjectContents c;
  projects::RunInfo r;
  r.id = 7;
  r.name = "fashion-cnn-03";
  r.status = "running";  // as the file has it
  r.steps = 0;
  r.total_steps = 2814;
  c.runs.push_back(r);
  c.checkpoints.emplace_back();
  return c;
}
RunStatus status(RunStatus::State state, int64_t step) {
  RunStatus s;
  s.run = 7;
  s.state = state;
  s.step = step;
  s.total_steps = 2814;
  return s;
}
std::string detail_of(const Details& d, const std::string& name) {
  for (const auto& section : d.sections)
    for (const auto& row : section.rows)
      if (row.name == name) return row.value;
  return {};
}

TEST(Project, ARunThatIsPausedIsCalledSoEverywhere) {
  ProjectContents c = one_run();
  c.follow(status(RunStatus::State::paused, 80));
  const auto tree = ProjectModel::tree(c);
  const auto& run = tree[1].children[0];
  EXPECT_EQ(run.note, "paused  2.8 %");
  EXPECT_EQ(run.brief, "2.8 %") << "what stays of it in a narrow window; its icon says the rest";
  EXPECT_EQ(run.icon, "pause");
  EXPECT_NE(run.tip.find("paused, step 80 of 2,814"), std::string::npos) << run.tip;
  DetailsSources from;
  from.project = &c;
  const Details d = details_of(Selection::run(7), from);
  EXPECT_EQ(detail_of(d, "status"), "paused");
  EXPECT_EQ(detail_of(d, "steps"), "80 of 2,814");
  c.follow(status(RunStatus::State::running, 81));
  EXPECT_EQ(ProjectModel::tree(c)[1].children[0].note, "2.9 %");
  EXPECT_EQ(ProjectModel::tree(c)[1].children[0].icon, "run");
}

/// What is beside a narrow column's head is cut: no figure may be.
TEST(Project, ARunsBestIsAFigureAndAStepToGoTo) {
  ProjectContents c = one_run();
  c.runs[0].best = {{"metric", "test_accuracy"}, {"value", 0.9167}, {"step", 1876}};
  c.runs[0].created = "2026-11-27T18:58:02Z";
  DetailsSources from;
  from.project = &c;
  const Details d = details_of(Selection::run(7), from);
  EXPECT_EQ(detail_of(d, "best test_accuracy"), "91.67 %");
  EXPECT_EQ(detail_of(d, "best at step"), "1,876");
  EXPECT_EQ(detail_of(d, "created"), "2026-11-27 18:58");
  for (const auto& row : d.sections[0].rows)
    if (row.name == "best at step") {
      EXPECT_TRUE(row.link.same(Selection::step(1876)));
    }
}

TEST(Project, AStatusOfAnotherRunChangesNothing) {
  ProjectContents c = one_run();
  RunStatus other = status(RunStatus::State::failed, 12);
  other.run = 8;
  c.follow(other);
  EXPECT_EQ(c.runs[0].status, "running");
  EXPECT_EQ(c.runs[0].steps, 0);
}

}  // namespace
}  // namespace tenon::views
