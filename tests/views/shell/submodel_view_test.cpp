// Sub-models in the window: by the menu, the list of layers and Details.
#include <QComboBox>
#include <QLineEdit>
#include <QTest>
#include <QToolButton>

#include "engine/spec/submodel.h"
#include "engine/templates/templates.h"
#include "tests/views/shell/window_fixture.h"
#include "views/builder/builder_view.h"

namespace tenon::views::testing {
namespace {

class SubModelsByHand : public WindowTest {
 protected:
  void open_gpt() {
    file_ = dir_.filePath("t.tenon");
    const Template& t = find_template("byte-gpt");
    projects::Project::create(file_.toStdString(), t.model, t.recipe.to_json());
    open(file_);
    ASSERT_TRUE(bench_->has_project());
    c_ = canvas("builder");
    group("blocks.0");
  }
  BuilderModel& model() { return bench_->builder; }
  void group(const std::string& path) {
    model().set_selection(Selection::module(path, "test"));
    bench_->select(Selection::module(path, "test"));
    settle();
  }
  SceneCanvas* c_ = nullptr;
};

TEST_F(SubModelsByHand, details_make_rename_and_share) {
  open_gpt();
  auto* name = part<QLineEdit>("inspector.submodel");
  name->setFocus();
  QTest::keyClicks(name, "Block");
  key(name, Qt::Key_Return);
  settle();
  ASSERT_NE(find_submodel(model().spec(), "Block"), nullptr);
  EXPECT_EQ(model().undo_text(), "Make the sub-model Block");
  EXPECT_EQ(window_->findChild<QComboBox*>("inspector.weights"), nullptr) << "there is no other instance";
  c_->setFocus();
  QTest::keyClicks(c_, "B");
  QLineEdit* field = static_cast<BuilderView*>(window_->view("builder"))->picker()->field();
  QTest::keyClicks(field, "lock");
  key(field, Qt::Key_Return);
  settle();
  ASSERT_EQ(find_submodel(model().spec(), "Block")->instances.size(), 2u);
  EXPECT_TRUE(model().errors().empty()) << model().errors().front();
  const int64_t before = model().parameters();
  auto* weights = part<QComboBox>("inspector.weights");
  ASSERT_EQ(weights->count(), 2);
  weights->setFocus();
  key(weights, Qt::Key_Down);
  settle();
  EXPECT_LT(model().parameters(), before);
  EXPECT_EQ(model().weights_owner(), "blocks.0");
  name = part<QLineEdit>("inspector.submodel");
  name->setFocus();
  key(name, Qt::Key_A, Qt::ControlModifier);
  QTest::keyClicks(name, "Layer");
  key(name, Qt::Key_Return);
  settle();
  EXPECT_NE(find_submodel(model().spec(), "Layer"), nullptr);
  window_->commands().run("model.unshare");
  settle();
  EXPECT_EQ(model().parameters(), before);
  window_->commands().run("model.dissolve");
  settle();
  EXPECT_EQ(find_submodel(model().spec(), "Layer")->instances.size(), 1u);
  const ModelSpec saved = model().spec();
  close_window();
  EXPECT_EQ(projects::Project::open(file_.toStdString())->model(), saved);
}

TEST_F(SubModelsByHand, an_edit_of_one_instance_is_told) {
  open_gpt();
  ASSERT_TRUE(model().make_submodel("Block"));
  ASSERT_TRUE(model().insert_submodel("Block"));
  settle();
  model().choose("blocks.0.up");
  settle();
  auto* width = part("inspector.out_features");
  width->setFocus();
  key(width, Qt::Key_A, Qt::ControlModifier);
  QTest::keyClicks(width, "64");
  key(width, Qt::Key_Return);
  settle();
  EXPECT_EQ(model().said(), "Block changed: its other instance, too");
  EXPECT_TRUE(model().errors().empty()) << model().errors().front();
  window_->commands().run("edit.undo");
  settle();
  EXPECT_EQ(model().said(), "");
}

TEST_F(SubModelsByHand, each_instance_has_a_width_of_its_own) {
  open_gpt();
  ASSERT_TRUE(model().make_submodel("Block"));
  ASSERT_TRUE(model().insert_submodel("Block"));
  settle();
  const std::string added = model().selected_group();
  model().choose("blocks.0.up");
  settle();
  const auto own = [&] { return part<QToolButton>("own.out_features"); };
  EXPECT_EQ(own()->text(), "=");
  const auto choose_line = [&](int line) {
    QTimer::singleShot(200, window_.get(), [line] {
      QWidget* menu = QApplication::activePopupWidget();
      ASSERT_TRUE(menu);
      for (int i = 0; i < line; ++i) QTest::keyClick(menu, Qt::Key_Down);
      QTest::keyClick(menu, Qt::Key_Return);
    });
    QTest::mouseClick(own(), Qt::LeftButton);
    settle();
  };
  choose_line(2);
  EXPECT_EQ(model().undo_text(), "Each Block has its own out_features");
  EXPECT_EQ(own()->text(), "≠");
  const auto type = [&](const QString& field, const char* text) {
    auto* line = part(field);
    line->setFocus();
    key(line, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(line, text);
    key(line, Qt::Key_Return);
    settle();
  };
  type("inspector.out_features", "64");
  EXPECT_EQ(model().said(), "");
  EXPECT_EQ(*model().spec().find("blocks.0.up")->find("out_features"), AttrValue(int64_t{64}));
  EXPECT_NE(*model().spec().find(added + ".up")->find("out_features"), AttrValue(int64_t{64}));
  // The instance itself shows what it has of its own.
  group(added);
  type("inspector.up.out_features", "96");
  EXPECT_EQ(*model().spec().find(added + ".up")->find("out_features"), AttrValue(int64_t{96}));
  EXPECT_EQ(*model().spec().find("blocks.0.up")->find("out_features"), AttrValue(int64_t{64}));
  EXPECT_TRUE(model().errors().empty()) << model().errors().front();
  model().choose("blocks.0.up");
  settle();
  choose_line(1);
  EXPECT_EQ(*model().spec().find(added + ".up")->find("out_features"), AttrValue(int64_t{64}));
  EXPECT_EQ(own()->text(), "=");
}

}  // namespace
}  // namespace tenon::views::testing
