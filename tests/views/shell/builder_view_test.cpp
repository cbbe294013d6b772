// The builder used by hand: real mouse and key events.
#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QContextMenuEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>
#include <QToolTip>
#include <QTreeWidget>
#include <QWheelEvent>

#include "engine/templates/templates.h"
#include "tests/views/shell/window_fixture.h"
#include "views/builder/builder_view.h"

namespace tenon::views::testing {
namespace {

class BuilderByHand : public WindowTest {
 protected:
  void open_template(const char* name) {
    file_ = dir_.filePath("t.tenon");
    const Template& t = find_template(name);
    projects::Project::create(file_.toStdString(), t.model, t.recipe.to_json());
    open(file_);
    ASSERT_TRUE(bench_->has_project());
    c_ = canvas("builder");
  }
  BuilderModel& model() { return bench_->builder; }
  QPoint layer(const std::string& name) {
    const Box b = model().box_of(*model().spec().find(name));
    return {static_cast<int>(b.x + b.w / 2), static_cast<int>(b.y + b.h / 2)};
  }
  void drag(QPoint a, QPoint b, Qt::KeyboardModifiers m = Qt::NoModifier) {
    QTest::mousePress(c_, Qt::LeftButton, m, a);
    for (int i = 1; i <= 4; ++i) {
      QMouseEvent move(QEvent::MouseMove, a + (b - a) * i / 4, c_->mapToGlobal(a + (b - a) * i / 4), Qt::NoButton,
                       Qt::LeftButton, m);
      QApplication::sendEvent(c_, &move);
    }
    QTest::mouseRelease(c_, Qt::LeftButton, m, b);
    settle();
  }
  QMenu* menu_at(QPoint at) {
    QContextMenuEvent e(QContextMenuEvent::Mouse, at, c_->mapToGlobal(at));
    QApplication::sendEvent(c_, &e);
    auto* menu = window_->view("builder")->findChild<QMenu*>("builder.menu");
    return menu && menu->isVisible() ? menu : nullptr;
  }
  void choose(QMenu* menu, const QString& id) {
    ASSERT_NE(menu, nullptr);
    for (QAction* a : menu->actions())
      if (a->objectName() == "menu." + id) {
        QTest::mouseClick(menu, Qt::LeftButton, {}, menu->actionGeometry(a).center());
        settle();
        return;
      }
    FAIL() << "the menu has no " << id.toStdString();
  }
  bool wired(const std::string& a, const std::string& b) {
    for (const WireSpec& w : model().spec().wires)
      if (w.from == a && w.to == b) return true;
    return false;
  }
  SceneCanvas* c_ = nullptr;
};

TEST_F(BuilderByHand, HeatIsChosenInTheBar) {
  open_template("spirals");
  auto* box = part<QComboBox>("builder.heat");
  box->setFocus();
  for (const Heat heat : {Heat::parameters, Heat::flops, Heat::activations, Heat::memory}) {
    key(box, Qt::Key_Down);
    until([this] { return !bench_->jobs.has("heat"); });
    settle();
    EXPECT_EQ(model().heat().what, heat);
    EXPECT_TRUE(model().heat().shown()) << static_cast<int>(heat);
  }
  // What a step holds of each layer follows an edit.
  const double before = model().heat().total;
  model().set_attr("layers.0", "out_features", int64_t{200});
  until([&] { return !bench_->jobs.has("heat") && model().heat().total > before; });
  key(box, Qt::Key_Home);
  settle();
  EXPECT_EQ(model().heat().what, Heat::none);
}

TEST_F(BuilderByHand, a_band_and_keys_copy_cut_paste_and_undo) {
  open_template("spirals");
  const ModelSpec before = model().spec();
  const QPoint a = layer("layers.1"), b = layer("layers.2");
  drag({20, a.y() - 4}, b);
  EXPECT_EQ(model().selected(), (std::set<std::string>{"layers.1", "layers.2"}));
  key(c_, Qt::Key_C, Qt::ControlModifier);
  EXPECT_TRUE(QApplication::clipboard()->text().contains("layers.1"));
  key(c_, Qt::Key_V, Qt::ControlModifier);
  settle();
  EXPECT_EQ(model().spec().layers.size(), before.layers.size() + 2);
  EXPECT_TRUE(model().errors().empty()) << model().errors().front();
  key(c_, Qt::Key_Z, Qt::ControlModifier);
  settle();
  EXPECT_EQ(model().spec(), before);
  QTest::mouseClick(c_, Qt::LeftButton, {}, layer("layers.3"));
  key(c_, Qt::Key_D, Qt::ControlModifier);
  settle();
  EXPECT_EQ(model().spec().layers.size(), before.layers.size() + 1);
  key(c_, Qt::Key_X, Qt::ControlModifier);
  settle();
  EXPECT_EQ(model().spec().layers.size(), before.layers.size());
  key(c_, Qt::Key_A, Qt::ControlModifier);
  EXPECT_EQ(model().selected().size(), before.layers.size());
}

TEST_F(BuilderByHand, keys_of_the_canvas_leave_fields_alone) {
  open_template("spirals");
  QTest::mouseClick(c_, Qt::LeftButton, {}, layer("layers.0"));
  settle();
  auto* name = window_->findChild<QLineEdit*>("inspector.name");
  ASSERT_NE(name, nullptr);
  name->setFocus();
  const size_t layers = model().spec().layers.size();
  key(name, Qt::Key_A, Qt::ControlModifier);
  EXPECT_EQ(name->selectedText(), "layers.0");
  key(name, Qt::Key_C, Qt::ControlModifier);
  EXPECT_EQ(QApplication::clipboard()->text(), "layers.0");
  key(name, Qt::Key_D, Qt::ControlModifier);
  EXPECT_EQ(model().spec().layers.size(), layers);
  EXPECT_EQ(model().selected().size(), 1u);
}

TEST_F(BuilderByHand, the_other_button_has_what_can_be_done) {
  open_template("spirals");
  choose(menu_at(layer("layers.1")), "model.off");
  EXPECT_TRUE(model().spec().find("layers.1")->off);
  choose(menu_at(layer("layers.1")), "model.off");
  EXPECT_FALSE(model().spec().find("layers.1")->off);
  choose(menu_at(layer("layers.1")), "model.delete");
  EXPECT_EQ(model().spec().find("layers.1"), nullptr);
  EXPECT_TRUE(wired("layers.0", "layers.2"));
  choose(menu_at({10, 10}), "edit.select_all");
  EXPECT_EQ(model().selected().size(), model().spec().layers.size());
}

TEST_F(BuilderByHand, a_layer_is_put_onto_a_wire) {
  open_template("spirals");
  QPoint on_wire;
  for (const auto& t : c_->model().last().targets())
    if (t.hit.kind == BuilderModel::wire && model().spec().wires[static_cast<size_t>(t.hit.id)].to == "layers.2")
      on_wire = {static_cast<int>(t.box.x + t.box.w / 2), static_cast<int>(t.box.y + t.box.h / 2)};
  ASSERT_FALSE(on_wire.isNull());
  QTest::mouseClick(c_, Qt::LeftButton, {}, on_wire);
  EXPECT_TRUE(model().wire_selected());
  QTest::mouseDClick(c_, Qt::LeftButton, {}, on_wire);
  auto* picker = static_cast<BuilderView*>(window_->view("builder"))->picker();
  ASSERT_TRUE(picker->isVisible());
  QTest::keyClicks(picker->field(), "dropout");
  key(picker->field(), Qt::Key_Return);
  settle();
  EXPECT_EQ(model().primary(), "layers.dropout");
  EXPECT_TRUE(wired("layers.1", "layers.dropout"));
  EXPECT_TRUE(wired("layers.dropout", "layers.2"));
}

TEST_F(BuilderByHand, a_double_click_opens_and_folds_a_group) {
  open_template("resnet18");
  const int block = model().layout().node_of("layer1.0");
  ASSERT_GE(block, 0);
  const size_t boxes = model().layout().picture().cells.size();
  QTest::mouseDClick(c_, Qt::LeftButton, {}, place(c_, {BuilderModel::group, block}));
  settle();
  EXPECT_EQ(model().layout().picture().cells.size(), boxes + 6);
  QTest::mouseDClick(c_, Qt::LeftButton, {}, place(c_, {BuilderModel::opened_group, block}));
  settle();
  EXPECT_EQ(model().layout().picture().cells.size(), boxes);
  QTest::mouseClick(c_, Qt::LeftButton, {}, place(c_, {BuilderModel::group, block}));
  settle();
  EXPECT_EQ(model().selected_group(), "layer1.0");
  EXPECT_EQ(bench_->bus.current().name, "layer1.0");
  press("builder.open");
  settle();
  EXPECT_EQ(model().layout().picture().cells.size(), model().spec().layers.size());
  press("builder.fold");
  settle();
  EXPECT_EQ(model().layout().picture().cells.size(), 12u);
}

TEST_F(BuilderByHand, several_layers_are_told_at_once) {
  open_template("spirals");
  QTest::mouseClick(c_, Qt::LeftButton, {}, layer("layers.0"));
  QTest::mouseClick(c_, Qt::LeftButton, Qt::ShiftModifier, layer("layers.2"));
  settle();
  ASSERT_EQ(model().selected().size(), 2u);
  auto* spin = window_->findChild<QSpinBox*>("inspector.out_features");
  ASSERT_NE(spin, nullptr) << "what both have";
  EXPECT_EQ(window_->findChild<QLineEdit*>("inspector.name"), nullptr) << "a name is of one";
  spin->setFocus();
  spin->selectAll();
  QTest::keyClicks(spin, "24");
  key(spin, Qt::Key_Return);
  settle();
  for (const char* name : {"layers.0", "layers.2"})
    EXPECT_EQ(std::get<int64_t>(*model().spec().find(name)->find("out_features")), 24) << name;
  window_->commands().run("edit.undo");
  settle();
  EXPECT_EQ(std::get<int64_t>(*model().spec().find("layers.2")->find("out_features")), 64);
  EXPECT_EQ(spin->value(), 64);
}

TEST_F(BuilderByHand, ctrl_f_finds_a_layer_in_a_folded_group) {
  open_template("resnet18");
  c_->setFocus();
  key(c_, Qt::Key_F, Qt::ControlModifier);
  auto* field = window_->findChild<QLineEdit*>("builder.search");
  ASSERT_TRUE(field->hasFocus());
  QTest::keyClicks(field, "layer3.1.conv2");
  key(field, Qt::Key_Return);
  settle();
  EXPECT_EQ(model().primary(), "layer3.1.conv2");
  EXPECT_TRUE(c_->rect().contains(layer("layer3.1.conv2")));
}

TEST_F(BuilderByHand, a_deleted_layer_leaves_the_project_tree_too) {
  open_template("spirals");
  auto* tree = window_->findChild<QTreeWidget*>("project.tree");
  auto listed = [&] { return !tree->findItems("layers.1", Qt::MatchExactly | Qt::MatchRecursive).isEmpty(); };
  ASSERT_TRUE(listed());
  QTest::mouseClick(c_, Qt::LeftButton, {}, layer("layers.1"));
  key(c_, Qt::Key_Delete);
  settle();
  EXPECT_FALSE(listed());
  key(c_, Qt::Key_Z, Qt::ControlModifier);
  settle();
  EXPECT_TRUE(listed());
}

TEST_F(BuilderByHand, what_a_field_refuses_it_says_and_an_undo_takes_back) {
  open_template("spirals");
  QTest::mouseClick(c_, Qt::LeftButton, {}, layer("layers.1"));
  key(c_, Qt::Key_Delete);
  settle();
  QTest::mouseClick(c_, Qt::LeftButton, {}, layer("layers.2"));
  settle();
  auto* name = window_->findChild<QLineEdit*>("inspector.name");
  ASSERT_NE(name, nullptr);
  name->setFocus();
  name->selectAll();
  QTest::keyClicks(name, "layers.0");
  key(name, Qt::Key_Return);
  EXPECT_EQ(name->property("bad").toString(), "true");
  EXPECT_TRUE(name->toolTip().contains("already"));
  EXPECT_TRUE(QToolTip::text().contains("already")) << "without the pointer over it, too";
  window_->commands().run("edit.undo");
  settle();
  EXPECT_EQ(name->property("bad").toString(), "false");
  EXPECT_EQ(name->text(), "layers.2");
}

TEST_F(BuilderByHand, a_width_is_taken_to_the_whole_residual_stream_by_one_click) {
  open_template("byte-gpt");
  const std::string embed =
      std::find_if(model().spec().layers.begin(), model().spec().layers.end(), [](const LayerSpec& l) {
        return l.type == "Embedding";
      })->name;
  ASSERT_TRUE(model().set_attr(embed, "embedding_dim", int64_t{256}));
  settle();
  ASSERT_FALSE(model().errors().empty());
  const std::string faulty = model().errors()[0].substr(0, model().errors()[0].find(':'));
  model().choose(faulty);
  settle();
  auto* mend = window_->findChild<QPushButton*>("builder.mend.0");
  ASSERT_NE(mend, nullptr) << faulty;
  EXPECT_TRUE(mend->text().contains("layers that go with it")) << mend->text().toStdString();
  ASSERT_TRUE(mend->isVisible());
  QTest::mouseClick(mend, Qt::LeftButton);
  settle();
  EXPECT_TRUE(model().errors().empty());
  window_->commands().run("edit.undo");
  settle();
  EXPECT_FALSE(model().errors().empty());
}

TEST_F(BuilderByHand, a_layer_that_does_not_fit_has_the_edit_that_mends_it_as_a_button) {
  open_template("byte-gpt");
  ASSERT_TRUE(model().set_attr("blocks.0.attention", "num_heads", int64_t{5}));
  settle();
  EXPECT_FALSE(model().errors().empty());
  model().choose("blocks.0.attention");
  settle();
  auto* mend = window_->findChild<QPushButton*>("builder.mend.0");
  ASSERT_NE(mend, nullptr);
  EXPECT_EQ(mend->text(), "blocks.0.attention.num_heads 5 → 4");
  ASSERT_TRUE(mend->isVisible());
  QTest::mouseClick(mend, Qt::LeftButton);
  settle();
  EXPECT_TRUE(model().errors().empty());
  EXPECT_EQ(window_->findChild<QPushButton*>("builder.mend.0"), nullptr);
  window_->commands().run("edit.undo");
  settle();
  EXPECT_FALSE(model().errors().empty());
  EXPECT_NE(window_->findChild<QPushButton*>("builder.mend.0"), nullptr);
}

TEST_F(BuilderByHand, choices_are_lists_and_every_field_is_in_sight) {
  open_template("resnet18");
  window_->resize(1280, 720);
  settle();
  model().choose("conv1");
  settle();
  auto* mode = window_->findChild<QComboBox*>("inspector.padding_mode");
  ASSERT_NE(mode, nullptr);
  EXPECT_GT(mode->count(), 1);
  auto* form = window_->findChild<QWidget*>("inspector");
  const auto* port = form->parentWidget()->parentWidget();  // the viewport that the page scrolls in
  for (const QWidget* field : form->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly))
    if (field->isVisible()) {
      EXPECT_LE(field->mapTo(port, QPoint(field->width(), 0)).x(), port->width())
          << field->objectName().toStdString() << " is cut, and with it the arrow of a list";
    }
}

TEST_F(BuilderByHand, a_model_without_layers_cannot_be_trained) {
  open_template("spirals");
  key(c_, Qt::Key_A, Qt::ControlModifier);
  c_->setFocus();
  key(c_, Qt::Key_A, Qt::ControlModifier);
  key(c_, Qt::Key_Delete);
  settle();
  ASSERT_TRUE(model().spec().layers.empty());
  EXPECT_FALSE(model().errors().empty());
  EXPECT_FALSE(window_->commands().run("run.train"));
  EXPECT_FALSE(bench_->training());
  window_->commands().run("edit.undo");
  settle();
  EXPECT_TRUE(model().errors().empty());
}

TEST_F(BuilderByHand, a_layer_is_dragged_and_arrange_takes_it_back) {
  open_template("spirals");
  const QPoint at = layer("layers.2");
  drag(at, at + QPoint(120, 16));
  EXPECT_TRUE(model().layout().by_hand());
  EXPECT_NEAR(layer("layers.2").x(), at.x() + 120, 8);
  EXPECT_EQ(model().undo_text(), "Move layers.2");
  press("builder.arrange");
  settle();
  EXPECT_FALSE(model().layout().by_hand());
  key(c_, Qt::Key_Z, Qt::ControlModifier);
  settle();
  EXPECT_TRUE(model().layout().by_hand());
}

}  // namespace
}  // namespace tenon::views::testing
