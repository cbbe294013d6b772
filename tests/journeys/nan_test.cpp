// A run that stopped being finite is explained.
#include <gtest/gtest.h>

#include "projects/project.h"
#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

void expect_origin(const nlohmann::json& j) {
  EXPECT_EQ(j.at("found"), true);
  EXPECT_FALSE(j.at("op").get<std::string>().empty());
  EXPECT_FALSE(j.at("module").get<std::string>().empty());
  EXPECT_FALSE(j.at("index").empty());
  EXPECT_FALSE(j.at("sentence").get<std::string>().empty());
  ASSERT_FALSE(j.at("operands").empty());
  for (const auto& o : j.at("operands")) EXPECT_EQ(o.at("not_finite"), 0) << "its inputs were finite: " << o.dump();
}

struct NanJourney : ::testing::Test {
  Folder folder;
  std::string project = folder / "p.tenon";
  void make(const std::string& name) { ASSERT_EQ(tenon({"new", project, "--template", name}).status, 0); }
};

TEST_F(NanJourney, a_planted_value_is_traced_to_its_sample) {
  make("spirals");
  const Outcome trained =
      tenon({"train", project, "--run", "planted", "--set", "data.nan_sample=77", "--set", "data.nan_value_index=1"});
  EXPECT_EQ(trained.status, 1);
  EXPECT_NE(trained.err.find("not finite"), std::string::npos) << trained.err;
  EXPECT_NE(trained.err.find("tenon nan"), std::string::npos) << "it says what to do: " << trained.err;
  const Outcome found = tenon({"nan", project, "planted", "--json"});
  ASSERT_EQ(found.status, 0) << found.err;
  const auto j = found.json().at(0);
  EXPECT_EQ(j.at("found"), true);
  EXPECT_EQ(j.at("sample"), 77);
  EXPECT_EQ(j.at("value"), "nan");
  EXPECT_EQ(j.at("index").at(1), 1) << "which value of the sample";
  EXPECT_GE(j.at("step").get<int>(), 1);
  EXPECT_FALSE(j.at("operands").empty());
}

TEST_F(NanJourney, a_learning_rate_of_a_million_is_traced_to_the_op) {
  if (!has_fashion_mnist()) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  make("fashion-mlp");
  const Outcome trained = tenon({"train", project, "--run", "wild", "--max-steps", "60", "--set", "optimizer.type=sgd",
                                 "--set", "optimizer.lr=1e6"});
  EXPECT_EQ(trained.status, 1) << trained.out;
  const Outcome found = tenon({"nan", project, "wild", "--json"});
  ASSERT_EQ(found.status, 0) << found.err;
  expect_origin(found.json().at(0));
  // The same on one thread, and when asked again.
  EXPECT_EQ(tenon({"nan", project, "wild", "--json", "--threads", "1"}).out, found.out);
}

TEST_F(NanJourney, a_learning_rate_of_a_million_on_generated_data) {
  make("spirals");
  const Outcome trained =
      tenon({"train", project, "--run", "wild", "--set", "optimizer.lr=1e6", "--set", "optimizer.type=sgd"});
  EXPECT_EQ(trained.status, 1) << trained.out;
  const Outcome found = tenon({"nan", project, "wild", "--json"});
  ASSERT_EQ(found.status, 0) << found.err;
  expect_origin(found.json().at(0));
  EXPECT_EQ(found.json().at(0).at("phase"), "forward");
}

TEST_F(NanJourney, an_update_that_overflows_is_traced_to_the_optimizer) {
  make("spirals");
  {
    // Saturating activations keep the loss finite, however large the weights are.
    auto p = projects::Project::open(project);
    ModelSpec m = p->model();
    for (LayerSpec& l : m.layers)
      if (l.type == "ReLU") l.type = "Tanh";
    p->set_model(m);
  }
  // With such a rate weight decay multiplies the weights by -1e6 a step; the loss notices a step after an update has
  // overflowed.
  const Outcome trained = tenon({"train", project, "--run", "wild", "--set", "optimizer.type=sgd", "--set",
                                 "optimizer.lr=1e6", "--set", "optimizer.weight_decay=1"});
  EXPECT_EQ(trained.status, 1) << trained.out;
  const Outcome found = tenon({"nan", project, "wild", "--json"});
  ASSERT_EQ(found.status, 0) << found.err;
  expect_origin(found.json().at(0));
  EXPECT_EQ(found.json().at(0).at("phase"), "optimizer");
}

TEST_F(NanJourney, a_clean_run_is_called_clean) {
  make("spirals");
  ASSERT_EQ(tenon({"train", project, "--max-steps", "20"}).status, 0);
  const Outcome found = tenon({"nan", project, "--json"});
  EXPECT_EQ(found.status, 0);
  EXPECT_EQ(found.json().at(0).at("found"), false);
}

}  // namespace
}  // namespace tenon::journeys
