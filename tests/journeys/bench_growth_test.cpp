// The benchmark of growth, in its smallest form: the sizes that were asked for, each the net that it says.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

using Json = nlohmann::json;

std::vector<Json> growth_rows(std::vector<std::string> words) {
  words.insert(words.begin(), {"bench", "growth", "--json", "--threads", "2"});
  const Outcome o = tenon(words);
  EXPECT_EQ(o.status, 0) << o.err;
  return o.json();
}

TEST(BenchGrowth, an_axis_goes_upwards_in_powers_of_two) {
  for (const std::string axis : {"batch", "width"}) {
    const auto rows = growth_rows({"--net", "mlp", "--axis", axis, "--seconds", "0.2"});
    ASSERT_GE(rows.size(), 2u) << axis;
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i].at("net"), "mlp");
      EXPECT_EQ(rows[i].at("axis"), axis);
      EXPECT_EQ(rows[i].at("at"), (axis == "batch" ? 8 : 64) << i);
      EXPECT_GT(rows[i].at("step_ms").get<double>(), 0);
      EXPECT_GT(rows[i].at("peak_rss").get<double>(), rows[i].at("rss_before").get<double>());
      const int64_t w = axis == "batch" ? 512 : rows[i].at("at").get<int64_t>();
      EXPECT_EQ(rows[i].at("parameters"), (784 * w + w) + (w * w + w) + (10 * w + 10));
    }
  }
}

TEST(BenchGrowth, what_would_outlast_the_time_is_left_out_and_said) {
  const Outcome o =
      tenon({"bench", "growth", "--json", "--net", "gpt", "--axis", "length", "--seconds", "0.01", "--threads", "2"});
  ASSERT_EQ(o.status, 0) << o.err;
  ASSERT_FALSE(o.json().empty()) << "the first size is always measured";
  EXPECT_LT(o.json().size(), 7u) << "1024 tokens in a hundredth of a second";
  EXPECT_NE(o.err.find("gpt with a length of"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("is left out"), std::string::npos) << o.err;
}

TEST(BenchGrowth, each_size_is_measured_alone_too_and_deeper_or_wider_nets_have_more_parameters) {
  const auto one = [](const char* net, const char* axis, const char* at) {
    const auto rows = growth_rows({"--net", net, "--axis", axis, "--at", at, "--seconds", "0.01"});
    EXPECT_EQ(rows.size(), 1u);
    return rows.at(0).at("parameters").get<int64_t>();
  };
  for (const char* net : {"mlp", "cnn", "gpt"})
    for (const char* axis : {"width", "depth"}) EXPECT_LT(one(net, axis, "4"), one(net, axis, "8")) << net << axis;
  EXPECT_EQ(one("cnn", "batch", "2"), 421642) << "of the workload cnn: 320 + 18496 + 401536 + 1290";
  EXPECT_EQ(one("cnn", "length", "56") - one("cnn", "length", "28"), 64 * (14 * 14 - 7 * 7) * 128);
  // 2 embeddings, 4 blocks of two norms and four linear layers, a norm, a head without bias
  const int64_t block =
      4 * 256 + (3 * 256 * 256 + 3 * 256) + (256 * 256 + 256) + (4 * 256 * 256 + 4 * 256) + (4 * 256 * 256 + 256);
  EXPECT_EQ(one("gpt", "batch", "1"), 256 * 256 + 128 * 256 + 4 * block + 2 * 256 + 256 * 256);
  EXPECT_EQ(one("gpt", "length", "16"), 256 * 256 + 16 * 256 + 4 * block + 2 * 256 + 256 * 256);
}

TEST(BenchGrowth, words_that_do_not_fit_are_told) {
  const auto refused = [](std::vector<std::string> words, const char* says) {
    words.insert(words.begin(), {"bench", "growth"});
    const Outcome o = tenon(words);
    EXPECT_EQ(o.status, 2) << o.err;
    EXPECT_NE(o.err.find(says), std::string::npos) << o.err;
  };
  refused({"--net", "mpl"}, "mlp");
  refused({"--axis", "breadth"}, "batch, width, depth, length");
  refused({"--at", "4"}, "one axis of one net");
  refused({"--net", "mlp", "--axis", "length"}, "mlp has no length");
}

TEST(BenchGrowth, pictures_and_a_table_are_drawn_of_what_was_measured) {
  const Folder folder;
  Json rows = Json::array();
  // Tenon's time grows with the third power of the batch where PyTorch's grows in proportion; the memory of both does.
  // At the last size PyTorch takes four times as long, and its rounds do not agree.
  for (const int64_t at : {8, 16, 32, 64}) {
    const double n = static_cast<double>(at), late = at == 64 ? 4 : 1;
    const auto side = [&](double ms, const std::vector<double>& rounds) {
      return Json{{"step_ms", ms}, {"peak", n * 3e6}, {"net", n * 2e6}, {"rounds_ms", rounds}};
    };
    rows.push_back({{"net", "mlp"},
                    {"axis", "batch"},
                    {"at", at},
                    {"parameters", 669706},
                    {"flop", n * 4e6},
                    {"tenon", side(n * n * n / 1000, {n * n * n / 1000})},
                    {"torch", side(late * n / 10, {late * n / 10, late * late * n / 10})}});
  }
  std::ofstream(folder / "rows.json") << rows;
  const Outcome o = run({"python3", TENON_SOURCE_DIR "/tests/bench/growth.py", "nowhere", folder / "drawn", "--from",
                         folder / "rows.json"});
  if (o.status == 127) GTEST_SKIP() << "no python3 on the path";
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(slurp(folder / "drawn/growth.md") + "\n", o.out);
  EXPECT_NE(o.out.find("| 3.00 | 1.00 | 1.00 | 32 | 32 | 1.00 | 1.00 | 1.00 | time of Tenon |"), std::string::npos)
      << o.out;
  EXPECT_NE(o.out.find("| time of Tenon, (PyTorch scattered: time not judged) |"), std::string::npos) << o.out;
  EXPECT_EQ(o.out.find("time of PyTorch"), std::string::npos) << "nothing of PyTorch is known to be super-linear";
  const std::string svg = slurp(folder / "drawn/mlp_batch.svg");
  for (const char* said : {"samples of a batch", "time of a step, ms", "MB", "Tenon", "PyTorch", "</svg>"})
    EXPECT_NE(svg.find(said), std::string::npos) << said;
}

}  // namespace
}  // namespace tenon::journeys
