// The real window, driven by real mouse and key events under a virtual display.
#include <gtest/gtest.h>

#include <QAction>
#include <QApplication>
#include <QElapsedTimer>
#include <QLineEdit>
#include <QListWidget>
#include <QMouseEvent>
#include <QSpinBox>
#include <QSurfaceFormat>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeWidget>
#include <memory>

#include "engine/nn/functional.h"
#include "engine/ops/pointwise.h"
#include "engine/spec/layer_registry.h"
#include "engine/templates/templates.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "views/autograd/autograd_model.h"
#include "views/builder/builder_view.h"
#include "views/details/details_view.h"
#include "views/memory/memory_model.h"
#include "views/nan/nan_model.h"
#include "views/tensor/tensor_model.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

class Window : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
  }
};

TEST_F(Window, OpensAProjectAndSaysWhatIsMissing) {
  EXPECT_TRUE(window_->windowTitle().startsWith("t.tenon"));
  EXPECT_GT(bench_->builder.parameters(), 0);
  EXPECT_FALSE(window_->commands().action("run.pause")->isEnabled());
  EXPECT_TRUE(window_->commands().action("run.train")->isEnabled());
  window_->show_view("timeline");
  bool button = false;
  for (QPushButton* b : window_->view("timeline")->findChildren<QPushButton*>())
    button |= b->isVisible() && b->text() == "Train";
  EXPECT_TRUE(button);
}

TEST_F(Window, AClickInTheTimelineMovesEveryOtherView) {
  train(12);
  load_step(7);
  EXPECT_EQ(bench_->links().record()->step, 7);
  SceneCanvas* c = canvas("timeline");
  // The forward op with a backward node and an output, whichever it is in this model.
  uint32_t seq = 0;
  for (const auto& op : bench_->links().record()->ops)
    if (op.origin.phase == Phase::forward && !op.outputs.empty() &&
        bench_->links().grad_node_of(Selection::op(op.seq)) >= 0 &&
        c->model()
                .last()
                .hit_at(place(c, {TimelineModel::op, op.seq}).x(), place(c, {TimelineModel::op, op.seq}).y())
                .id == op.seq) {
      seq = op.seq;
      break;
    }
  ASSERT_NE(seq, 0u);
  QTest::mouseClick(c, Qt::LeftButton, {}, place(c, {TimelineModel::op, seq}));
  settle();
  EXPECT_TRUE(bench_->bus.current().same(Selection::op(seq)));
  EXPECT_EQ(bench_->model<AutogradModel>().selected(), bench_->links().grad_node_of(Selection::op(seq)));
  EXPECT_EQ(bench_->model<TensorModel>().tensor(), bench_->links().record()->ops[seq - 1].outputs[0]);
  const auto& op = bench_->links().record()->ops[seq - 1];
  EXPECT_EQ(bench_->model<MemoryModel>().cursor(), static_cast<double>(op.start_ns + op.duration_ns));
  bool title = false;
  for (QLabel* l : window_->view("details")->findChildren<QLabel*>())
    title |= l->toolTip() == QString("%1 #%2").arg(QString::fromStdString(op.name)).arg(seq);
  EXPECT_TRUE(title);

  // And back from the autograd graph.
  c = canvas("autograd");
  QTest::mouseClick(c, Qt::LeftButton, {}, place(c, {AutogradModel::node, 0}));
  settle();
  EXPECT_TRUE(bench_->bus.current().same(Selection::grad_node(0)));
  EXPECT_EQ(bench_->model<TimelineModel>().selected(), bench_->links().op_of(Selection::grad_node(0)));
  key(window_.get(), Qt::Key_Left, Qt::AltModifier);
  EXPECT_TRUE(bench_->bus.current().same(Selection::op(seq)));
}

TEST_F(Window, TheWheelZoomsAndKeysMove) {
  train(3);
  load_step(2);
  SceneCanvas* c = canvas("timeline");
  QPoint middle(c->width() / 2, 100);
  QWheelEvent wheel(middle, c->mapToGlobal(middle), {}, {0, 360}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase,
                    false);
  QApplication::sendEvent(c, &wheel);
  settle();
  EXPECT_FALSE(bench_->model<TimelineModel>().axis().fitted());
  key(c, Qt::Key_F);
  EXPECT_TRUE(bench_->model<TimelineModel>().axis().fitted());
  settle();
  int64_t frames = c->frames();
  QTest::qWait(50);
  EXPECT_EQ(c->frames(), frames) << "an idle canvas draws nothing";
}

TEST_F(Window, AnAttributeEditUpdatesShapesAndIsUndone) {
  std::string layer;
  for (const LayerSpec& l : bench_->builder.spec().layers)
    if (l.type == "Linear" && layer.empty()) layer = l.name;
  ASSERT_FALSE(layer.empty());
  int64_t before = bench_->builder.parameters();
  ModelSpec old = bench_->builder.spec();
  SceneCanvas* c = canvas("builder");
  int64_t index = 0;
  for (size_t i = 0; i < old.layers.size(); ++i)
    if (old.layers[i].name == layer) index = static_cast<int64_t>(i);
  QPoint p = place(c, {BuilderModel::layer, index});
  QTest::mouseClick(c, Qt::LeftButton, {}, p);
  settle();
  EXPECT_EQ(bench_->builder.primary(), layer);
  auto* spin = window_->findChild<QSpinBox*>("inspector.out_features");
  ASSERT_NE(spin, nullptr);
  spin->setFocus();
  spin->selectAll();
  QTest::keyClicks(spin, "48");
  key(spin, Qt::Key_Return);
  settle();
  EXPECT_NE(bench_->builder.parameters(), before);
  EXPECT_NE(bench_->builder.report(layer)->outputs[0].find("48"), std::string::npos);
  EXPECT_NE(bench_->project()->model(), old) << "the project file has the edit";
  EXPECT_TRUE(window_->commands().run("edit.undo"));
  settle();
  EXPECT_EQ(bench_->builder.parameters(), before);
  EXPECT_EQ(spin->value(), static_cast<int>(std::get<int64_t>(*old.find(layer)->find("out_features"))));
  EXPECT_EQ(bench_->project()->model().layers.size(), old.layers.size());
}

TEST_F(Window, TypingOverTheBuilderAddsALayer) {
  SceneCanvas* c = canvas("builder");
  size_t layers = bench_->builder.spec().layers.size();
  c->setFocus();
  QTest::keyClick(c, Qt::Key_D);
  auto* picker = static_cast<BuilderView*>(window_->view("builder"))->picker();
  ASSERT_TRUE(picker->isVisible());
  QTest::keyClicks(picker->field(), "ropout");
  ASSERT_GT(picker->list()->count(), 0);
  EXPECT_EQ(picker->list()->item(0)->text(), "Dropout");
  key(picker->field(), Qt::Key_Return);
  settle();
  EXPECT_EQ(bench_->builder.spec().layers.size(), layers + 1);
  EXPECT_EQ(bench_->builder.primary(), "dropout");
  EXPECT_TRUE(bench_->builder.errors().empty());
}

TEST_F(Window, ALayerOfAPlugInIsAddedAndTrainedAsAnyOther) {
  {
    RegistryScope plugin("plug-in triple");  // as loading one does it
    register_layer({{.type = "Triple",
                     .group = "Activation",
                     .help = "three times what comes",
                     .attrs = {{"times", int64_t{3}, 1, 9, "how often"}}},
                    [](const LayerArgs& a) -> std::shared_ptr<nn::Module> {
                      return nn::unary("Triple", [n = a.integer("times")](const Tensor& x) {
                        return mul(x, static_cast<double>(n));
                      });
                    }});
    plugin.close();
    SceneCanvas* c = canvas("builder");
    c->setFocus();
    QTest::keyClick(c, Qt::Key_T);
    auto* picker = static_cast<BuilderView*>(window_->view("builder"))->picker();
    QTest::keyClicks(picker->field(), "riple");
    ASSERT_GT(picker->list()->count(), 0);
    EXPECT_EQ(picker->list()->item(0)->text(), "Triple");
    key(picker->field(), Qt::Key_Return);
    settle();
    EXPECT_EQ(bench_->builder.primary(), "triple");
    EXPECT_TRUE(bench_->builder.errors().empty());
    auto* times = window_->findChild<QSpinBox*>("inspector.times");
    ASSERT_NE(times, nullptr) << "its attribute has an editor";
    times->setValue(2);
    settle();
    EXPECT_EQ(std::get<int64_t>(*bench_->builder.spec().find("triple")->find("times")), 2);
    train(3);
    EXPECT_EQ(bench_->contents().runs.back().steps, 3);
    close_window();  // nothing of the plug-in is in use when it goes
  }
  EXPECT_EQ(layers().find("Triple"), nullptr);
}

TEST_F(Window, ThePaletteFindsAndRunsACommand) {
  key(window_.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  ASSERT_TRUE(window_->picker()->isVisible());
  QTest::keyClicks(window_->picker()->field(), "theme light");
  ASSERT_GT(window_->picker()->list()->count(), 0);
  EXPECT_EQ(window_->picker()->list()->item(0)->text(), "Theme: light");
  key(window_->picker()->field(), Qt::Key_Return);
  EXPECT_EQ(window_->theme(), ThemeName::light);
  EXPECT_FALSE(window_->picker()->isVisible());
  key(window_.get(), Qt::Key_K, Qt::ControlModifier);
  ASSERT_TRUE(window_->picker()->isVisible());
  key(window_->picker()->field(), Qt::Key_Escape);
  EXPECT_FALSE(window_->picker()->isVisible());
  settle();
}

TEST_F(Window, EveryNamedLayoutHasItsViewInFront) {
  for (const NamedLayout& l : named_layouts()) {
    EXPECT_TRUE(window_->commands().run(QString("layout.") + QString(l.name).toLower()));
    settle();
    EXPECT_FALSE(window_->view(leader(l))->visibleRegion().isEmpty()) << l.name;
    EXPECT_FALSE(window_->view(views_at(Spot::below, l).first())->visibleRegion().isEmpty()) << l.name;
    EXPECT_FALSE(window_->view("project")->visibleRegion().isEmpty()) << l.name;
    EXPECT_FALSE(window_->view("details")->visibleRegion().isEmpty()) << l.name;
  }
}

TEST_F(Window, FloatingAndReturningADockKeepsItsPicture) {
  SceneCanvas* c = canvas("builder");
  auto* dock = window_->findChild<QDockWidget*>("dock.builder");
  dock->setFloating(true);
  ASSERT_TRUE(QTest::qWaitForWindowExposed(dock));
  settle();
  QImage floating = c->grab().toImage();
  dock->setFloating(false);
  settle();
  QImage docked = c->grab().toImage();
  auto colours = [](const QImage& i) {
    std::set<QRgb> seen;
    for (int y = 0; y < i.height(); y += 3)
      for (int x = 0; x < i.width(); x += 3) seen.insert(i.pixel(x, y));
    return seen.size();
  };
  EXPECT_GT(colours(floating), 5u);
  EXPECT_GT(colours(docked), 5u);
}

TEST_F(Window, StaysResponsiveWhileTrainingAndItsControlsWork) {
  window_->set_layout("Train");
  settle();
  ASSERT_TRUE(window_->commands().run("run.train"));
  ASSERT_TRUE(QTest::qWaitFor([this] { return bench_->training() && bench_->status().step > 0; }, 60000));
  // While it trains the event loop turns and the window answers.
  int turns = 0;
  QElapsedTimer clock;
  clock.start();
  qint64 longest = 0, before = 0;
  while (bench_->training() && turns < 40) {
    QTest::qWait(1);
    longest = std::max(longest, clock.elapsed() - before);
    before = clock.elapsed();
    ++turns;
    if (turns == 5) window_->commands().run("layout.build");
    if (turns == 10) window_->show_view("training");
  }
  RecordProperty("longest_turn_ms", static_cast<int>(longest));
  if (bench_->training()) {
    window_->commands().run("run.pause");
    ASSERT_TRUE(QTest::qWaitFor(
        [this] { return !bench_->training() || bench_->status().state == projects::RunStatus::State::paused; }, 60000));
  }
  if (bench_->training()) {
    int64_t at = bench_->status().step;
    ASSERT_TRUE(window_->commands().run("run.step"));
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return bench_->status().step == at + 1 && bench_->status().state == projects::RunStatus::State::paused; },
        60000));
    ASSERT_TRUE(window_->commands().run("run.stop"));
  }
  ASSERT_TRUE(QTest::qWaitFor([this] { return !bench_->training(); }, 60000));
  settle();
  EXPECT_GE(bench_->training_model.last_step(), 1);
  EXPECT_EQ(bench_->shown()->steps, bench_->training_model.last_step());
}

TEST_F(Window, StepTrainsOneStepAndPauses) {
  ASSERT_TRUE(window_->commands().run("run.step"));
  ASSERT_TRUE(QTest::qWaitFor(
      [this] {
        return bench_->training() && bench_->status().state == projects::RunStatus::State::paused &&
               bench_->status().step == 1;
      },
      60000));
  ASSERT_TRUE(window_->commands().run("run.step"));
  ASSERT_TRUE(QTest::qWaitFor(
      [this] { return bench_->status().step == 2 && bench_->status().state == projects::RunStatus::State::paused; },
      60000));
  // A step of a run that is paused can be looked at.
  load_step(1);
  EXPECT_EQ(bench_->links().record()->step, 1);
  ASSERT_TRUE(window_->commands().run("run.stop"));
  ASSERT_TRUE(QTest::qWaitFor([this] { return !bench_->training(); }, 60000));
  settle();
}

TEST_F(Window, AClickOnTheCurveAndTheSliderGoBackInTime) {
  train(30);
  SceneCanvas* c = canvas("training");
  Box area;
  for (const auto& t : c->model().last().targets())
    if (t.hit == Hit{TrainingModel::plot, 0}) area = t.box;
  ASSERT_GT(area.w, 100);
  QTest::mouseClick(c, Qt::LeftButton, {},
                    QPoint(static_cast<int>(area.x + area.w / 2), static_cast<int>(area.y + area.h / 2)));
  settle();
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::step);
  EXPECT_NEAR(static_cast<double>(bench_->links().record()->step), 15, 1);
  EXPECT_EQ(window_->step_slider()->value(), bench_->links().record()->step);
  window_->step_slider()->setFocus();
  key(window_->step_slider(), Qt::Key_Home);
  settle();
  EXPECT_EQ(bench_->links().record()->step, 1);
}

TEST_F(Window, ABrokenModelIsSaidAndNothingIsLost) {
  auto problems = std::make_shared<int>(0);
  QObject::connect(bench_.get(), &Workbench::problem, [problems] { ++*problems; });
  QFile bad(dir_.filePath("bad.tenon"));
  ASSERT_TRUE(bad.open(QIODevice::WriteOnly));
  bad.write("this is no project");
  bad.close();
  bench_->open(bad.fileName());
  settle();
  EXPECT_EQ(*problems, 1);
  EXPECT_TRUE(bench_->has_project()) << "the project that was open stays open";
  auto* banner = window_->findChild<QLabel*>("banner.text");
  ASSERT_NE(banner, nullptr);
  EXPECT_TRUE(banner->isVisible());
  EXPECT_TRUE(banner->text().contains("bad.tenon"));
}

TEST_F(Window, TheWindowComesBackAsItWasLeft) {
  window_->commands().run("layout.memory");
  bench_->training_model.set_smoothing(0.3);
  settle();
  window_->close();
  window_.reset();
  bench_ = std::make_unique<Workbench>();
  window_ = std::make_unique<MainWindow>(*bench_, ThemeName::dark);
  window_->show();
  bench_->open(file_);
  settle();
  EXPECT_EQ(window_->layout_name(), "Memory");
  EXPECT_NEAR(bench_->training_model.smoothing(), 0.3, 1e-9);
}

TEST_F(Window, TheDoctorSaysThatACleanRunIsClean) {
  train(5);
  window_->commands().run("run.nan");
  settle();
  EXPECT_EQ(bench_->model<NanModel>().state(), NanModel::State::clean);
}

/// A 1920x1080 screen at scale 2 is 960x540 to the window, less the frame that the desktop draws round it.
TEST_F(Window, FitsASmallScreen) {
  bench_->fail("A long problem",
               "something that takes many words to say, so that the banner has to break its lines more than once to "
               "show all of it",
               "and a hint");
  for (const NamedLayout& l : named_layouts()) {
    window_->set_layout(l.name);
    settle();
    const QSize least = window_->minimumSizeHint();
    EXPECT_LE(least.width(), 952) << l.name;
    EXPECT_LE(least.height(), 500) << l.name;
    if (least.width() > 952 || least.height() > 500)
      for (QWidget* w : window_->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly))
        if (w->isVisible())
          std::printf("  %s: least %d x %d\n", qPrintable(w->objectName()),
                      w->minimumSizeHint().expandedTo(w->minimumSize()).width(),
                      w->minimumSizeHint().expandedTo(w->minimumSize()).height());
    window_->resize(952, 500);
    settle();
    EXPECT_EQ(window_->size(), QSize(952, 500));
  }
  EXPECT_LE(window_->width(), window_->screen()->availableSize().width());
}

/// Found by the monkey: with hundreds of checkpoints in the project the tree was made anew at every tick of the
/// training, and the window came to nothing else.
TEST_F(Window, TheTreeOfALongRunKeepsItsItemsWhileItTrains) {
  train(400);  // a checkpoint every 20 steps
  auto* tree = window_->findChild<QTreeWidget*>("project.tree");
  const QString first = QString::fromStdString(bench_->contents().runs[0].name);
  QTreeWidgetItem* run = tree->findItems(first, Qt::MatchExactly | Qt::MatchRecursive).value(0);
  ASSERT_NE(run, nullptr);
  ASSERT_GE(run->childCount(), 20);
  QTreeWidgetItem* checkpoint = run->child(3);
  run->setExpanded(true);
  tree->topLevelItem(0)->setExpanded(true);
  bench_->train({.max_steps = 600});
  until([this] { return bench_->contents().runs.size() == 2 && bench_->status().step > 100; });
  until([this] { return !bench_->training(); });
  settle();
  EXPECT_EQ(tree->findItems(first, Qt::MatchExactly | Qt::MatchRecursive).value(0), run)
      << "the same item, not a new one";
  EXPECT_EQ(run->child(3), checkpoint);
  EXPECT_TRUE(run->isExpanded());
  EXPECT_TRUE(tree->topLevelItem(0)->isExpanded());
  const QString second = QString::fromStdString(bench_->contents().runs[1].name);
  QTreeWidgetItem* newer = tree->findItems(second, Qt::MatchExactly | Qt::MatchRecursive).value(0);
  ASSERT_NE(newer, nullptr);
  EXPECT_EQ(newer->childCount(), static_cast<int>(bench_->contents().checkpoints[1].size()));
  EXPECT_LT(newer->parent()->indexOfChild(newer), run->parent()->indexOfChild(run)) << "the newest first";
}

TEST_F(Window, APickerPutsTheBestNameFirstAndSaysWhereNothingFits) {
  auto texts = [this] {
    QStringList all;
    for (int i = 0; i < window_->picker()->list()->count(); ++i) all << window_->picker()->list()->item(i)->text();
    return all;
  };
  auto* field = window_->picker()->findChild<QLineEdit*>();
  ASSERT_TRUE(window_->commands().run("file.new"));
  QTest::keyClicks(field, "spi");
  EXPECT_EQ(texts().value(0), "spirals");
  QTest::keyClicks(field, "xyz");
  EXPECT_EQ(texts(), QStringList({QString("Nothing fits “spixyz” among the %1 templates.").arg(templates().size()),
                                  "Type letters of a template's name or of what it does, in their order."}));
  QTest::keyClick(field, Qt::Key_Return);
  EXPECT_TRUE(window_->picker()->isVisible()) << "there is nothing to choose";
  QTest::keyClick(field, Qt::Key_Escape);
  // Ctrl+F1 lists keys, and finds a command by them.
  key(window_.get(), Qt::Key_F1, Qt::ControlModifier);
  ASSERT_TRUE(window_->picker()->isVisible());
  EXPECT_GT(texts().size(), 15);
  QTest::keyClicks(field, "Ctrl+K");
  EXPECT_EQ(texts().value(0), "Go to…");
  QTest::keyClick(field, Qt::Key_Escape);
}

TEST_F(Window, AFaultIsOverOnceWhatWasTriedIsDone) {
  bench_->open(dir_.filePath("is-not-there.tenon"));
  settle();
  ASSERT_EQ(problems_.size(), 1u);
  ASSERT_TRUE(banner_shown());
  auto* count = window_->findChild<QToolButton*>("status.warnings");
  EXPECT_TRUE(count->isVisible());
  const QString trace = QString::fromStdString(testing::small_trace(dir_.path().toStdString()));
  bench_->open(trace);
  settle();
  EXPECT_FALSE(banner_shown()) << "a file was opened since";
  bench_->open(dir_.filePath("is-not-there.tenon"));
  settle();
  ASSERT_TRUE(banner_shown());
  for (QToolButton* b : window_->findChildren<QToolButton*>())
    if (b->text() == "Dismiss") b->click();
  EXPECT_FALSE(banner_shown());
  EXPECT_FALSE(count->isVisible()) << "it was seen";
}

}  // namespace
}  // namespace tenon::views
