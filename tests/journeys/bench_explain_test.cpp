// What `tenon bench --explain` says of the plans behind the figures.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

TEST(BenchExplainJourney, the_plan_that_a_model_is_trained_from) {
  const Outcome told = tenon({"bench", "tiny", "--explain", "--seconds", "0.05"});
  ASSERT_EQ(told.status, 0) << told.err;
  EXPECT_NE(told.out.find("train_steps"), std::string::npos) << "the figures come with it";
  EXPECT_NE(told.out.find("Forward and backward are "), std::string::npos) << told.out;
  const auto all = tenon({"bench", "tiny", "--explain", "--seconds", "0.05", "--json"}).json();
  const auto found = std::find_if(all.begin(), all.end(), [](const auto& j) { return j.contains("kernels"); });
  ASSERT_NE(found, all.end());
  const auto& plan = *found;
  EXPECT_EQ(plan.at("workload"), "tiny");
  EXPECT_EQ(plan.at("kernels").size(), plan.at("kernels_count").get<size_t>());
  EXPECT_GT(plan.at("kernels").size(), 5u);
  EXPECT_EQ(tenon({"bench", "tiny", "--seconds", "0.05"}).out.find("Forward and backward are "), std::string::npos);
}

TEST(BenchExplainJourney, the_nodes_of_a_model_file_as_they_run) {
  Folder folder;
  const std::string project = folder / "p.tenon", model = folder / "m.onnx";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals", "--set", "eval_every=0"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "5"}).status, 0);
  ASSERT_EQ(tenon({"export", project, "r", "--format", "onnx", "-o", model}).status, 0);
  const Outcome told = tenon({"bench", "onnx", model, "--batch", "3", "--explain", "--seconds", "0.05"});
  ASSERT_EQ(told.status, 0) << told.err;
  EXPECT_NE(told.out.find(" nodes of the file run as "), std::string::npos) << told.out;
  const auto all = tenon({"bench", "onnx", model, "--batch", "3", "--explain", "--seconds", "0.05", "--json"}).json();
  int pages = 0;
  for (const auto& j : all) {
    if (j.value("workload", "") != "onnx_3") continue;
    ++pages;
    EXPECT_LT(j.at("nodes_count"), j.at("file_nodes")) << "an activation runs with the product before it";
    EXPECT_EQ(j.at("nodes").size(), j.at("nodes_count").get<size_t>());
    EXPECT_GT(j.at("joined_count"), 0);
    double shares = 0;
    bool joined = false;
    for (const auto& node : j.at("nodes")) {
      shares += node.at("share").get<double>();
      joined |= node.at("runs").get<std::string>().find(" + ") != std::string::npos && node.at("prepared") == "yes";
    }
    EXPECT_TRUE(joined) << j;
    EXPECT_GT(shares, 0.05);
    EXPECT_LT(shares, 1.5) << "medians of the nodes beside the median of the run";
  }
  EXPECT_EQ(pages, 1);
}

TEST(BenchExplainJourney, quantizers_that_run_as_part_of_a_node_are_said) {
  Folder folder;
  const std::string project = folder / "p.tenon", model = folder / "m.onnx";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals", "--set", "eval_every=0"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "20"}).status, 0);
  ASSERT_EQ(tenon({"export", project, "r", "-o", model, "--quantize", "int8-static"}).status, 0);
  const Outcome told = tenon({"bench", "onnx", model, "--batch", "3", "--explain", "--seconds", "0.05"});
  ASSERT_EQ(told.status, 0) << told.err;
  if (told.out.find("integer nodes: none") == std::string::npos) {
    EXPECT_NE(told.out.find(" + QuantizeLinear"), std::string::npos) << told.out;
  }
}

}  // namespace
}  // namespace tenon::journeys
