#include "views/model_file/model_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "engine/ops/create.h"
#include "tests/views/model_files.h"
#include "tests/views/scenes.h"
#include "views/model_file/run_outputs.h"

namespace tenon::views {
namespace {

using formats::OnnxFeed;

/// y = x / x, of which zeros make NaN, and the size of x.
formats::OnnxModel dividing() {
  formats::OnnxModel m;
  m.graph.inputs = {{.name = "x", .typed = true, .ranked = true, .shape = {{-1, "N"}, {4, ""}}}};
  m.graph.outputs = {{.name = "y", .typed = true}, {.name = "s", .typed = true, .dtype = DType::i64}};
  m.graph.nodes = {{"ratio", "Div", "", {"x", "x"}, {"y"}, {}}, {"sizes", "Shape", "", {"x"}, {"s"}, {}}};
  return m;
}

TEST(ModelRuns, outputs_are_a_table_with_what_their_values_are_like) {
  const ModelRun run = run_model(dividing(), {{.from = OnnxFeed::From::ones, .shape = {3, 4}}});
  ASSERT_TRUE(run.ok()) << run.error;
  EXPECT_EQ(run.nodes, 2);
  EXPECT_NE(run.sentence().find("2 nodes ran in "), std::string::npos) << run.sentence();
  EXPECT_NE(run.sentence().find(": 2 outputs"), std::string::npos) << run.sentence();
  const Table t = run.table();
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_EQ(t.rows[0].cells[0].text, "y");
  EXPECT_EQ(t.rows[0].cells[1].text, "[3, 4]");
  EXPECT_EQ(t.rows[0].cells[3].key, 1);
  EXPECT_EQ(t.rows[0].cells[5].text, "0");
  EXPECT_EQ(t.rows[1].cells[6].text, "i64");
  EXPECT_EQ(t.rows[1].cells[2].key, 3);
  EXPECT_EQ(t.rows[1].cells[4].key, 4);
  // Not a number is counted, and nothing is said of what is not there.
  const ModelRun none = run_model(dividing(), {{.from = OnnxFeed::From::zeros, .shape = {3, 4}}});
  EXPECT_EQ(none.table().rows[0].cells[5].text, "12");
  EXPECT_EQ(none.table().rows[0].cells[2].text, "–");
}

TEST(ModelRuns, a_failure_names_the_node_and_a_stop_is_no_failure) {
  formats::OnnxModel m = dividing();
  m.graph.initializers.emplace_back("w", full({5, 2}, 1));
  m.graph.nodes.push_back({"product", "MatMul", "", {"y", "w"}, {"z"}, {}});
  m.graph.outputs.push_back({.name = "z", .typed = true});
  const ModelRun failed = run_model(m, {{.shape = {3, 4}}});
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(failed.failed_value, "z");
  EXPECT_NE(failed.sentence().find("MatMul 'product'"), std::string::npos) << failed.sentence();
  EXPECT_TRUE(failed.table().rows.empty());
  const ModelRun misfed = run_model(m, {{.shape = {3, 7}}});
  EXPECT_NE(misfed.error.find("does not fit"), std::string::npos) << misfed.error;
  EXPECT_TRUE(misfed.failed_value.empty()) << "no node is at fault";
  const ModelRun stopped = run_model(m, {{.shape = {3, 4}}}, [](int64_t done, int64_t) { return done < 1; });
  EXPECT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.sentence(), "The run was stopped.");
  EXPECT_TRUE(stopped.failed_value.empty());
}

TEST(ModelRuns, what_cannot_be_run_says_why_and_what_can_be_done) {
  EXPECT_FALSE(why_no_run(*testing::blocks_file(1)));
  EXPECT_FALSE(why_no_run(testing::blocks_model(1)));
  formats::ModelFile file;
  file.kind = formats::FileKind::safetensors;
  EXPECT_NE(why_no_run(file).why.find("weights alone"), std::string::npos);
  EXPECT_NE(why_no_run(file).hint.find("torch.onnx.export"), std::string::npos);
  for (const formats::FileKind kind : {formats::FileKind::torchscript, formats::FileKind::torch_export}) {
    file.kind = kind;
    EXPECT_FALSE(why_no_run(file));
  }
  formats::OnnxModel m = dividing();
  m.graph.nodes[0].op_type = "Sparkle";
  EXPECT_NE(why_no_run(m).why.find("operator Sparkle"), std::string::npos);
  m = dividing();
  m.graph.inputs[0].form = formats::OnnxValue::Form::sequence;
  EXPECT_NE(why_no_run(m).why.find("input x is no tensor"), std::string::npos);
}

TEST(ModelRuns, an_output_is_looked_at_as_a_tensor_of_a_file_is) {
  const auto run = std::make_shared<const ModelRun>(
      run_model(testing::blocks_model(2), {{.from = OnnxFeed::From::seed, .seed = 3, .shape = {2, 4, 8, 8}}}));
  ASSERT_TRUE(run->ok()) << run->error;
  RunOutputs outputs;
  int asked = 0;
  outputs.on_choose = [&] { ++asked; };
  outputs.show(run);
  EXPECT_EQ(asked, 1);
  ASSERT_TRUE(outputs.wants_slice());
  const auto read = [&] {
    const TensorPane& p = outputs.pane();
    outputs.set_slice(p.file(), p.tensor(), read_slice(run->outputs[0].second, p.row_axis(), p.col_axis(), p.index()));
  };
  read();
  EXPECT_FALSE(outputs.wants_slice());
  const Scene& scene = outputs.frame({420, 700});
  EXPECT_TRUE(shows(scene, "f32 · [2, 4, 10, 10]")) << scene.dump();
  EXPECT_TRUE(shows(scene, "mean"));
  EXPECT_TRUE(scene.overlaps().empty()) << scene.overlaps().front();
  ASSERT_TRUE(outputs.key({.key = "]", .text = {}, .mods = {}}));
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(outputs.wants_slice());
  read();
  EXPECT_NE(outputs.summary().find("slice [0, 1, 0, 0]"), std::string::npos) << outputs.summary();
  outputs.show(nullptr);
  EXPECT_NE(outputs.summary().find("not run yet"), std::string::npos);
}

}  // namespace
}  // namespace tenon::views
