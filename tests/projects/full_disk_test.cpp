// A disk that is full loses nothing that was saved, leaves nothing half done, and holds no run for longer than it is
// full.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <thread>

#include "core/disk.h"
#include "core/error.h"
#include "core/file.h"
#include "core/tensor.h"
#include "engine/model/templates.h"
#include "projects/run_driver.h"
#include "tests/projects/project_files.h"
#include "tests/small_disk.h"

namespace tenon::projects {
namespace {

using small_disk::drain;
using small_disk::fill;
using testing_files::small_model;
using testing_files::small_recipe;
using testing_files::TempDir;
using State = RunStatus::State;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& e : std::filesystem::directory_iterator(folder)) out.push_back(e.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

/// The error of a call on a full disk; fails where there is none, or one of another kind.
Error no_space_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::no_space) << e.what();
    return e;
  }
  ADD_FAILURE() << "it found room";
  return Error("");
}

Checkpoint megabytes(int n, int64_t step) {
  Checkpoint c;
  c.step = step;
  for (int i = 0; i < n; ++i) {
    Tensor t = empty({1 << 18}, DType::f32);
    for (int64_t k = 0; k < t.numel(); ++k) t.data<float>()[k] = static_cast<float>(step * 1000003 + i * 7919 + k);
    c.tensors.emplace_back("w" + std::to_string(i), t);
  }
  c.state = nlohmann::json::object();
  return c;
}

TEST(FullDisk, a_new_project_is_whole_or_leaves_nothing) {
  small_disk::with("4m", [](const std::string& disk) {
    int made = 0, refused = 0;
    for (int64_t leave = 0; leave < 3 << 20; leave += 20480) {
      fill(disk, leave);
      const std::string path = disk + "/a.tenon";
      try {
        auto p = Project::create(path, small_model(), small_recipe());
        p.reset();
        drain(disk);
        EXPECT_EQ(Project::open(path)->model(), small_model()) << leave;
        ++made;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), Error::Kind::no_space) << leave << ": " << e.what();
        EXPECT_NE(e.message().find(path + ": no space is left on its disk; nothing was made"), std::string::npos)
            << e.what();
        EXPECT_NE(e.hint().find("The disk of " + disk + " holds "), std::string::npos) << e.what();
        EXPECT_EQ(names_in(disk), std::vector<std::string>{"ballast"}) << leave;
        ++refused;
      }
      drain(disk);
      std::filesystem::remove(path);
      ASSERT_TRUE(names_in(disk).empty()) << leave;
    }
    EXPECT_GT(made, 10);
    EXPECT_GT(refused, 10);
  });
}

/// A change made again and again until the disk is full, and how to see how often it was made.
struct Change {
  const char* name;
  std::function<void(Project&, int64_t run, int i)> make;  ///< the i-th time, from 1
  std::function<int(Project&, int64_t run)> made;
};

const std::vector<Change>& changes() {
  auto text = [](int i) { return std::string(100000, 'x') + std::to_string(i); };
  auto number = [](const std::string& s) { return s.size() > 100000 ? std::stoi(s.substr(100000)) : 0; };
  static const std::vector<Change> all = {
      {"the model",
       [text](Project& p, int64_t, int i) {
         ModelSpec m = small_model();
         m.name = text(i);
         p.set_model(m);
       },
       [number](Project& p, int64_t) { return number(p.model().name); }},
      {"the recipe",
       [text](Project& p, int64_t, int i) {
         p.set_recipe({{"seed", text(i)}});
       },
       [number](Project& p, int64_t) {
         return number(p.recipe().value("seed", nlohmann::json()).dump(-1) == "1" ? "" : p.recipe().at("seed"));
       }},
      {"the window's state", [text](Project& p, int64_t, int i) { p.set_window_state("window", text(i)); },
       [number](Project& p, int64_t) {
         return p.window_state("window").is_null() ? 0 : number(p.window_state("window"));
       }},
      {"metrics",
       [](Project& p, int64_t run, int i) {
         p.append_metrics(run, {{"loss", {i, 0, 0.5}}, {"lr", {i, 0, 0.1}}});
       },
       [](Project& p, int64_t run) {
         EXPECT_EQ(p.metric(run, "loss").size(), p.metric(run, "lr").size());
         return static_cast<int>(p.metric(run, "loss").size());
       }},
      {"a checkpoint",
       [](Project& p, int64_t run, int i) {
         p.save_checkpoint(run, megabytes(1, i), {{"loss", {i, 0, 1}}});
       },
       [](Project& p, int64_t run) {
         const auto all = p.checkpoints(run);
         for (const CheckpointInfo& c : all) EXPECT_EQ(p.load_checkpoint(c.id).tensors.size(), 1u);
         EXPECT_EQ(p.metric(run, "loss").size(), all.size()) << "rows come with their checkpoint";
         return static_cast<int>(all.size());
       }},
      {"an artifact", [text](Project& p, int64_t run, int i) { p.add_artifact(run, i, "note", "n", text(i)); },
       [](Project& p, int64_t) { return static_cast<int>(p.artifacts().size()); }},
      {"artifacts that belong together",
       [text](Project& p, int64_t run, int i) {
         p.add_artifacts(run, i, {{"note", "a", text(i)}, {"note", "b", text(i)}});
       },
       [](Project& p, int64_t) {
         EXPECT_EQ(p.artifacts().size() % 2, 0u);
         return static_cast<int>(p.artifacts().size() / 2);
       }},
      {"a new run", [](Project& p, int64_t, int) { p.new_run("", p.model(), p.recipe(), 10); },
       [](Project& p, int64_t) { return static_cast<int>(p.runs().size()) - 1; }},
      {"the name of a run", [](Project& p, int64_t run, int i) { p.rename_run(run, "r" + std::to_string(i)); },
       [](Project& p, int64_t run) { return std::stoi(p.run(run).name.substr(1)); }},
      {"the progress of a run", [](Project& p, int64_t run, int i) { p.set_run_progress(run, i, i); },
       [](Project& p, int64_t run) { return static_cast<int>(p.run(run).steps); }},
      {"a run that goes on", [](Project& p, int64_t run, int i) { p.continue_run(run, i, i); },
       [](Project& p, int64_t run) {
         EXPECT_EQ(p.run(run).status, p.run(run).steps ? "running" : "failed") << "one transaction for all of it";
         return static_cast<int>(p.run(run).steps);
       }},
      {"the status of a run", [text](Project& p, int64_t run, int i) { p.set_run_status(run, "failed", text(i)); },
       [number](Project& p, int64_t run) { return number(p.run(run).error); }},
  };
  return all;
}

TEST(FullDisk, every_change_of_a_project_is_whole_or_did_not_happen) {
  small_disk::with("10m", [](const std::string& disk) {
    for (const Change& change : changes()) {
      SCOPED_TRACE(change.name);
      const std::string path = disk + "/a.tenon";
      int made = 0;
      {
        auto p = Project::create(path, small_model(), small_recipe());
        const int64_t run = p->new_run("r0", p->model(), p->recipe(), 10).id;
        p->set_run_status(run, "failed");
        fill(disk, 3 << 20);
        const Error e = no_space_of([&] {
          while (made < 1000) {
            change.make(*p, run, made + 1);
            ++made;
          }
        });
        EXPECT_NE(e.message().find(path + ": no space is left on its disk; what was saved before is still there"),
                  std::string::npos)
            << e.what();
        EXPECT_NE(e.hint().find("The disk of " + disk + " holds "), std::string::npos) << e.what();
        EXPECT_GT(made, 0);
        EXPECT_EQ(change.made(*p, run), made) << "the failed one is seen in nothing";
      }
      {
        // Closed and opened again, the disk as full as before.
        auto p = Project::open(path, true);
        EXPECT_EQ(change.made(*p, p->runs().front().id), made);
      }
      drain(disk);
      {
        auto p = Project::open(path);
        const int64_t run = p->runs().front().id;
        EXPECT_EQ(change.made(*p, run), made);
        change.make(*p, run, made + 1);
        EXPECT_EQ(change.made(*p, run), made + 1) << "the same call succeeds once there is room";
      }
      EXPECT_EQ(names_in(disk), std::vector<std::string>{"a.tenon"});
      std::filesystem::remove(path);
      if (testing::Test::HasFailure()) return;
    }
  });
}

TEST(FullDisk, what_a_failed_change_took_is_given_back) {
  small_disk::with("12m", [](const std::string& disk) {
    auto p = Project::create(disk + "/a.tenon", small_model(), small_recipe());
    const int64_t run = p->new_run("r", p->model(), p->recipe(), 10).id;
    p->save_checkpoint(run, megabytes(2, 1));
    const int64_t before = free_bytes(disk);
    ASSERT_GT(before, 1 << 20);
    const Error e = no_space_of([&] { p->save_checkpoint(run, megabytes(20, 2)); });
    EXPECT_NE(e.hint().find("this checkpoint needs about 21.0 MiB"), std::string::npos) << e.what();
    EXPECT_GE(free_bytes(disk), before);
    EXPECT_EQ(p->checkpoints(run).size(), 1u);
    write_file(disk + "/other", std::string(1 << 20, 'x'));
  });
}

TEST(FullDisk, files_are_whole_or_not_there) {
  small_disk::with("2m", [](const std::string& disk) {
    write_file(disk + "/old", "old");
    fill(disk, 1 << 20);
    const std::string much(3 << 20, 'x');
    const Error e = no_space_of([&] { write_file(disk + "/new", much); });
    EXPECT_EQ(e.message(), disk + "/new: no space is left on its disk; it was not written");
    EXPECT_EQ(e.hint(),
              "The disk of " + disk + " holds 1.0 MiB free; this file needs at least 3.0 MiB. Free some space.");
    no_space_of([&] { write_file(disk + "/old", much); });
    EXPECT_EQ(read_file(disk + "/old"), "old");
    EXPECT_EQ(names_in(disk), (std::vector<std::string>{"ballast", "old"}));
    write_file(disk + "/old", std::string(900 << 10, 'n'));
    EXPECT_EQ(read_file(disk + "/old").size(), 900u << 10);
  });
}

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

std::shared_ptr<Project> spirals(const std::string& path) {
  const Template& t = find_template("spirals");
  return Project::create(path, t.model, t.recipe.to_json());
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

TEST(FullDisk, training_holds_its_step_and_goes_on) {
  small_disk::with("24m", [](const std::string& disk) {
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

TEST(FullDisk, a_disk_that_fills_again_and_again_changes_nothing) {
  small_disk::with("24m", [](const std::string& disk) {
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

TEST(FullDisk, a_pause_of_the_user_outlasts_it) {
  small_disk::with("24m", [](const std::string& disk) {
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

TEST(FullDisk, stopped_while_held_it_says_what_is_lost_and_can_be_resumed) {
  small_disk::with("24m", [](const std::string& disk) {
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

TEST(FullDisk, stopped_when_there_is_room_again_it_keeps_every_step) {
  small_disk::with("24m", [](const std::string& disk) {
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

TEST(FullDisk, the_end_of_a_run_waits_too) {
  small_disk::with("24m", [](const std::string& disk) {
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

TEST(FullDisk, a_driver_that_is_let_go_while_held_ends) {
  small_disk::with("24m", [](const std::string& disk) {
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

TEST(FullDisk, a_run_that_cannot_begin_changes_nothing) {
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
