// Model files in the window: dropped, searched, folded, looked at, closed while they are read; with real events.
#include <gtest/gtest.h>

#include <QApplication>
#include <QClipboard>
#include <QDateTime>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QProcess>
#include <QTest>
#include <QToolButton>
#include <filesystem>
#include <fstream>

#include "core/file.h"
#include "engine/formats/safetensors.h"
#include "tests/torchscript.h"
#include "tests/views/model_files.h"
#include "tests/views/shell/drop.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "views/frame/code_editor.h"
#include "views/model_file/model_file_model.h"

namespace tenon::views {
namespace {

class ModelFiles : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    file_name_ = dir_.filePath("blocks.onnx");
    formats::save_onnx(file_name_.toStdString(), testing::blocks_model(12));
  }
  void drop(const QStringList& files) {
    testing::drop_files(window_.get(), files);
    settle();
  }
  ModelFileModel& model() { return bench_->model<ModelFileModel>(); }
  SceneCanvas* picture() { return window_->view("model_file")->canvas(); }
  int row(const std::string& name) {
    for (int n : model().list().rows())
      if (model().outline()->tensors.at(n).name == name) return n;
    ADD_FAILURE() << "no row " << name;
    return -1;
  }
  bool details_say(const QString& text) {
    for (QLabel* l : window_->view("details")->findChildren<QLabel*>())
      if (l->toolTip().contains(text) || l->accessibleName().contains(text) || l->text().contains(text)) return true;
    return false;
  }
  bool drawn(const std::string& text) {
    const auto texts = model().last().texts();
    return std::any_of(texts.begin(), texts.end(), [&](const std::string& t) { return t.find(text) != t.npos; });
  }
  /// A file of one tensor of that many bytes, none of which is on the disk.
  QString large(const char* name, uint64_t bytes) {
    const QString path = dir_.filePath(name);
    const std::string header = "{\"w\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(bytes) +
                               "],\"data_offsets\":[0," + std::to_string(bytes) + "]}}";
    const uint64_t length = header.size();
    std::ofstream(path.toStdString(), std::ios::binary)
        << std::string(reinterpret_cast<const char*>(&length), 8) << header;
    std::filesystem::resize_file(path.toStdString(), 8 + length + bytes);
    return path;
  }
  static constexpr uint64_t kTooLongToRead = uint64_t{64} << 30;  // before a hand has cancelled it, on any machine
  QString file_name_;
};

TEST_F(ModelFiles, the_code_of_a_torchscript_program_is_a_page_to_read) {
  const QString file = dir_.filePath("net.pt");
  write_file(file.toStdString(), torchscript_program());
  make_window();
  drop({file});
  ASSERT_EQ(bench_->documents().size(), 1u) << (problems_.empty() ? "" : problems_.back());
  auto* page = window_->findChild<QToolButton*>("model_file.code");
  ASSERT_TRUE(page->isVisible());
  press("model_file.code");
  settle();
  auto* sources = window_->findChild<QListWidget*>("model_file.sources");
  auto* text = window_->findChild<CodeEditor*>("model_file.code_text");
  ASSERT_EQ(sources->count(), 2);
  until([text] { return text->toPlainText().startsWith("class Net(Module):"); });
  EXPECT_TRUE(text->isReadOnly());
  text->setFocus();
  QTest::keyClicks(text, "x");
  QTest::keyClick(text, Qt::Key_Return);
  EXPECT_TRUE(text->toPlainText().startsWith("class Net(Module):")) << "it is not written to";
  click(sources->viewport(), sources->visualItemRect(sources->item(1)).center());
  until([text] { return text->toPlainText().startsWith("class Block"); });
  // A file without code has no such page; the one before comes back to what was read in it.
  drop({file_name_});
  EXPECT_FALSE(page->isVisible());
  EXPECT_EQ(model().page(), ModelFileModel::Page::tensors);
  bench_->select(Selection::of_document(bench_->documents()[0].id, "test"));
  settle();
  ASSERT_TRUE(window_->commands().run("model_file.code"));
  settle();
  until([text] { return text->toPlainText().startsWith("class Block"); });
  EXPECT_EQ(sources->currentRow(), 1);
}

TEST_F(ModelFiles, dropped_searched_folded_and_looked_at) {
  make_window();
  drop({file_name_});
  ASSERT_EQ(bench_->documents().size(), 1u) << (problems_.empty() ? "" : problems_.back());
  EXPECT_FALSE(window_->view("model_file")->visibleRegion().isEmpty()) << "it comes to the front";
  EXPECT_TRUE(details_say("blocks.onnx"));
  EXPECT_TRUE(details_say("an ONNX model"));
  SceneCanvas* c = picture();
  c->setFocus();
  settle();
  // The blocks are one row; its arrow unfolds them.
  EXPECT_TRUE(drawn("×12"));
  click(c, place(c, {ScopeList::fold, row("0 … 11")}));
  settle();
  EXPECT_FALSE(drawn("reading"));
  const int third = row("3");
  QTest::mouseDClick(c, Qt::LeftButton, {}, place(c, {ScopeList::row, third}));
  settle();
  // Words in the field, then Enter: the first that fits is chosen, its details and its statistics are there.
  QTest::keyClick(c, Qt::Key_Slash);
  auto* search = window_->findChild<QLineEdit*>("model_file.search");
  ASSERT_TRUE(search->hasFocus());
  QTest::keyClicks(search, "layers.7 weight");
  EXPECT_EQ(window_->findChild<QLabel*>("model_file.found")->accessibleName().isEmpty(), false);
  EXPECT_EQ(model().found_text(), "1 of 25 tensors");
  key(search, Qt::Key_Return);
  settle();
  EXPECT_TRUE(bench_->bus.current().same(Selection::file_tensor(bench_->documents()[0].id, "layers.7.conv.weight")));
  EXPECT_TRUE(details_say("layers.7.conv.weight"));
  EXPECT_TRUE(details_say("[4, 4, 3, 3]"));
  ASSERT_TRUE(model().pane().stats());
  EXPECT_EQ(model().pane().stats()->count, 144);
  EXPECT_EQ(model().pane().stats()->min, -5);
  EXPECT_EQ(model().pane().stats()->bins.size(), 64u);
  ASSERT_TRUE(model().pane().slice());
  EXPECT_TRUE(drawn("Statistics"));
  EXPECT_TRUE(drawn("mean"));
  // Another slice of it is read.
  c->setFocus();
  key(c, Qt::Key_BracketRight);
  settle();
  EXPECT_EQ(model().pane().slice()->index, (Dims{0, 1, 0, 0}));
  EXPECT_EQ(model().pane().slice()->cells[0], -0.5);
  search->clear();
  settle();
  click(c, place(c, {ScopeList::row, row("3")}));
  settle();
  // The way back, and its name by the other button.
  bench_->select(Selection::file_tensor(bench_->documents()[0].id, "head.weight", "test"));
  settle();
  EXPECT_EQ(model().chosen_name(), "head.weight");
  ASSERT_TRUE(window_->commands().run("go.back"));
  settle();
  EXPECT_EQ(model().chosen_name(), "layers.7.conv.weight");
  const QPoint there = place(c, {ScopeList::row, model().list().focus()});
  QTest::mouseClick(c, Qt::RightButton, {}, there);
  QContextMenuEvent menu_event(QContextMenuEvent::Mouse, there, c->mapToGlobal(there));
  QApplication::sendEvent(c, &menu_event);
  auto* menu = window_->findChild<QMenu*>("model_file.menu");
  ASSERT_NE(menu, nullptr);
  ASSERT_TRUE(QTest::qWaitForWindowExposed(menu));
  click(menu, menu->actionGeometry(window_->commands().action("model_file.copy_name")).center());
  EXPECT_EQ(QApplication::clipboard()->text(), "layers.7.conv.weight");
}

TEST_F(ModelFiles, alone_it_has_the_room_of_what_only_a_project_fills) {
  make_window();
  View *file = window_->view("model_file"), *training = window_->view("training");
  bench_->open(file_name_);
  settle();
  EXPECT_TRUE(training->visibleRegion().isEmpty());
  EXPECT_GT(file->height(), window_->height() * 3 / 4);
  // What is asked for comes to its place all the same.
  ASSERT_TRUE(window_->show_view("jobs"));
  settle();
  EXPECT_FALSE(window_->view("jobs")->visibleRegion().isEmpty());
  EXPECT_LT(file->height(), window_->height() * 3 / 4);
  EXPECT_TRUE(training->visibleRegion().isEmpty());
  // A project that comes to it is looked at as projects are.
  open_spirals();
  EXPECT_FALSE(training->visibleRegion().isEmpty());
}

TEST_F(ModelFiles, the_graph_is_a_page_that_unfolds) {
  make_window();
  drop({file_name_});
  press("model_file.graph");
  settle();
  SceneCanvas* c = picture();
  EXPECT_EQ(model().graph().layout().cells.size(), 4u);
  auto cell = [&](const std::string& name) {
    for (const auto& at : model().graph().layout().cells)
      if (model().graph().graph().tree.at(at.node).name == name) return at.node;
    return -1;
  };
  QTest::mouseDClick(c, Qt::LeftButton, {}, place(c, {GraphPane::cell, cell("0 … 11")}));
  settle();
  EXPECT_EQ(model().graph().layout().cells.size(), 15u);
  QTest::mouseDClick(c, Qt::LeftButton, {}, place(c, {GraphPane::cell, cell("0")}));
  settle();
  ASSERT_EQ(model().graph().layout().cells.size(), 17u);
  click(c, place(c, {GraphPane::cell, cell("Conv")}));
  settle();
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::file_node);
  EXPECT_TRUE(details_say("pads"));
  EXPECT_TRUE(details_say("layers.0.conv.weight"));
  // Keys and the wheel.
  c->setFocus();
  key(c, Qt::Key_Down);
  settle();
  EXPECT_EQ(bench_->bus.current().id, 1);
  key(c, Qt::Key_F);
  key(c, Qt::Key_Backspace);
  settle();
  EXPECT_EQ(model().graph().layout().cells.size(), 15u);
  auto* search = window_->findChild<QLineEdit*>("model_file.search");
  search->setFocus();
  QTest::keyClicks(search, "Relu");
  EXPECT_EQ(model().found_text(), "12 of 39 nodes");
  press("model_file.unfold");
  settle();
  EXPECT_EQ(model().graph().layout().cells.size(), 39u);
  // A link among the details leads to the other page.
  bench_->select(Selection::file_tensor(bench_->documents()[0].id, "head.weight", "details"));
  settle();
  EXPECT_EQ(model().page(), ModelFileModel::Page::tensors);
}

TEST_F(ModelFiles, reading_can_be_cancelled_and_the_file_closed_meanwhile) {
  make_window();
  drop({large("large.safetensors", kTooLongToRead)});
  ASSERT_EQ(bench_->documents().size(), 1u) << (problems_.empty() ? "" : problems_.back());
  const int id = bench_->documents()[0].id;
  bench_->select(Selection::file_tensor(id, "w", "test"));
  auto reads = [this] { return bench_->jobs.has("model file statistics"); };
  // The picture is at rest once the values of the slice, which stand above the statistics, are drawn.
  int quiet = 0;
  until([&] {
    quiet = reads() && drawn("reading,") && !bench_->jobs.has("model file slice") ? quiet + 1 : 0;
    return quiet > 5;
  });
  SceneCanvas* c = picture();
  click(c, place(c, {TensorPane::cancel, 0}));
  settle();
  EXPECT_FALSE(reads());
  EXPECT_TRUE(drawn("cancelled"));
  EXPECT_FALSE(model().pane().stats());
  click(c, place(c, {TensorPane::read_again, 0}));
  until([&] { return reads() && drawn("reading,"); });
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  settle();
  EXPECT_TRUE(bench_->documents().empty());
  EXPECT_FALSE(reads());
  EXPECT_TRUE(window_->view("model_file")->empty());
  EXPECT_TRUE(problems_.empty());
  // And with the whole window.
  drop({large("again.safetensors", kTooLongToRead)});
  bench_->select(Selection::file_tensor(bench_->documents().at(0).id, "w", "test"));
  until([&] { return reads(); });
}

/// As a script does that saves its weights once more: it cuts the file short first.
TEST_F(ModelFiles, a_file_that_another_program_writes_over_is_told_of_and_opened_again) {
  make_window();
  const QString path = large("large.safetensors", kTooLongToRead);
  drop({path});
  ASSERT_EQ(bench_->documents().size(), 1u);
  const int id = bench_->documents()[0].id;
  bench_->select(Selection::file_tensor(id, "w", "test"));
  auto reads = [this] { return bench_->jobs.has("model file statistics"); };
  until([&] { return reads() && drawn("reading,"); });
  EXPECT_FALSE(banner_shown());
  std::filesystem::resize_file(path.toStdString(), 100);
  until([&] { return banner_shown(); });
  EXPECT_TRUE(banner().contains("Another program changed large.safetensors")) << banner().toStdString();
  EXPECT_TRUE(banner().contains("cut short")) << banner().toStdString();
  large("large.safetensors", kTooLongToRead);
  ASSERT_NE(banner_action(), nullptr);
  click(banner_action(), banner_action()->rect().center());
  until([&] { return bench_->documents().size() == 1 && bench_->documents()[0].id != id; });
  settle();
  EXPECT_FALSE(banner_shown());
  EXPECT_TRUE(problems_.empty());
  // Whole, but another one: values are its own, and what lies where may have changed.
  std::ofstream(path.toStdString(), std::ios::binary | std::ios::app) << "new";
  until([&] { return banner_shown(); });
  EXPECT_TRUE(banner().contains("new ones or old ones")) << banner().toStdString();
  // And cut after that, of which only who reads it can tell: how it was before was told already.
  bench_->select(Selection::file_tensor(bench_->documents()[0].id, "w", "test"));
  until([&] { return reads(); });
  std::filesystem::resize_file(path.toStdString(), 100);
  until([&] { return banner().contains("cut short"); });
}

TEST_F(ModelFiles, a_project_begins_with_the_weights_of_the_shown_file) {
  open_spirals();
  drop({file_name_});
  ASSERT_EQ(bench_->documents().size(), 1u);
  press("model_file.weights");
  settle();
  EXPECT_EQ(bench_->recipe().text("init.from"), file_name_.toStdString());
  EXPECT_FALSE(window_->view("weights")->visibleRegion().isEmpty());
}

TEST_F(ModelFiles, what_cannot_be_shown_says_why) {
  make_window();
  const QString odd = dir_.filePath("odd.safetensors");
  const std::string header = R"({"q":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})";
  const uint64_t length = header.size();
  std::ofstream(odd.toStdString(), std::ios::binary)
      << std::string(reinterpret_cast<const char*>(&length), 8) << header << "abcd";
  drop({odd});
  ASSERT_EQ(bench_->documents().size(), 1u);
  bench_->select(Selection::file_tensor(bench_->documents()[0].id, "q", "test"));
  settle();
  EXPECT_TRUE(drawn("Its values cannot be shown"));
  EXPECT_TRUE(drawn("F8_E4M3"));
  const QString cut = dir_.filePath("cut.safetensors");
  std::ofstream(cut.toStdString(), std::ios::binary)
      << std::string(reinterpret_cast<const char*>(&length), 8) << header << "ab";
  drop({cut});
  EXPECT_EQ(bench_->documents().size(), 1u);
  ASSERT_FALSE(problems_.empty());
  EXPECT_NE(problems_.back().find("cut.safetensors"), std::string::npos) << problems_.back();
}

TEST_F(ModelFiles, a_picture_of_it_is_made_without_a_hand) {
  QImage pages[2];
  for (const auto& [view, i] : {std::pair("model_file", 0), std::pair("model_file/graph", 1)}) {
    const QString picture = dir_.filePath("model.png");
    QProcess program;
    program.start(QString(TENON_BINARY_DIR) + "/bin/tenon", {"shot", file_name_, "--view", view, "--select",
                                                             "weight:head.weight", "--size", "900x500", "-o", picture});
    ASSERT_TRUE(program.waitForFinished(120000));
    ASSERT_EQ(program.exitCode(), 0) << program.readAllStandardError().toStdString();
    pages[i].load(picture);
    EXPECT_EQ(pages[i].size(), QSize(900, 500));
  }
  EXPECT_NE(pages[0], pages[1]);
}

}  // namespace
}  // namespace tenon::views
