// The promise of the first example: real images, learnt to 90 % and more in three epochs, the same number every time.
#include <gtest/gtest.h>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

TEST(Fashion, the_convolutional_network_reaches_90_percent_at_its_default_recipe) {
  if (!has_fashion_mnist()) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  Folder folder;
  const std::string path = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", path, "--template", "fashion-cnn"}).status, 0);
  const Outcome trained = tenon({"train", path, "--run", "r"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome runs = tenon({"runs", path, "--json"});
  ASSERT_EQ(runs.json().size(), 1u);
  EXPECT_EQ(runs.json()[0].at("status"), "finished");
  EXPECT_EQ(runs.json()[0].at("steps"), 3 * 938);
  // Evaluated anew from the last checkpoint, on the 10,000 test images: what training noted, to the last bit.
  const auto evaluated = tenon({"eval", path, "r", "--checkpoint", "last", "--json"}).json().at(0);
  EXPECT_EQ(evaluated.at("samples"), 10000);
  EXPECT_GE(evaluated.at("accuracy").get<double>(), 0.90);
  const Outcome noted = tenon({"metrics", path, "r", "test_accuracy", "--json"});
  EXPECT_EQ(noted.json().back().at("value").get<double>(), evaluated.at("accuracy").get<double>());
}

}  // namespace
}  // namespace tenon::journeys
