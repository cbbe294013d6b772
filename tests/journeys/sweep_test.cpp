// A search from the command line: begun, killed, gone on with, looked at.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <random>

#include "core/number.h"
#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

struct Sweep : ::testing::Test {
  Folder folder;
  std::string project(const std::string& name) {
    const std::string path = folder / name;
    EXPECT_EQ(tenon({"new", path, "--template", "spirals"}).status, 0);
    return path;
  }
  static std::vector<std::string> begin(const std::string& project, const std::string& runs = "12") {
    return {"sweep",    project,
            "--name",   "s",
            "--key",    "optimizer.lr=log:1e-4..1e-1",
            "--key",    "optimizer.type=adam,sgd",
            "--method", "bayes",
            "--runs",   runs,
            "--metric", "test_accuracy",
            "--seed",   "7",
            "--prune",  "40",
            "--set",    "eval_every=1",
            "--set",    "epochs=8",
            "--set",    "data.batch_size=20",
            "--set",    "checkpoint_every=30",
            "--json"};
  }
  /// Every trial without the time that it took.
  static std::vector<std::string> trials(const std::string& project) {
    std::vector<std::string> out;
    const Outcome o = tenon({"sweep", project, "--show", "s", "--json"});
    EXPECT_EQ(o.status, 0) << o.err;
    for (auto j : o.json()) {
      if (!j.contains("trial")) continue;
      j.erase("seconds");
      out.push_back(j.dump());
    }
    return out;
  }
};

TEST_F(Sweep, killed_again_and_again_is_the_sweep_that_was_not) {
  const std::string whole = project("whole.tenon"), victim = project("victim.tenon");
  const auto from = std::chrono::steady_clock::now();
  const Outcome undisturbed = tenon(begin(whole));
  const int64_t part =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - from).count() / 8;
  ASSERT_EQ(undisturbed.status, 0) << undisturbed.err;
  const auto last = undisturbed.json().back();
  EXPECT_EQ(last.at("state"), "finished");
  EXPECT_EQ(last.at("trials"), 12);

  std::mt19937 random(20261122);
  int kills = 0;
  bool begun = false;
  for (int round = 0; round < 60; ++round) {
    begun = begun || !tenon({"sweep", victim, "--list", "--json"}).out.empty();
    const auto words = begun ? std::vector<std::string>{"sweep", victim, "--resume", "s", "--json"} : begin(victim);
    const Outcome o =
        kills < 6 ? tenon_signalled(words, SIGKILL, part / 2 + static_cast<int64_t>(random()) % part) : tenon(words);
    if (o.status == 0) break;
    ASSERT_EQ(o.status, -SIGKILL) << o.err;
    ++kills;
  }
  EXPECT_GE(kills, 3) << "it ended before it could be killed";
  const auto a = trials(whole), b = trials(victim);
  ASSERT_EQ(a.size(), 12u);
  EXPECT_EQ(a, b);
  size_t runs = 0;
  for (const auto& j : tenon({"runs", victim, "--json"}).json()) {
    ++runs;
    EXPECT_TRUE(j.at("status") == "finished" || j.at("status") == "pruned") << j.at("status");
  }
  EXPECT_EQ(runs, 12u) << "no trial was begun twice";
}

TEST_F(Sweep, stopped_by_ctrl_c_says_how_to_go_on) {
  for (const int64_t wait : {700000, 1500000, 3000000, 6000000, 12000000}) {  // until it has begun
    const std::string p = project("p" + std::to_string(wait) + ".tenon");
    auto words = begin(p, "2000");
    words.pop_back();  // for people
    const Outcome o = tenon_signalled(words, SIGINT, wait);
    if (o.status == -SIGINT) continue;
    ASSERT_EQ(o.status, 0) << o.err;
    EXPECT_NE(o.out.find("stopped; go on with: tenon sweep " + p + " --resume s"), std::string::npos) << o.out;
    EXPECT_NE(tenon({"sweep", p, "--list"}).out.find("unfinished"), std::string::npos);
    return;
  }
  ADD_FAILURE() << "it never came so far that it could be stopped";
}

TEST_F(Sweep, tells_the_best_and_what_matters) {
  const std::string p = project("p.tenon");
  ASSERT_EQ(tenon({"sweep", p, "--key", "optimizer.lr=log:1e-5..1e-1:6", "--key", "seed=1,2", "--method", "grid",
                   "--set", "epochs=3", "--set", "eval_every=1"})
                .status,
            0);
  const Outcome o = tenon({"sweep", p, "--show", "sweep-01"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.out.find("12 of 12 trials, grid, the lowest of test_loss"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("best (*): trial "), std::string::npos);
  const auto last = tenon({"sweep", p, "--show", "sweep-01", "--json"}).json().back();
  EXPECT_GT(last.at("importance").at("optimizer.lr").get<double>(), 0.7) << last;
  EXPECT_LT(last.at("importance").at("seed").get<double>(), 0.2) << last;
  EXPECT_GT(number_of(last.at("best").at("settings").at("optimizer.lr").get<std::string>()).value(), 1e-3);
  EXPECT_EQ(tenon({"eval", p, last.at("best").at("run").get<std::string>()}).status, 0) << "a run as any other";

  EXPECT_EQ(tenon({"sweep", p, "--rename", "sweep-01"}).status, 2);
  EXPECT_EQ(tenon({"sweep", p, "--rename", "sweep-01", "--delete", "sweep-01"}).status, 2);
  EXPECT_EQ(tenon({"sweep", p, "--deleted"}).status, 2);
  EXPECT_EQ(tenon({"sweep", p, "--rename", "sweep-01", "--name", "rates"}).status, 0);
  EXPECT_EQ(tenon({"sweep", p, "--delete", "sweep-01"}).status, 2) << "it has another name";
  EXPECT_TRUE(tenon({"sweep", p, "--delete", "rates", "--json"}).json().back().at("deleted").get<bool>());
  EXPECT_TRUE(tenon({"sweep", p, "--list", "--json"}).out.empty());
  EXPECT_EQ(tenon({"sweep", p, "--list", "--deleted", "--json"}).json().back().at("sweep"), "rates");
  EXPECT_EQ(tenon({"sweep", p, "--undelete", "rates"}).status, 0);
  EXPECT_EQ(tenon({"sweep", p, "--show", "rates", "--json"}).json().size(), 13u) << "12 trials and the sum";
}

TEST_F(Sweep, trials_side_by_side_come_to_the_same) {
  const std::string a = project("a.tenon"), b = project("b.tenon");
  auto words = [&](const std::string& p, const char* threads) {
    auto w = begin(p, "6");
    for (const char* more : {"--side-by-side", "2", "--threads", threads}) w.emplace_back(more);
    return w;
  };
  ASSERT_EQ(tenon(words(a, "1")).status, 0);
  ASSERT_EQ(tenon(words(b, "2")).status, 0);
  EXPECT_EQ(trials(a), trials(b));
}

TEST_F(Sweep, wrong_words_are_told_before_anything_starts) {
  const std::string p = project("p.tenon");
  const auto refused = [&](std::vector<std::string> words, const std::string& why) {
    words.insert(words.begin(), {"sweep", p});
    const Outcome o = tenon(words);
    EXPECT_EQ(o.status, 2) << o.err;
    EXPECT_NE(o.err.find(why), std::string::npos) << o.err;
  };
  refused({}, "searches nothing");
  refused({"--key", "optimizer.lrr=1,2"}, "optimizer.lr");
  refused({"--key", "optimizer.lr=log:1e-4..1e-1", "--method", "bayesian"}, "bayes");
  refused({"--key", "optimizer.lr=log:1e-4..1e-1", "--metric", "accuracy"}, "test_accuracy");
  refused({"--key", "optimizer.lr=log:1e-4..1e-1", "--runs", "-3"}, "--runs");
  refused({"--key", "data.batch_size=0,1"}, "at least 1");
  refused({"--resume", "s", "--runs", "3"}, "keeps what it was begun with");
  refused({"--resume", "s"}, "no sweep \"s\"");
  EXPECT_TRUE(tenon({"sweep", p, "--list", "--json"}).out.empty());
}

}  // namespace
}  // namespace tenon::journeys
