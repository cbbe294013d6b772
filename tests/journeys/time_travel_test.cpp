// Any step of a run can be reached again, bit for bit, whatever the way.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>

#include "projects/project.h"
#include "projects/time_travel.h"
#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

void expect_digests(const std::string& project, int64_t steps) {
  std::set<std::string> seen;
  for (int64_t step : {int64_t{0}, int64_t{1}, steps / 3, steps - 1, steps}) {
    const std::string one = digest(project, "one", std::to_string(step), 1);
    EXPECT_EQ(one.size(), 65u) << one;
    EXPECT_TRUE(seen.insert(one).second) << "two steps have the same state";
    EXPECT_EQ(one, digest(project, "one", std::to_string(step), 2)) << "replayed on 2 threads, step " << step;
    EXPECT_EQ(one, digest(project, "two", std::to_string(step), 1)) << "trained on 2 threads, step " << step;
  }
}

void train_twice(const std::string& project, const std::string& steps) {
  for (const auto& [run, threads] : {std::pair{"one", "1"}, std::pair{"two", "2"}}) {
    const Outcome o = tenon(
        {"train", project, "--run", run, "--threads", threads, "--max-steps", steps, "--set", "checkpoint_every=20"});
    ASSERT_EQ(o.status, 0) << o.err;
  }
}

TEST(TimeTravel, the_same_bits_at_1_and_2_threads) {
  Folder folder;
  ASSERT_EQ(tenon({"new", folder / "p.tenon", "--template", "spirals"}).status, 0);
  train_twice(folder / "p.tenon", "150");
  expect_digests(folder / "p.tenon", 150);
}

TEST(TimeTravel, the_same_bits_for_the_convolutional_network) {
  if (!has_fashion_mnist()) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  Folder folder;
  ASSERT_EQ(tenon({"new", folder / "p.tenon", "--template", "fashion-cnn", "--set", "eval_every=0"}).status, 0);
  train_twice(folder / "p.tenon", "45");
  expect_digests(folder / "p.tenon", 45);
}

TEST(TimeTravel, the_same_bits_from_whichever_checkpoint) {
  Folder folder;
  const std::string path = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", path, "--template", "spirals"}).status, 0);
  ASSERT_EQ(tenon({"train", path, "--run", "r", "--max-steps", "120", "--set", "checkpoint_every=10"}).status, 0);
  const std::string near = digest(path, "r", "119", 2);
  auto project = projects::Project::open(path);
  const int64_t run = project->run("r").id;
  // From ever earlier ones, down to the very first.
  auto checkpoints = project->checkpoints(run);
  ASSERT_GT(checkpoints.size(), 10u);
  while (checkpoints.size() > 1) {
    project->delete_checkpoint(checkpoints.back().id);
    checkpoints.pop_back();
    if (checkpoints.size() % 4 == 1) {
      EXPECT_EQ(projects::digest_at(*project, run, 119) + "\n", near) << "from step " << checkpoints.back().step;
    }
  }
}

TEST(TimeTravel, two_hundred_steps_of_ten_thousand_in_any_order_from_a_fresh_process) {
  constexpr int64_t kSteps = 10000;
  Folder folder;
  const std::string path = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", path, "--template", "spirals", "--set", "epochs=1000", "--set", "eval_every=0"}).status, 0);
  // The same training, written at other steps and on another number of threads.
  for (const auto& [run, threads, every] : {std::tuple{"one", "1", "700"}, std::tuple{"two", "2", "900"}}) {
    const Outcome o = tenon({"train", path, "--run", run, "--threads", threads, "--max-steps", std::to_string(kSteps),
                             "--set", std::string("checkpoint_every=") + every});
    ASSERT_EQ(o.status, 0) << o.err;
  }
  const auto project = projects::Project::open(path);
  const int64_t two = project->run("two").id;
  ASSERT_EQ(project->run("one").steps, kSteps);
  std::mt19937 dice(7);
  int equal = 0;
  for (int i = 0; i < 200; ++i) {
    const auto step = static_cast<int64_t>(dice() % (kSteps + 1));
    const bool same =
        digest(path, "one", std::to_string(step), 2) == projects::digest_at(*project, two, step, 1) + "\n";
    equal += same;
    EXPECT_TRUE(same) << step;
  }
  EXPECT_EQ(equal, 200);
}

TEST(TimeTravel, a_tensor_of_a_step_can_be_saved) {
  Folder folder;
  const std::string path = folder / "p.tenon", file = folder / "w.npy";
  ASSERT_EQ(tenon({"new", path, "--template", "spirals"}).status, 0);
  ASSERT_EQ(tenon({"train", path, "--run", "r", "--max-steps", "30"}).status, 0);
  const Outcome listed = tenon({"goto", path, "r", "--step", "25", "--json"});
  ASSERT_EQ(listed.status, 0) << listed.err;
  std::string name;
  for (const auto& j : listed.json())
    if (j.at("kind") == "model" && j.at("shape").size() == 2) name = j.at("name").get<std::string>();
  const Outcome saved = tenon({"goto", path, "r", "--step", "25", "--tensor", name, "--out", file});
  ASSERT_EQ(saved.status, 0) << saved.err;
  if (!python().empty()) {
    const Outcome o =
        run({python(), "-c",
             "import numpy, sys; a = numpy.load(sys.argv[1]); print(a.dtype, a.ndim, bool(numpy.isfinite(a).all()))",
             file});
    EXPECT_EQ(o.out, "float32 2 True\n") << o.err;
  }
  EXPECT_EQ(tenon({"goto", path, "r", "--step", "31"}).status, 2);
  EXPECT_EQ(tenon({"goto", path, "r", "--step", "25", "--tensor", "no such tensor"}).status, 2);
  const Outcome all = tenon({"goto", path, "r", "--step", "25", "--all", "--json"});
  std::set<std::string> kinds;
  for (const auto& j : all.json()) kinds.insert(j.at("kind").get<std::string>());
  EXPECT_TRUE(kinds.contains("activation") && kinds.contains("gradient")) << all.out;
  EXPECT_TRUE(kinds.contains("parameter before the step") && !kinds.contains("parameter")) << all.out;
  // By its bare name a parameter is what the step left, as the list has it; what the step found is another step's.
  ASSERT_TRUE(name.starts_with("model/"));
  const auto mean_of = [&](const std::string& tensor, const char* step) {
    const Outcome o = tenon({"goto", path, "r", "--step", step, "--tensor", tensor, "--json"});
    return o.status == 0 ? o.json().at(0).at("mean").get<double>() : -1e9;
  };
  EXPECT_EQ(mean_of(name.substr(6), "25"), mean_of(name, "25"));
  EXPECT_NE(mean_of(name.substr(6), "25"), mean_of(name, "24"));
}

}  // namespace
}  // namespace tenon::journeys
