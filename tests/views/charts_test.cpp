// Which metrics stand together.
#include "views/training/charts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tenon::views {
namespace {

const std::vector<std::string> kMetrics{"grad_norm", "loss", "lr", "test_accuracy", "test_loss", "train_accuracy"};

std::vector<std::string> titles(const std::vector<Chart>& charts) {
  std::vector<std::string> out;
  for (const Chart& c : charts) out.push_back(c.title);
  return out;
}

TEST(Charts, by_default_a_quantity_is_a_chart) {
  const auto all = Charts().arrange(kMetrics);
  EXPECT_EQ(titles(all), (std::vector<std::string>{"loss", "accuracy", "lr", "grad_norm"}));
  EXPECT_EQ(all[0].metrics, (std::vector<std::string>{"loss", "test_loss"}));
  EXPECT_EQ(all[1].quantity, "accuracy");
}

TEST(Charts, a_person_puts_metrics_together) {
  Charts c;
  c.place("lr", "loss and rate");
  c.place("loss", "loss and rate");
  auto all = c.arrange(kMetrics);
  EXPECT_EQ(titles(all), (std::vector<std::string>{"loss and rate", "loss", "accuracy", "grad_norm"}))
      << "where the loss was";
  EXPECT_EQ(all[0].metrics, (std::vector<std::string>{"loss", "lr"}));
  EXPECT_EQ(all[0].quantity, "") << "they measure different things";
  EXPECT_EQ(all[1].metrics, (std::vector<std::string>{"test_loss"}));
  c.place("lr", "");
  c.place("loss", "loss");
  EXPECT_TRUE(c.is_default());
}

TEST(Charts, what_is_hidden_is_still_listed) {
  Charts c;
  c.hide("lr", true);
  c.set_log("loss", true);
  EXPECT_EQ(titles(c.arrange(kMetrics)), (std::vector<std::string>{"loss", "accuracy", "grad_norm"}));
  EXPECT_EQ(c.arrange(kMetrics, true).size(), 4u);
  EXPECT_FALSE(c.is_default());
  c.reset();
  EXPECT_TRUE(c.is_default());
}

TEST(Charts, are_kept_as_json_and_what_does_not_fit_is_left_out) {
  Charts c;
  c.place("lr", "mine");
  c.hide("grad_norm", true);
  c.set_log("mine", true);
  EXPECT_EQ(Charts::from_json(c.to_json()), c);
  EXPECT_TRUE(Charts::from_json(nullptr).is_default());
  for (const char* text : {"[]", "3", R"({"placed": 3, "hidden": "x", "log": [1, {}]})", R"({"placed": {"a": 1}})"})
    EXPECT_TRUE(Charts::from_json(nlohmann::json::parse(text)).is_default()) << text;
}

}  // namespace
}  // namespace tenon::views
