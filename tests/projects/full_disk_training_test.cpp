// Training that finds the disk full is held for as long as it is full, and is the run that was never held.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <thread>
#include <tuple>

#include "core/disk.h"
#include "core/error.h"
#include "engine/templates/templates.h"
#include "projects/run_driver.h"
#include "projects/time_travel.h"
#include "tests/projects/spirals.h"
#include "tests/small_disk.h"

namespace tenon::projects {
namespace {

using small_disk::drain;
using small_disk::fill;
using testing_files::no_space_of;
using testing_files::spirals;
using testing_files::TempDir;
using State = RunStatus::State;

/// Where and how long it was trained is no part of a run: everything else of its metrics is.
std::vector<std::tuple<std::string, int64_t, double>> points(Project& project, const std::string& run) {
  std::vector<std::tuple<std::string, int64_t, double>> out;
  const int64_t id = project.run(run).id;
  for (const std::string& name : project.metric_names(id))
    if (name != "samples_per_second" && name != "memory_bytes")
      for (const MetricPoint& p : project.metric(id, name)) out.emplace_back(name, p.step, p.value);
  return out;
}

constexpr int64_t kSteps = 1000;

TrainOptions options() {
  TrainOptions o;
  o.run_name = "r";
  o.max_steps = kSteps;
  o.set = {{"data.batch_size", "10"}, {"checkpoint_every", "25"}};
  return o;
}

/// Waits for something that comes by itself while a run is alive.
void until(const RunDriver& d, const std::function<bool(const RunStatus&)>& seen) {
  for (RunStatus s = d.status(); !seen(s); s = d.status()) {
    ASSERT_TRUE(s.state == State::starting || s.state == State::running || s.state == State::paused) << s.error;
    std::this_thread::yield();
  }
}
bool blocked(const RunStatus& s) { return !s.blocked.empty(); }

/// A run on a disk of its own, held because that is full, and the same run undisturbed elsewhere.
struct HeldRun {
  explicit HeldRun(
      const std::string& on, const std::function<void(RunDriver&)>& before = [](RunDriver&) {})
      : disk(on) {
    plain = spirals(elsewhere / "plain.tenon");
    RunDriver::start(plain, options())->wait();
    project = spirals(disk + "/a.tenon");
    TrainOptions o = options();
    o.start_paused = true;
    driver = RunDriver::start(project, o);
    until(*driver, [](const RunStatus& s) { return s.state == State::paused; });
    before(*driver);
    hold();
  }
  /// Fills the disk until what has to be saved next finds not a byte, and gives none back: from then on nothing can
  /// move.
  void hold() {
    driver->pause();
    until(*driver, [](const RunStatus& s) { return s.state == State::paused; });
    fill(disk);
    int64_t tries = driver->status().tries;
    int in_vain = 0;
    driver->resume();
    until(*driver, [&](const RunStatus& s) {
      if (s.tries == tries) return false;
      tries = s.tries;
      const bool gave_back = free_bytes(disk) > 0;
      if (gave_back) fill(disk);
      in_vain = blocked(s) && !gave_back ? in_vain + 1 : 0;
      if (in_vain < 2) driver->resume();
      return in_vain == 2;
    });
  }
  void expect_same() {
    const int64_t mine = project->run("r").id, theirs = plain->run("r").id;
    EXPECT_EQ(project->run("r").status, "finished");
    EXPECT_EQ(project->run("r").steps, kSteps);
    for (int64_t step : {kSteps, kSteps / 2 + 7})
      EXPECT_EQ(digest_at(*project, mine, step), digest_at(*plain, theirs, step)) << step;
    EXPECT_EQ(points(*project, "r"), points(*plain, "r"));
    auto steps = [](Project& p) {
      std::vector<int64_t> out;
      for (const CheckpointInfo& c : p.checkpoints(p.run("r").id)) out.push_back(c.step);
      return out;
    };
    auto of_mine = steps(*project), of_theirs = steps(*plain);
    EXPECT_TRUE(std::includes(of_mine.begin(), of_mine.end(), of_theirs.begin(), of_theirs.end()))
        << "every checkpoint is there";
  }

  std::string disk;
  TempDir elsewhere;
  std::shared_ptr<Project> plain, project;
  std::unique_ptr<RunDriver> driver;
};

TEST(FullDiskTraining, training_holds_its_step_and_goes_on) {
  small_disk::with("48m", [](const std::string& disk) {
    HeldRun r(disk);
    const RunStatus held = r.driver->status();
    EXPECT_EQ(held.state, State::paused);
    EXPECT_LT(held.step, kSteps);
    EXPECT_NE(held.blocked.find("no space is left on its disk"), std::string::npos) << held.blocked;
    EXPECT_NE(held.blocked_hint.find("The disk of " + disk + " holds 0.0 MiB free"), std::string::npos)
        << held.blocked_hint;
    for (int i = 0; i < 20; ++i) {
      const int64_t tries = r.driver->status().tries;
      until(*r.driver, [&](const RunStatus& s) {
        r.driver->checkpoint();  // tries again, in vain
        return s.tries > tries;
      });
      EXPECT_TRUE(blocked(r.driver->status()));
      EXPECT_EQ(r.driver->status().step, held.step);
    }
    const auto seen = Project::open(disk + "/a.tenon", true);
    EXPECT_LE(seen->metric(held.run, "loss").size(), static_cast<size_t>(held.step));
    drain(disk);
    r.driver->wait();  // by itself
    EXPECT_EQ(r.driver->status().state, State::finished) << r.driver->status().error;
    EXPECT_TRUE(r.driver->status().blocked.empty());
    r.expect_same();
  });
}

TEST(FullDiskTraining, a_disk_that_fills_again_and_again_changes_nothing) {
  small_disk::with("48m", [](const std::string& disk) {
    HeldRun r(disk);
    int held = 0;
    for (int64_t before = -1; r.driver->status().step < kSteps && held < 8; ++held) {
      const int64_t step = r.driver->status().step;
      EXPECT_GE(step, before);
      before = step;
      drain(disk);
      r.driver->step_once();  // at once; and then paused by the user
      until(*r.driver,
            [&](const RunStatus& s) { return s.state == State::paused && !blocked(s) && s.step == step + 1; });
      EXPECT_EQ(r.project->metric(r.driver->status().run, "loss").size(), static_cast<size_t>(step + 1))
          << "a pause means it is all kept";
      r.hold();
    }
    EXPECT_GT(held, 3);
    drain(disk);
    r.driver->resume();
    r.driver->wait();
    EXPECT_EQ(r.driver->status().state, State::finished) << r.driver->status().error;
    r.expect_same();
  });
}

TEST(FullDiskTraining, a_pause_of_the_user_outlasts_it) {
  small_disk::with("48m", [](const std::string& disk) {
    HeldRun r(disk);
    r.driver->pause();
    const int64_t step = r.driver->status().step;
    drain(disk);
    r.driver->checkpoint();  // looks at once, and holds as soon as there is room
    until(*r.driver, [](const RunStatus& s) { return s.state == State::paused && !blocked(s); });
    while (r.project->run("r").status != "paused") std::this_thread::yield();
    EXPECT_EQ(r.driver->status().step, step);
    EXPECT_EQ(r.project->metric(r.driver->status().run, "loss").size(), static_cast<size_t>(step));
    while (r.project->checkpoints(r.driver->status().run).back().step != step) std::this_thread::yield();
    r.driver->resume();
    r.driver->wait();
    r.expect_same();
  });
}

TEST(FullDiskTraining, stopped_while_held_it_says_what_is_lost_and_can_be_resumed) {
  small_disk::with("48m", [](const std::string& disk) {
    HeldRun r(disk);
    const int64_t step = r.driver->status().step;
    r.driver->stop();
    r.driver->wait();
    const RunStatus s = r.driver->status();
    EXPECT_EQ(s.state, State::failed);
    EXPECT_TRUE(s.blocked.empty());
    const int64_t last = r.project->checkpoints(s.run).back().step;
    ASSERT_LT(last, step);
    const std::string lost =
        "steps " + std::to_string(last + 1) + " to " + std::to_string(step) + " are not in the file";
    EXPECT_NE(s.error.find(lost), std::string::npos) << s.error;
    EXPECT_NE(s.error.find("--resume r` goes on from the checkpoint of step " + std::to_string(last)),
              std::string::npos)
        << s.error;
    EXPECT_NE(s.error.find("The disk of " + disk), std::string::npos) << s.error;

    // Going on on a disk that is still full: refused, and nothing is another.
    r.driver.reset();
    r.project.reset();
    drain(disk);
    Project::open(disk + "/a.tenon")->set_run_status(s.run, "failed", s.error);
    // Its log, in which there was room, went with the last who had it open.
    r.project = Project::open(disk + "/a.tenon");
    fill(disk);
    const RunInfo before = r.project->run("r");
    const auto kept = points(*r.project, "r");
    TrainOptions again;
    again.resume = "r";
    no_space_of([&] { RunDriver::start(r.project, again); });
    EXPECT_EQ(r.project->run("r").status, before.status);
    EXPECT_EQ(r.project->run("r").steps, before.steps);
    EXPECT_EQ(points(*r.project, "r"), kept);

    drain(disk);
    r.driver = RunDriver::start(r.project, again);
    r.driver->wait();
    EXPECT_EQ(r.driver->status().state, State::finished) << r.driver->status().error;
    r.expect_same();
  });
}

TEST(FullDiskTraining, stopped_when_there_is_room_again_it_keeps_every_step) {
  small_disk::with("48m", [](const std::string& disk) {
    HeldRun r(disk);
    const int64_t step = r.driver->status().step;
    drain(disk);
    r.driver->stop();
    r.driver->wait();
    EXPECT_EQ(r.driver->status().state, State::stopped) << r.driver->status().error;
    EXPECT_GE(r.driver->status().step, step);
    EXPECT_EQ(r.project->checkpoints(r.driver->status().run).back().step, r.driver->status().step);
    EXPECT_EQ(r.project->run("r").status, "stopped");
    TrainOptions again;
    again.resume = "r";
    r.driver = RunDriver::start(r.project, again);
    r.driver->wait();
    r.expect_same();
  });
}

TEST(FullDiskTraining, the_end_of_a_run_waits_too) {
  small_disk::with("48m", [](const std::string& disk) {
    HeldRun r(disk, [](RunDriver& d) {
      for (int64_t i = 1; i < kSteps; ++i) d.step_once();
      until(d, [](const RunStatus& s) { return s.state == State::paused && s.step == kSteps - 1; });
    });
    until(*r.driver, [](const RunStatus& s) { return s.step == kSteps && blocked(s); });
    EXPECT_EQ(r.driver->status().state, State::paused);
    EXPECT_LT(r.project->checkpoints(r.driver->status().run).back().step, kSteps);
    drain(disk);
    r.driver->resume();
    r.driver->wait();
    r.expect_same();
  });
}

TEST(FullDiskTraining, a_driver_that_is_let_go_while_held_ends) {
  small_disk::with("48m", [](const std::string& disk) {
    HeldRun r(disk);
    r.driver->pause();
    r.driver.reset();
    drain(disk);
    TrainOptions again;
    again.resume = "r";
    r.driver = RunDriver::start(r.project, again);
    r.driver->wait();
    r.expect_same();
  });
}

TEST(FullDiskTraining, a_run_that_cannot_begin_changes_nothing) {
  small_disk::with("8m", [](const std::string& disk) {
    auto project = spirals(disk + "/a.tenon");
    fill(disk);
    const Error e = no_space_of([&] { RunDriver::start(project, options()); });
    EXPECT_NE(e.message().find("no space is left on its disk"), std::string::npos) << e.what();
    EXPECT_TRUE(project->runs().empty());
    drain(disk);
    auto d = RunDriver::start(project, options());
    EXPECT_EQ(d->status().name, "r");
  });
}

}  // namespace
}  // namespace tenon::projects
