// A disk that is full loses nothing that was saved, and leaves nothing half done.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "core/disk.h"
#include "core/error.h"
#include "core/file.h"
#include "core/tensor.h"
#include "tests/projects/project_files.h"
#include "tests/small_disk.h"

namespace tenon::projects {
namespace {

using small_disk::drain;
using small_disk::fill;
using testing_files::no_space_of;
using testing_files::small_model;
using testing_files::small_recipe;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& e : std::filesystem::directory_iterator(folder)) out.push_back(e.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

Checkpoint checkpoint_of(int n, int64_t step) {
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
         p.save_checkpoint(run, checkpoint_of(1, i), {{"loss", {i, 0, 1}}});
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
    p->save_checkpoint(run, checkpoint_of(2, 1));
    const int64_t before = free_bytes(disk);
    ASSERT_GT(before, 1 << 20);
    const Error e = no_space_of([&] { p->save_checkpoint(run, checkpoint_of(20, 2)); });
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

}  // namespace
}  // namespace tenon::projects
