// A folder of traces as one session: together, rank by rank, and one of them.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

/// Two steps of a rank whose clock is `ahead` microseconds ahead, with a collective that ends on all ranks at once and
/// a kernel of its own.
void write_rank(const std::string& file, int rank, int64_t ahead, int64_t kernel_us) {
  nlohmann::json t;
  t["distributedInfo"] = {{"backend", "nccl"}, {"rank", rank}, {"world_size", 3}};
  auto slice = [&](const char* cat, const std::string& name, int64_t pid, int64_t tid, int64_t ts, int64_t dur,
                   nlohmann::json args) {
    t["traceEvents"].push_back({{"ph", "X"},
                                {"cat", cat},
                                {"name", name},
                                {"pid", pid},
                                {"tid", tid},
                                {"ts", ts + ahead},
                                {"dur", dur},
                                {"args", args}});
  };
  for (int64_t step = 0; step < 4; ++step) {
    const int64_t at = 1000000 + step * 1000;
    slice("user_annotation", "ProfilerStep#" + std::to_string(step), 100, 100, at, 990, nlohmann::json::object());
    slice("cuda_runtime", "cudaLaunchKernel", 100, 100, at + 10, 5, {{"correlation", step * 2 + 1}});
    slice("kernel", "gemm", 0, 7, at + 30, kernel_us, {{"correlation", step * 2 + 1}});
    slice("cuda_runtime", "cudaLaunchKernel", 100, 100, at + 20, 5, {{"correlation", step * 2 + 2}});
    slice("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 20, at + 30 + kernel_us, 900 - 30 - kernel_us,
          {{"correlation", step * 2 + 2}});
  }
  std::ofstream(file) << t.dump();
}

TEST(RanksOfASession, AreAlignedTogetherAndAskedOneByOne) {
  Folder folder;
  const int64_t ahead[] = {0, 250, -40}, kernel[] = {300, 200, 700};
  for (int r = 0; r < 3; ++r) write_rank(folder / ("rank" + std::to_string(r) + ".json"), r + 4, ahead[r], kernel[r]);
  auto all = tenon({"trace", "ranks", folder.path(), "--json"});
  ASSERT_EQ(all.status, 0) << all.err;
  auto session = all.json().at(0);
  EXPECT_EQ(session["skew_ns"], 250000);
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(session["ranks"][r]["rank"], std::to_string(r + 4));
    EXPECT_EQ(session["ranks"][r]["ahead_ns"], ahead[r] * 1000);
  }
  EXPECT_NE(session["sentence"].get<std::string>().find("Rank 6 comes last"), std::string::npos) << session["sentence"];

  auto each = tenon({"trace", "kernels", folder.path(), "--json"});
  ASSERT_EQ(each.status, 0) << each.err;
  auto lines = each.json();
  ASSERT_EQ(lines.size(), 3u);
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(lines[r]["rank"], std::to_string(r + 4));
    EXPECT_EQ(lines[r]["file"], "rank" + std::to_string(r) + ".json");
    EXPECT_EQ(lines[r]["total_ns"], 4 * 870 * 1000);
  }
  auto one = tenon({"trace", "kernels", folder.path(), "--rank", "6", "--json"});
  ASSERT_EQ(one.status, 0) << one.err;
  const auto only = one.json();
  ASSERT_EQ(only.size(), 1u);
  for (const auto& k : only[0]["kernels"])
    if (k["name"] == "gemm") {
      EXPECT_EQ(k["total_ns"], 4 * 700 * 1000);
    }
  auto none = tenon({"trace", "kernels", folder.path(), "--rank", "9"});
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.err.find("there are 4, 5, 6"), std::string::npos) << none.err;
  EXPECT_EQ(tenon({"trace", "diff", folder.path()}).status, 2);
}

TEST(RanksOfASession, OneThatIsBrokenKeepsNoneOfTheOthersFromBeingAnswered) {
  Folder folder;
  write_rank(folder / "rank0.json", 0, 0, 300);
  std::ofstream(folder / "rank1.json") << "this is no trace";
  write_rank(folder / "rank2.json", 2, 0, 300);
  const auto each = tenon({"trace", "why", folder.path(), "--json"});
  EXPECT_EQ(each.status, 1) << "it is told that something is missing";
  ASSERT_EQ(each.json().size(), 2u);
  EXPECT_EQ(each.json()[0]["file"], "rank0.json");
  EXPECT_EQ(each.json()[1]["file"], "rank2.json");
  EXPECT_NE(each.err.find("rank1.json"), std::string::npos) << each.err;
  EXPECT_EQ(each.err.find("rank0.json"), std::string::npos) << each.err;
  const auto one = tenon({"trace", "why", folder.path(), "--rank", "2", "--json"});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(one.json().size(), 1u);
  Folder broken;
  std::ofstream(broken / "rank0.json") << "this is no trace";
  std::ofstream(broken / "rank1.json") << "nor is this";
  const auto none = tenon({"trace", "why", broken.path()});
  EXPECT_EQ(none.status, 1);
  EXPECT_TRUE(none.out.empty());
}

}  // namespace
}  // namespace tenon::journeys
