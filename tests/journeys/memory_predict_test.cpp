// What a run will need, on the command line, and that what is proposed does as it says.
#include <gtest/gtest.h>

#include <set>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

struct MemoryPredict : ::testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon";
  void SetUp() override {
    ASSERT_EQ(tenon({"new", project, "--template", "u-net", "--set", "data.samples=64"}).status, 0);
  }
  std::vector<nlohmann::json> told(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"memory", "predict", project, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome o = tenon(words);
    EXPECT_EQ(o.status, 0) << o.err;
    return o.json();
  }
};

TEST_F(MemoryPredict, it_is_what_the_recording_of_a_run_then_holds) {
  const std::vector<std::string> batch{"--set", "data.batch_size=8"};
  const auto lines = told(batch);
  const nlohmann::json f = lines.at(0).at("forecast");
  EXPECT_EQ(f.at("batch"), 8);
  EXPECT_TRUE(f.at("fits"));
  EXPECT_EQ(f.at("needed_bytes"),
            f.at("held_with_evaluation_bytes").get<int64_t>() + f.at("checkpoint_bytes").get<int64_t>());
  int64_t of_layers = 0;
  std::set<std::string> layers;
  for (const auto& j : lines)
    if (j.contains("layer")) {
      layers.insert(j.at("layer").get<std::string>());
      for (const auto& [category, bytes] : j.at("at_peak").items()) of_layers += bytes.get<int64_t>();
    }
  EXPECT_EQ(of_layers, f.at("peak_bytes").get<int64_t>()) << "every byte belongs to a layer, or to none";
  EXPECT_GT(layers.size(), 5u);
  // The recording counts bytes that were asked for, the pool those of whole blocks.
  ASSERT_EQ(tenon({"recipe", project, "--set", "data.batch_size=8", "--set", "data.workers=0"}).status, 0);
  const Outcome recorded = tenon({"memory", "record", project, "-o", folder / "s.pickle", "--json"});
  ASSERT_EQ(recorded.status, 0) << recorded.err;
  const double peak = told().at(0).at("forecast").at("peak_bytes").get<double>();
  EXPECT_NEAR(recorded.json().at(0).at("peak_bytes").get<double>(), peak, 0.05 * peak);
}

TEST_F(MemoryPredict, proposals_are_settings_that_do_as_they_say) {
  int proposals = 0;
  for (const auto& j : told()) {
    if (!j.contains("proposal")) continue;
    ++proposals;
    std::vector<std::string> set;
    for (const auto& [key, text] : j.at("set").items()) {
      set.push_back("--set");
      set.push_back(key + "=" + text.get<std::string>());
    }
    EXPECT_EQ(told(set).at(0).at("forecast").at("needed_bytes"), j.at("then").at("needed_bytes")) << j.dump();
    EXPECT_GT(j.at("saved_bytes"), 0);
  }
  EXPECT_GE(proposals, 3);
}

TEST_F(MemoryPredict, says_what_does_not_fit_and_which_batch_does) {
  const Outcome o = tenon({"memory", "predict", project, "--limit-gb", "0.01"});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.out.find("it will not fit"), std::string::npos) << o.out;
  const nlohmann::json f = told({"--limit-gb", "0.01"}).at(0).at("forecast");
  EXPECT_FALSE(f.at("fits"));
  const int64_t largest = f.at("largest_batch");
  EXPECT_GT(largest, 0);
  EXPECT_TRUE(told({"--limit-gb", "0.01", "--set", "data.batch_size=" + std::to_string(largest)})
                  .at(0)
                  .at("forecast")
                  .at("fits"));
  EXPECT_FALSE(told({"--limit-gb", "0.01", "--set", "data.batch_size=" + std::to_string(largest + 1)})
                   .at(0)
                   .at("forecast")
                   .at("fits"));
  EXPECT_EQ(tenon({"memory", "predict", project, "--set", "data.batchsize=3"}).status, 2);
}

}  // namespace
}  // namespace tenon::journeys
