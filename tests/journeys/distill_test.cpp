// A student that learns from layers inside its teacher: the term of the loss, the same bits after a stop, its export.
#include <gtest/gtest.h>

#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

/// The values of a metric, a step each.
std::vector<double> values_of(const std::string& project, const std::string& run, const std::string& metric) {
  const Outcome o = tenon({"metrics", project, run, metric, "--json"});
  EXPECT_EQ(o.status, 0) << o.err;
  std::vector<double> values;
  for (const auto& line : o.json())
    if (line.contains("value")) values.push_back(line.at("value").get<double>());
  return values;
}

TEST(DistillJourney, layers_of_the_teacher_are_learnt) {
  Folder folder;
  const std::string project = folder / "p.tenon";
  ASSERT_EQ(tenon({"new", project, "--template", "spirals"}).status, 0);
  ASSERT_EQ(tenon({"train", project, "--run", "big", "--max-steps", "40"}).status, 0);
  const std::vector<std::string> taught = {"--set", "distill.from=big@last",     "--set", "distill.features=layers.1",
                                           "--set", "distill.features_weight=5", "--set", "seed=7",
                                           "--set", "checkpoint_every=10"};
  const auto train = [&](const std::string& run, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train", project, "--run", run};
    words.insert(words.end(), taught.begin(), taught.end());
    words.insert(words.end(), more.begin(), more.end());
    return tenon(words);
  };
  const Outcome whole = train("whole", {"--max-steps", "40"});
  ASSERT_EQ(whole.status, 0) << whole.err;
  const std::vector<double> far = values_of(project, "whole", "feature_loss"),
                            outputs = values_of(project, "whole", "teacher_loss");
  ASSERT_EQ(far.size(), 40u);
  EXPECT_EQ(outputs.size(), 40u);
  EXPECT_LT(far.back(), 0.5 * far.front()) << "the layer becomes what the teacher's is";

  // Stopped in the middle and gone on with, on another number of threads.
  ASSERT_EQ(train("halves", {"--max-steps", "17", "--threads", "1"}).status, 0);
  const Outcome resumed = tenon({"train", project, "--resume", "halves", "--set", "max_steps=40", "--threads", "2"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_FALSE(digest(project, "whole", "40").empty());
  EXPECT_EQ(digest(project, "halves", "40"), digest(project, "whole", "40"));
  EXPECT_EQ(values_of(project, "halves", "feature_loss"), far);

  // Its weight may change on the way; what cannot be is said before the first step.
  EXPECT_EQ(tenon({"train", project, "--from", "whole@20", "--set", "distill.features_weight=1"}).status, 0);
  const Outcome none = train("none", {"--set", "distill.features=layer.9", "--max-steps", "2"});
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.err.find("has no layer layer.9"), std::string::npos) << none.err;
  const Outcome alone = tenon({"train", project, "--set", "distill.features=layers.1", "--max-steps", "2"});
  EXPECT_EQ(alone.status, 2);
  EXPECT_NE(alone.err.find("there is none"), std::string::npos) << alone.err;
  EXPECT_EQ(tenon({"export", project, "whole", "--format", "onnx", "-o", folder / "m.onnx", "--verify"}).status, 0);
}

}  // namespace
}  // namespace tenon::journeys
