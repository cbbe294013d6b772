// A model that is run in the window: inputs said in lines, a run that is stopped, fails or ends, its outputs looked at
// and saved; with real events.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>

#include "engine/formats/npy.h"
#include "engine/formats/onnx/feed.h"
#include "engine/formats/safetensors.h"
#include "engine/ops/create.h"
#include "tests/views/model_files.h"
#include "tests/views/shell/drop.h"
#include "tests/views/shell/window_fixture.h"
#include "views/frame/table_list.h"
#include "views/model_file/model_file_model.h"
#include "views/model_file/model_run.h"
#include "views/model_file/run_outputs.h"

namespace tenon::views {
namespace {

class RunModels : public testing::WindowTest {
 protected:
  QString saved(const char* name, const formats::OnnxModel& m) {
    const QString path = dir_.filePath(name);
    formats::save_onnx(path.toStdString(), m);
    return path;
  }
  void open_to_run(const QString& file) {
    if (!window_) make_window();
    testing::drop_files(window_.get(), {file});
    settle();
    ASSERT_FALSE(bench_->documents().empty()) << (problems_.empty() ? "" : problems_.back());
    press("model_file.run");
    settle();
    EXPECT_FALSE(window_->findChild<QToolButton*>("model_file.as_table")->isVisible()) << "this page has no rows";
  }
  template <class W>
  W* part(const char* name) {
    return window_->view("model_file")->findChild<W*>(name);
  }
  QString said() { return part<QLabel>("model_file.run_said")->text(); }
  TableList* outputs() { return part<TableList>("model_file.outputs"); }
  RunOutputs& shown() { return static_cast<RunOutputs&>(part<SceneCanvas>("model_file.output")->model()); }
  void type(const char* name, const QString& text) {
    auto* line = part<QLineEdit>(name);
    ASSERT_TRUE(line && line->isVisible()) << name;
    line->setFocus();
    line->selectAll();
    QTest::keyClicks(line, text);
  }
  /// The entry of a box, by the keys.
  void pick(const char* name, int entry) {
    auto* box = part<QComboBox>(name);
    ASSERT_TRUE(box && box->isVisible()) << name;
    box->setFocus();
    key(box, Qt::Key_Home);
    for (int i = 0; i < entry; ++i) key(box, Qt::Key_Down);
    ASSERT_EQ(box->currentIndex(), entry);
  }
};

TEST_F(RunModels, a_torchscript_program_is_one) {
  const QString file = dir_.filePath("shapes.pt");
  ASSERT_TRUE(QFile::copy(TENON_SOURCE_DIR "/tests/fuzz/seeds/jit/shapes.traced.pt", file));
  open_to_run(file);
  EXPECT_EQ(part<QLineEdit>("model_file.shape.input")->text(), "1, 4, 6") << "as it was traced, in any batch";
  type("model_file.shape.input", "5, 4, 6");
  press("model_file.run_now");
  settle();
  until([this] { return outputs()->table().rows.size() == 2; });
  EXPECT_EQ(outputs()->table().rows[0].cells[1].text, "[5, 24]") << said().toStdString();
  EXPECT_TRUE(window_->findChild<QToolButton*>("model_file.build")->isVisible());
}

TEST_F(RunModels, from_a_seed_its_outputs_are_those_of_the_command_line) {
  open_to_run(saved("blocks.onnx", testing::blocks_model(3)));
  EXPECT_FALSE(part<QLineEdit>("model_file.search")->isVisible());
  EXPECT_EQ(part<QLineEdit>("model_file.shape.x")->text(), "1, 4, 8, 8") << "sizes that are left open begin as 1";
  type("model_file.shape.x", "2, 4, 8, 8");
  auto* seed = part<QSpinBox>("model_file.seed");
  seed->setFocus();
  seed->selectAll();
  QTest::keyClicks(seed, "7");
  press("model_file.run_now");
  settle();
  EXPECT_TRUE(said().startsWith("10 nodes ran in ")) << said().toStdString();
  const ModelRun expected =
      run_model(testing::blocks_model(3), {{.from = formats::OnnxFeed::From::seed, .seed = 7, .shape = {2, 4, 8, 8}}});
  EXPECT_EQ(outputs()->table().csv(), expected.table().csv());
  ASSERT_TRUE(shown().pane().stats());
  EXPECT_EQ(shown().pane().stats()->mean, expected.stats[0].mean);
  ASSERT_TRUE(shown().pane().slice());
  EXPECT_EQ(shown().pane().slice()->cells.size(), 100u);
  // Another slice of the output, by its key.
  auto* picture = part<SceneCanvas>("model_file.output");
  click(picture, picture->rect().center());
  key(picture, Qt::Key_BracketRight);
  settle();
  EXPECT_EQ(shown().pane().slice()->index, (Dims{0, 1, 0, 0}));
  // The table of the view is that of the outputs.
  ASSERT_TRUE(window_->view("model_file")->shown_table());
  EXPECT_EQ(window_->view("model_file")->shown_table()->rows.size(), 1u);
  answer(dir_.filePath("out.npz"));
  press("model_file.save");
  settle();
  EXPECT_TRUE(said().contains("out.npz"));
  const auto back = formats::load_npz(dir_.filePath("out.npz").toStdString());
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].first, "y");
  EXPECT_EQ(to_string(back[0].second.size()), "[2, 4, 10, 10]");
  // What was said and came out is still there behind another page.
  press("model_file.tensors");
  settle();
  EXPECT_TRUE(part<QLineEdit>("model_file.search")->isVisible());
  press("model_file.run");
  settle();
  EXPECT_EQ(outputs()->shown_rows(), 1);
  EXPECT_EQ(part<QLineEdit>("model_file.shape.x")->text(), "2, 4, 8, 8");
}

TEST_F(RunModels, values_come_from_a_file_and_what_does_not_fit_is_said) {
  const QString file = dir_.filePath("in.safetensors");
  formats::save_safetensors(file.toStdString(), {{"x", full({1, 4, 8, 8}, 0.25)}, {"other", full({2}, 1)}});
  open_to_run(saved("blocks.onnx", testing::blocks_model(1)));
  type("model_file.shape.x", "2, 5, 8, 8");
  press("model_file.run_now");
  EXPECT_TRUE(said().contains("[2, 5, 8, 8] does not fit f32 [N, 4, 8, 8]")) << said().toStdString();
  EXPECT_EQ(outputs()->shown_rows(), 0);
  pick("model_file.from.x", 3);
  EXPECT_FALSE(part<QLineEdit>("model_file.shape.x")->isVisible()) << "a file has its own shape";
  press("model_file.run_now");
  EXPECT_TRUE(said().contains("no file is named"));
  answer(file);
  press("model_file.choose.x");
  settle();
  EXPECT_EQ(part<QLineEdit>("model_file.file.x")->text(), file);
  press("model_file.run_now");
  settle();
  ASSERT_EQ(outputs()->shown_rows(), 1) << said().toStdString();
  type("model_file.file.x", dir_.filePath("none.npy"));
  key(part<QLineEdit>("model_file.file.x"), Qt::Key_Return);
  settle();
  EXPECT_TRUE(said().contains("none.npy")) << said().toStdString();
  EXPECT_EQ(outputs()->shown_rows(), 0) << "what came out before is not what this came to";
  EXPECT_TRUE(problems_.empty());
}

TEST_F(RunModels, a_node_that_fails_is_named_selected_and_shown) {
  formats::OnnxModel m = testing::blocks_model(2);
  m.graph.initializers.emplace_back("w", full({5, 5}, 1));
  m.graph.nodes.push_back({"/head/Bad", "MatMul", "", {"y", "w"}, {"z"}, {}});
  m.graph.outputs.push_back({.name = "z", .typed = true});
  open_to_run(saved("bad.onnx", m));
  press("model_file.run_now");
  settle();
  EXPECT_TRUE(said().contains("MatMul '/head/Bad'")) << said().toStdString();
  const int document = bench_->documents()[0].id;
  EXPECT_TRUE(bench_->bus.current().same(Selection::file_node(document, 7)));
  ModelFileModel& model = bench_->model<ModelFileModel>();
  EXPECT_EQ(model.page(), ModelFileModel::Page::run) << "the sentence stays in sight";
  press("model_file.fault");
  settle();
  EXPECT_EQ(model.page(), ModelFileModel::Page::graph);
  EXPECT_EQ(model.graph().item(), 7);
}

TEST_F(RunModels, a_run_is_stopped_and_its_file_closed_meanwhile) {
  formats::OnnxModel m = testing::blocks_model(400);
  open_to_run(saved("long.onnx", m));
  auto runs = [this] { return bench_->jobs.has("model file run"); };
  type("model_file.shape.x", "512, 4, 8, 8");
  press("model_file.run_now");
  until([&] { return said().contains("Node "); });
  ASSERT_TRUE(runs());
  EXPECT_FALSE(part<QToolButton>("model_file.run_now")->isEnabled());
  press("model_file.stop");
  until([&] { return !runs(); });
  settle();
  EXPECT_EQ(said(), "The run was stopped.");
  EXPECT_TRUE(part<QToolButton>("model_file.run_now")->isEnabled());
  press("model_file.run_now");
  ASSERT_TRUE(runs());
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  settle();
  EXPECT_FALSE(runs());
  EXPECT_TRUE(window_->view("model_file")->empty());
  EXPECT_TRUE(problems_.empty());
}

TEST_F(RunModels, weights_alone_say_why_they_cannot_be_run) {
  open_spirals();
  const QString file = dir_.filePath("w.safetensors");
  formats::save_safetensors(file.toStdString(), {{"w", full({2}, 1)}});
  open_to_run(file);
  bool told = false;
  for (QLabel* l : window_->view("model_file")->findChildren<QLabel*>())
    told |= l->isVisible() && l->text().contains("weights alone") && l->text().contains("torch.onnx.export()");
  EXPECT_TRUE(told);
  EXPECT_FALSE(part<QToolButton>("model_file.run_now")->isVisible());
}

}  // namespace
}  // namespace tenon::views
