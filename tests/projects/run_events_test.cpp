// What a run did on its way: told while it trains, kept through the file, dropped with its steps and written again, and
// none in older files.
#include <gtest/gtest.h>

#include "projects/run_driver.h"
#include "tests/messages.h"
#include "tests/projects/old_versions.h"
#include "tests/projects/spirals.h"

namespace tenon::projects {
namespace {

struct RunEvents : testing_files::SpiralsTest {
  std::vector<RunEvent> events(const std::string& run) { return project->events(project->run(run).id); }
};

TEST_F(RunEvents, plans_are_told_while_the_run_trains_and_kept) {
  TrainOptions o;
  o.run_name = "fast";
  o.max_steps = 20;
  o.set = {{"compile", "true"}};
  auto driver = RunDriver::start(project, o);
  driver->wait();
  std::vector<RunEvent> told, again;
  driver->drain(told);
  driver->drain(again);
  EXPECT_TRUE(again.empty());
  driver.reset();
  const std::vector<RunEvent> kept = events("fast");
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(kept, told);
  EXPECT_EQ(kept[0].step, 3) << "two steps are traced, the third proves the plan";
  EXPECT_EQ(kept[0].kind, "plan");
  EXPECT_SAYS(kept[0].text, "come from a plan of ");
  train("plain", {{"compile", "false"}}, 20);
  EXPECT_TRUE(events("plain").empty()) << "nothing is planned there";
  const std::string path = project->path();
  project.reset();
  project = Project::open(path);
  EXPECT_EQ(events("fast"), kept);
  // Added again, as after a kill, they are no more.
  project->append_events(project->run("fast").id, kept);
  EXPECT_EQ(events("fast"), kept);
}

TEST_F(RunEvents, what_cannot_be_planned_is_an_event_with_its_reason) {
  train("parts", {{"compile", "true"}, {"data.micro_batches", "2"}}, 8);
  const std::vector<RunEvent> all = events("parts");
  ASSERT_GE(all.size(), 1u);
  EXPECT_EQ(all[0].step, 1);
  EXPECT_SAYS(all[0].text, "some steps run op by op: data.micro_batches adds gradients up");
  int steps = 0;
  for (const RunEvent& e : all) steps += e.text.find("some steps") != std::string::npos;
  EXPECT_EQ(steps, 1) << "a reason is told once";
}

TEST_F(RunEvents, they_go_with_the_steps_and_come_again_with_them) {
  train("r", {{"compile", "true"}, {"checkpoint_every", "2"}}, 12);
  const std::vector<RunEvent> before = events("r");
  ASSERT_FALSE(before.empty());
  const int64_t run = project->run("r").id;
  project->truncate_metrics(run, 2);
  EXPECT_TRUE(events("r").empty());
  project->append_events(run, before);
  train("", {{"max_steps", "20"}}, 0, "r");
  const std::vector<RunEvent> after = events("r");
  ASSERT_GT(after.size(), before.size()) << "a resumed run traces and proves anew";
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
  EXPECT_EQ(after[before.size()].step, 15);
  project->delete_runs({run});
  EXPECT_EQ(project->events(run), after) << "they come back with their run";
}

TEST_F(RunEvents, a_file_of_before_has_none_and_takes_them) {
  testing_files::make_version_1(dir / "old.tenon");
  EXPECT_TRUE(Project::open(dir / "old.tenon", true)->events(1).empty());
  const auto old = Project::open(dir / "old.tenon");
  const RunEvent e{4, "plan", "batches run op by op"};
  old->append_events(old->run("old").id, {e});
  EXPECT_EQ(old->events(old->run("old").id), std::vector{e});
}

}  // namespace
}  // namespace tenon::projects
