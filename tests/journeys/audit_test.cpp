// Where the numbers of a step begin to differ, on the command line: the step again, f64, ONNX Runtime, an ONNX file.
#include <gtest/gtest.h>

#include "engine/formats/onnx/model.h"
#include "engine/ops/view.h"
#include "tests/journeys/tenon_process.h"

namespace tenon::journeys {
namespace {

class AuditJourney : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(tenon({"new", project(), "--template", "spirals", "--set", "eval_every=0"}).status, 0);
    ASSERT_EQ(tenon({"train", project(), "--run", "r", "--max-steps", "60"}).status, 0);
  }
  std::string project() { return folder_ / "p.tenon"; }
  Outcome audit(std::vector<std::string> more) {
    more.insert(more.begin(), {"audit", project(), "r"});
    return tenon(more);
  }
  Folder folder_;
};

TEST_F(AuditJourney, the_step_again_and_each_op_in_f64) {
  const Outcome again = audit({"--step", "17"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_NE(again.out.find("give the same bits"), std::string::npos) << again.out;
  const Outcome half = audit({"--set", "amp=bf16", "--json"});
  EXPECT_EQ(half.status, 1) << half.err;
  EXPECT_GT(half.json().at(0).at("first").at("relative").get<double>(), 1e-5);
  const Outcome wide = audit({"--against", "f64", "--json", "--all"});
  ASSERT_EQ(wide.status, 0) << wide.err;
  EXPECT_EQ(wide.json().at(0).at("beyond"), 0);
  EXPECT_EQ(wide.json().at(0).at("tolerance"), 1e-4);
  EXPECT_GT(wide.json().size(), 20u) << "each op is a line";
  EXPECT_EQ(audit({"--against", "f64", "--tolerance", "1e-12"}).status, 1) << "f32 rounds";
}

TEST_F(AuditJourney, a_file_whose_node_is_wrong_is_named) {
  const std::string file = folder_ / "m.onnx";
  ASSERT_EQ(tenon({"export", project(), "r", "--format", "onnx", "-o", file}).status, 0);
  EXPECT_EQ(audit({"--against", file}).status, 0);
  formats::OnnxModel m = formats::load_onnx(file);
  std::string wrong;
  for (formats::OnnxNode& n : m.graph.nodes)
    if (n.op_type == "Tanh" || n.op_type == "Relu") n.op_type = "Sigmoid", wrong = wrong.empty() ? n.outputs[0] : wrong;
  ASSERT_FALSE(wrong.empty());
  formats::save_onnx(file, m);
  const Outcome found = audit({"--against", file, "--json"});
  EXPECT_EQ(found.status, 1);
  EXPECT_EQ(found.json().at(0).at("first").at("op"), "Sigmoid " + wrong) << found.out;
  EXPECT_NE(audit({"--against", file}).out.find(wrong), std::string::npos);
}

TEST_F(AuditJourney, onnx_runtime_agrees) {
  if (python().empty()) GTEST_SKIP() << "build/venv with ONNX Runtime is not there (packaging/test.sh makes it)";
  const Outcome same = audit({"--against", "onnx", "--python", python(), "--json"});
  ASSERT_EQ(same.status, 0) << same.err << same.out;
  EXPECT_EQ(same.json().at(0).at("unknown"), 0);
  EXPECT_GT(same.json().at(0).at("ops").get<int>(), 3);
  EXPECT_EQ(same.json().at(0).at("beside").get<std::string>().find("ONNX Runtime "), 0u);
  EXPECT_EQ(audit({"--against", "onnx", "--python", python(), "--tolerance", "1e-14"}).status, 1)
      << "another library adds up in another order";
}

TEST_F(AuditJourney, what_does_not_go_together_is_refused) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"--against", "f64", "--set", "amp=bf16"},
                                                                 {"--against", "f64", "--threads-b", "2"},
                                                                 {"--python", "python3"},
                                                                 {"--against", "file"},
                                                                 {"--against", "torch"}})
    EXPECT_EQ(audit(words).status, 2) << words[0] << " " << words.back();
  const Outcome none = audit({"--against", "onnx", "--python", "/no/such/python"});
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("pip install onnxruntime"), std::string::npos) << none.err;
}

}  // namespace
}  // namespace tenon::journeys
