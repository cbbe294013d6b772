// Making a trained network smaller: half of its channels go, and training gives back what that cost.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

double best_accuracy(const std::string& project, const std::string& run) {
  const Outcome told = tenon({"runs", project, "--json"});
  EXPECT_EQ(told.status, 0) << told.err;
  for (const auto& r : told.json())
    if (r.at("name") == run) return r.at("best").at("value").get<double>();
  ADD_FAILURE() << "no run " << run << " in " << told.out;
  return 0;
}

TEST(PruneJourney, half_of_the_channels_of_the_convolutional_network) {
  if (!has_fashion_mnist()) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  Folder folder;
  const std::string whole = folder / "p.tenon", small = folder / "small.tenon";
  ASSERT_EQ(tenon({"new", whole, "--template", "fashion-cnn"}).status, 0);
  ASSERT_EQ(tenon({"train", whole, "--run", "r", "--max-steps", "300"}).status, 0);
  const Outcome pruned = tenon({"prune", whole, "r", "--amount", "0.5", "-o", small, "--json"});
  ASSERT_EQ(pruned.status, 0) << pruned.err;
  const auto j = pruned.json().at(0);
  EXPECT_LT(j.at("parameters")[1].get<double>(), 0.26 * j.at("parameters")[0].get<double>());
  EXPECT_GE(j.at("flops")[0].get<double>(), 3 * j.at("flops")[1].get<double>()) << j;
  EXPECT_EQ(j.at("layers").size(), 4u);
  EXPECT_EQ(j.at("layers")[3].at("kept"), "the model's output");
  ASSERT_EQ(tenon({"train", small, "--run", "tuned", "--max-steps", "300"}).status, 0);
  EXPECT_GE(best_accuracy(small, "tuned"), best_accuracy(whole, "r") - 0.01);
}

TEST(DistillJourney, a_student_beats_itself_trained_alone) {
  if (!has_fashion_mnist()) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  Folder folder;
  const std::string teacher = folder / "big.tenon", student = folder / "small.tenon";
  ASSERT_EQ(tenon({"new", teacher, "--template", "fashion-cnn"}).status, 0);
  ASSERT_EQ(tenon({"train", teacher, "--run", "r", "--max-steps", "500"}).status, 0);
  ASSERT_EQ(tenon({"prune", teacher, "r", "--amount", "0.85", "-o", student}).status, 0);
  // Of a tenth of the training set; its batches have few samples, so the rate is lower.
  double alone = 0, taught = 0;
  for (const char* seed : {"1", "2"}) {
    std::vector<std::string> words{"train",    student,
                                   "--epochs", "2",
                                   "--set",    "init.run=",
                                   "--set",    "data.without=6000-59999",
                                   "--set",    "optimizer.lr=0.005",
                                   "--set",    std::string("seed=") + seed,
                                   "--run",    std::string("alone") + seed};
    ASSERT_EQ(tenon(words).status, 0);
    words.back() = std::string("taught") + seed;
    for (const std::string& word : {std::string("--set"), "distill.from=" + teacher + ":r@best"}) words.push_back(word);
    ASSERT_EQ(tenon(words).status, 0);
    alone += best_accuracy(student, std::string("alone") + seed) / 2;
    taught += best_accuracy(student, std::string("taught") + seed) / 2;
  }
  EXPECT_GT(taught, alone);
}

TEST(PruneJourney, layers_of_lower_rank) {
  Folder folder;
  const std::string project = folder / "p.tenon", small = folder / "s.tenon";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals", "--set", "eval_every=0"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "300"}).status, 0);
  const Outcome made = tenon({"prune", project, "r", "--energy", "0.6", "-o", small, "--json"});
  ASSERT_EQ(made.status, 0) << made.err;
  const auto j = made.json().at(0);
  EXPECT_LT(j.at("parameters")[1].get<double>(), j.at("parameters")[0].get<double>());
  int lower = 0;
  for (const auto& layer : j.at("layers"))
    if (!layer.at("rank").is_null()) {
      EXPECT_LT(layer.at("rank")[1], layer.at("rank")[0]);
      EXPECT_LE(layer.at("error").get<double>(), std::sqrt(0.4) + 1e-6);
      ++lower;
    }
  EXPECT_GE(lower, 1);
  EXPECT_EQ(tenon({"train", small, "--run", "on", "--max-steps", "20"}).status, 0);
  for (const auto& words : std::vector<std::vector<std::string>>{{"--energy", "0"},
                                                                 {"--energy", "1.5"},
                                                                 {"--energy", "0.9", "--zeros"},
                                                                 {"--energy", "0.9", "--amount", "0.5"}}) {
    std::vector<std::string> all{"prune", project, "r", "-o", folder / "t.tenon"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(tenon(all).status, 2) << words[1];
  }
}

TEST(PruneJourney, words_of_the_command) {
  Folder folder;
  const std::string project = folder / "p.tenon", small = folder / "s.tenon";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals", "--set", "eval_every=0"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "60"}).status, 0);
  const Outcome plan = tenon({"prune", project, "r", "--plan", "--layers", "layers.0"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  EXPECT_NE(plan.out.find("not named"), std::string::npos) << plan.out;
  EXPECT_EQ(tenon({"prune", project, "r"}).status, 2) << "where to was not said";
  EXPECT_EQ(tenon({"prune", project, "r", "-o", small, "--zeros", "--amount", "0.5"}).status, 2);
  EXPECT_EQ(tenon({"prune", project, "r", "-o", small, "--zeros"}).status, 2) << "nothing is zero";
  EXPECT_EQ(tenon({"prune", project, "r", "-o", small, "--layers", "conv9"}).status, 2);
  EXPECT_FALSE(std::filesystem::exists(small));
}

}  // namespace
}  // namespace tenon::journeys
