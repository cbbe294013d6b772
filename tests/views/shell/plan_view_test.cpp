// The plan in the window: planned by a button on a worker, its rectangles and rows select ops, what is selected
// elsewhere is marked, and what it says where there is nothing to plan.
#include <gtest/gtest.h>

#include <QLabel>
#include <QPushButton>
#include <QTest>
#include <QToolButton>
#include <map>

#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/record/step_record.h"
#include "views/frame/table_list.h"
#include "views/plan/plan_model.h"

namespace tenon::views {
namespace {

class PlanPage : public testing::WindowTest {
 protected:
  void bring() {
    ASSERT_TRUE(window_->commands().run("view.plan"));
    settle();
  }
  View* view() { return window_->view("plan"); }
  PlanModel& model() { return bench_->model<PlanModel>(); }
  /// What stands in the place of the picture.
  std::string said() {
    for (auto* label : view()->findChildren<QLabel*>())
      if (label->isVisible() && !label->text().isEmpty()) return label->text().toStdString();
    return {};
  }
  QPushButton* button(const QString& text) {
    for (auto* b : view()->findChildren<QPushButton*>())
      if (b->isVisible() && b->text() == text) return b;
    return nullptr;
  }
  void planned_by(const QString& text) {
    QPushButton* b = button(text);
    ASSERT_TRUE(b) << said();
    QTest::mouseClick(b, Qt::LeftButton);
    EXPECT_FALSE(view()->idle()) << "it is planned on a worker, and the click is over";
    until([&] { return view()->idle(); });
    settle();
  }
  void with_plan() {
    open_spirals();
    train(10);
    bring();
    planned_by("Plan a step of this run");
    ASSERT_TRUE(model().planned()) << said();
  }
  /// The value that is drawn largest.
  size_t largest() {
    const Scene::Target* most = nullptr;
    for (const Scene::Target& t : model().last().targets())
      if (t.hit.kind == PlanModel::value && (!most || t.box.w * t.box.h > most->box.w * most->box.h)) most = &t;
    return most ? static_cast<size_t>(most->hit.id) : 0;
  }
};

TEST_F(PlanPage, a_button_plans_a_step_and_a_click_on_a_rectangle_selects_its_op) {
  with_plan();
  EXPECT_FALSE(view()->empty());
  EXPECT_EQ(part<QLabel>("plan.headline")->text().toStdString(), model().headline());
  EXPECT_NE(model().headline().find("Forward and backward are "), std::string::npos);
  SceneCanvas* c = canvas("plan");
  const size_t at = largest();
  const auto click_largest = [&] {
    QTest::mouseClick(c, Qt::LeftButton, {}, place(c, {PlanModel::value, static_cast<int64_t>(at)}));
    settle();
  };
  click_largest();
  const StepPlanRow& row = model().plan()->kernels[at].row;
  EXPECT_TRUE(bench_->bus.current().same(Selection::module(row.module))) << "no step is loaded";
  EXPECT_EQ(model().chosen(), static_cast<int>(at));
  auto* list = part<TableList>("plan.table");
  EXPECT_EQ(static_cast<size_t>(list->shown_rows()), model().plan()->kernels.size());
  EXPECT_EQ(list->currentIndex().row(), static_cast<int>(at)) << "the rows stand in the order of the kernels";
  // Once a step is loaded, the op is known to every view.
  EXPECT_TRUE(part<QToolButton>("plan.step")->isVisible());
  press("plan.step");
  until([&] { return static_cast<bool>(bench_->links()); });
  settle();
  EXPECT_FALSE(part<QToolButton>("plan.step")->isVisible());
  ASSERT_TRUE(model().planned()) << "another step of the run has the same plan";
  click_largest();
  const Selection op = bench_->bus.current();
  ASSERT_EQ(op.kind, Selection::Kind::op);
  EXPECT_EQ(bench_->links().record()->ops[bench_->links().op_of(op) - 1].name, row.op);
  EXPECT_EQ(model().marked(), std::vector<size_t>{at});
  // Keys go on from there, and what is selected elsewhere is marked.
  c->setFocus();
  key(c, Qt::Key_Home);
  settle();
  EXPECT_TRUE(bench_->bus.current().same(model().selection_of(0)));
  key(c, Qt::Key_Right);
  settle();
  EXPECT_TRUE(bench_->bus.current().same(model().selection_of(1)));
  bench_->select(Selection::op(op.id, "test"));
  settle();
  EXPECT_EQ(model().marked(), std::vector<size_t>{at});
  EXPECT_EQ(list->currentIndex().row(), static_cast<int>(at));
}

TEST_F(PlanPage, a_row_of_the_table_selects_and_rows_stand_in_order) {
  with_plan();
  auto* list = part<TableList>("plan.table");
  ASSERT_GT(list->shown_rows(), 3);
  click(list->viewport(), list->visualRect(list->model()->index(1, 0)).center());
  settle();
  EXPECT_TRUE(bench_->bus.current().same(model().selection_of(1)));
  EXPECT_EQ(model().chosen(), 1);
  EXPECT_NE(part<ElidedLabel>("plan.told")->accessibleName().toStdString().find("kernel 2 of "), std::string::npos);
}

TEST_F(PlanPage, what_cannot_be_planned_says_why) {
  open_spirals();
  train(6, {{"data.micro_batches", "2"}});
  bring();
  planned_by("Plan a step of this run");
  EXPECT_FALSE(model().planned());
  EXPECT_TRUE(view()->empty());
  EXPECT_NE(said().find("data.micro_batches adds gradients up"), std::string::npos) << said();
  EXPECT_TRUE(button("Plan again"));
}

TEST_F(PlanPage, what_became_of_plans_in_the_run_is_told_at_once_and_kept) {
  open_spirals();
  QStringList logged;
  QObject::connect(bench_.get(), &Bench::logged, [&](const QString& line, bool) { logged += line; });
  train(10, {{"compile", "true"}});
  bring();
  EXPECT_EQ(logged.filter("step 3: from here on batches of f32 [").size(), 1) << logged.join("\n").toStdString();
  EXPECT_NE(said().find("In this run:\nstep 3: from here on batches of f32 ["), std::string::npos) << said();
  planned_by("Plan a step of this run");
  auto* events = part<QLabel>("plan.events");
  ASSERT_TRUE(events->isVisible());
  EXPECT_NE(events->text().toStdString().find(" come from a plan of "), std::string::npos);
  // A click on the step selects it.
  click(events, QPoint(events->contentsRect().left() + 8, events->contentsRect().top() + 8));
  settle();
  EXPECT_TRUE(bench_->bus.current().same(Selection::step(3))) << events->text().toStdString();
  // From the file.
  const int64_t run = bench_->shown_run();
  train(6);
  bring();
  EXPECT_FALSE(events->isVisible()) << "the other run has none";
  bench_->show_run(run);
  until([&] { return !bench_->run_events().empty(); });
  planned_by("Plan a step of this run");
  EXPECT_NE(events->text().toStdString().find("step 3"), std::string::npos);
  close_window();
  open(file_);
  bench_->show_run(run);
  until([&] { return !bench_->run_events().empty(); });
  bring();
  EXPECT_NE(said().find("step 3: from here on batches of f32 ["), std::string::npos) << said();
}

TEST_F(PlanPage, another_run_or_project_drops_what_is_shown) {
  make_window();
  bring();
  EXPECT_NE(said().find("Open a project"), std::string::npos) << said();
  close_window();
  with_plan();
  const int64_t first = bench_->shown_run();
  train(6);
  ASSERT_NE(bench_->shown_run(), first);
  bring();
  EXPECT_FALSE(model().plan());
  EXPECT_TRUE(view()->empty());
  planned_by("Plan a step of this run");
  EXPECT_TRUE(model().planned());
  bench_->show_run(first);
  settle();
  EXPECT_FALSE(model().plan());
  planned_by("Plan a step of this run");
  ASSERT_TRUE(model().planned());
  const QString other = dir_.filePath("other.tenon");
  ASSERT_TRUE(QFile::copy(file_, other));
  open(other);
  bring();
  EXPECT_FALSE(model().plan());
}

TEST_F(PlanPage, a_project_without_a_run_is_planned_from_a_fresh_start) {
  open_spirals();
  bring();
  EXPECT_NE(said().find("There is no run yet"), std::string::npos) << said();
  planned_by("Plan a step");
  ASSERT_TRUE(model().planned()) << said();
  EXPECT_TRUE(bench_->contents().runs.empty()) << "nothing of it is kept";
  EXPECT_FALSE(part<QToolButton>("plan.step")->isVisible()) << "there is none to load";
  // Of another model it would be another plan.
  Recipe r = bench_->recipe();
  r.set("data.batch_size", "7");
  bench_->set_recipe(r);
  settle();
  EXPECT_FALSE(model().plan());
}

TEST_F(PlanPage, it_is_planned_beside_a_run_that_trains_and_cancelled_among_the_jobs) {
  open_spirals();
  train(6);
  ASSERT_TRUE(window_->commands().run("run.step"));
  until([&] { return bench_->status().state == projects::RunStatus::State::paused && bench_->shown_steps() > 0; });
  settle();
  ASSERT_TRUE(bench_->training());
  bring();
  ASSERT_TRUE(button("Plan a step of this run")) << said();
  EXPECT_NE(said().find("trains"), std::string::npos) << said();
  QTest::mouseClick(button("Plan a step of this run"), Qt::LeftButton);
  bench_->jobs.cancel_tag("plan a step");
  until([&] { return view()->idle(); });
  settle();
  EXPECT_FALSE(model().plan());
  EXPECT_NE(said().find("Planning was cancelled"), std::string::npos) << said();
  planned_by("Plan a step of this run");
  EXPECT_TRUE(model().planned()) << said();
  EXPECT_TRUE(bench_->training()) << "its own session was not touched";
}

TEST_F(PlanPage, one_command_brings_the_view_and_the_plan) {
  open_spirals();
  train(6);
  ASSERT_TRUE(window_->commands().run("plan.show"));
  until([&] { return model().plan() && view()->idle(); });
  settle();
  EXPECT_TRUE(model().planned());
  EXPECT_FALSE(view()->empty());
}

TEST_F(PlanPage, every_state_of_a_project_has_a_plan_or_says_why_not) {
  std::map<std::string, std::string> why;  // by state; empty: there is a plan
  for (const std::string& name : testing::project_state_names()) {
    SCOPED_TRACE(name);
    const testing::ProjectState& state = testing::project_state(name);
    if (!state.skipped.empty() || state.file.empty() || state.pauses) continue;
    QTemporaryDir folder;
    open(QString::fromStdString(testing::copy_of(state, folder.path().toStdString())));
    ASSERT_TRUE(window_->commands().run("plan.show"));
    until([&] { return view()->idle(); });
    settle();
    why[name] = model().planned() ? "" : said();
    EXPECT_EQ(view()->empty(), !model().planned());
    if (!model().planned()) {
      EXPECT_TRUE(button("Try again") || button("Plan again")) << why[name];
    }
    close_window();
  }
  for (const char* name : {"never trained", "trained", "killed", "swept", "seventy layers", "read-only"})
    if (why.contains(name)) {
      EXPECT_EQ(why[name], "") << name;
    }
  for (const char* name : {"empty", "no data on disk"})
    if (why.contains(name)) {
      EXPECT_NE(why[name], "") << name;
    }
  EXPECT_GT(why.size(), 5u);
}

}  // namespace
}  // namespace tenon::views
