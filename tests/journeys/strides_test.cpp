// What views do, on the command line: on a size, and on a tensor of a step.
#include <gtest/gtest.h>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

TEST(StridesJourney, a_chain_is_told_view_by_view) {
  const Outcome o = tenon({"strides", "4096x64", ".T.reshape(-1)[::2]", "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  const auto rows = o.json();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1].at("stride"), (std::vector<int64_t>{1, 64}));
  EXPECT_FALSE(rows[1].at("copies").get<bool>());
  EXPECT_EQ(rows[1].at("times").get<double>(), 16);
  EXPECT_TRUE(rows[2].at("copies").get<bool>());
  EXPECT_EQ(rows[3].at("size"), (std::vector<int64_t>{131072}));
  EXPECT_NE(tenon({"strides"}).out.find(".permute(1, 0)"), std::string::npos);
  const Outcome wrong = tenon({"strides", "3x4", ".T.view(12)"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("character 3"), std::string::npos) << wrong.err;
  EXPECT_EQ(tenon({"strides", "3x-4"}).status, 2);
  EXPECT_EQ(tenon({"strides", "3", "", "--dtype", "f31"}).status, 2);
}

TEST(StridesJourney, a_tensor_of_a_step_is_seen_through_views) {
  Folder folder;
  const std::string project = folder / "p.tenon", whole = folder / "whole.npy", seen = folder / "seen.npy";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "r", "--max-steps", "3"}).status, 0);
  const auto at = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"goto", project, "r", "--step", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return tenon(words);
  };
  const Outcome o = at({"--tensor", "layers.2.weight", "--view", ".T[1::2, 3]", "--out", seen, "--json"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.json().at(0).at("shape"), (std::vector<int64_t>{32}));
  ASSERT_EQ(at({"--tensor", "layers.2.weight", "--out", whole}).status, 0);
  // Row 3 of the weight, every other of its 64 columns from 1 on.
  const std::string all = slurp(whole), part = slurp(seen);
  constexpr size_t kHead = 128, kItem = sizeof(float);
  ASSERT_EQ(all.size(), kHead + 64 * 64 * kItem);
  ASSERT_EQ(part.size(), kHead + 32 * kItem);
  for (size_t i = 0; i < 32; ++i)
    EXPECT_EQ(part.substr(kHead + i * kItem, kItem), all.substr(kHead + (3 * 64 + 1 + 2 * i) * kItem, kItem)) << i;
  EXPECT_EQ(at({"--view", ".T"}).status, 2);
}

}  // namespace
}  // namespace tenon::journeys
