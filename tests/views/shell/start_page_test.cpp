// What one begins with: the start page, the tour, and the File menu.
#include "views/shell/start_page.h"

#include <gtest/gtest.h>

#include <QApplication>
#include <QFile>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMessageBox>
#include <QPushButton>
#include <QScrollArea>
#include <QTest>
#include <QTimer>
#include <QToolButton>
#include <algorithm>
#include <filesystem>

#include "engine/templates/templates.h"
#include "projects/copy.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/record/step_record.h"
#include "views/builder/builder_view.h"
#include "views/shell/tour.h"

namespace tenon::views {
namespace {

class Start : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    for (const auto& f : settings::recent()) settings::forget_recent(f.path);
    settings::set_tour_seen(false);
  }
  bool page() const { return window_->start_page()->isVisible(); }
  /// A part of the page by its name, scrolled to.
  QWidget* part(const QString& name) {
    for (QWidget* w : window_->start_page()->findChildren<QWidget*>(name))
      if (w->isVisible()) {
        window_->findChild<QScrollArea*>("start.scroll")->ensureWidgetVisible(w);
        return w;
      }
    return nullptr;
  }
  void press_part(const QString& name) {
    QWidget* w = part(name);
    ASSERT_NE(w, nullptr) << name.toStdString();
    click(w, w->rect().center());
  }
  QString said() const { return window_->tour()->findChild<QLabel*>("tour.text")->text(); }
};

TEST_F(Start, stands_where_nothing_is_open_and_gives_way) {
  make_window();
  settle();
  ASSERT_TRUE(page());
  EXPECT_TRUE(window_->view("builder")->visibleRegion().isEmpty() ||
              window_->start_page()->geometry().contains(QRect(
                  window_->view("builder")->mapTo(window_.get(), QPoint(0, 0)), window_->view("builder")->size())));
  open_spirals();
  EXPECT_FALSE(page());
  EXPECT_TRUE(window_->view("builder")->isEnabled());
  ASSERT_TRUE(window_->commands().run("file.close"));
  settle();
  EXPECT_TRUE(page());
  // A trace is something, too.
  bench_->open(QString::fromStdString(testing::small_trace(dir_.path().toStdString())));
  settle();
  EXPECT_FALSE(page());
  ASSERT_TRUE(window_->commands().run("file.close_document"));
  settle();
  EXPECT_TRUE(page());
  // Who asks for a view sees it, and comes back by the menu.
  ASSERT_TRUE(window_->commands().run("view.log"));
  settle();
  EXPECT_FALSE(page());
  EXPECT_FALSE(window_->view("log")->visibleRegion().isEmpty());
  choose_in_menu("File", "file.start");
  EXPECT_TRUE(page());
}

TEST_F(Start, fits_small_windows_in_every_theme) {
  make_window();
  settle();
  for (QSize size : {QSize(1280, 680), QSize(640, 340), QSize(960, 540)})
    for (ThemeName theme : {ThemeName::dark, ThemeName::light, ThemeName::contrast}) {
      window_->resize(size);
      window_->set_theme(theme);
      settle();
      const auto* scroll = window_->findChild<QScrollArea*>("start.scroll");
      EXPECT_LE(scroll->widget()->minimumSizeHint().width(), scroll->viewport()->width())
          << "cut off at " << size.width();
      QWidget* last = part("template." + QString::fromStdString(templates().back().name));
      ASSERT_NE(last, nullptr);
      EXPECT_FALSE(last->visibleRegion().isEmpty()) << "it can be scrolled to";
    }
}

TEST_F(Start, files_of_before_are_opened_and_forgotten) {
  const QString trace = QString::fromStdString(testing::small_trace(dir_.path().toStdString()));
  make_window();
  window_->remember_files();
  bench_->open(trace);
  settle();
  open_spirals();
  const QString gone = dir_.filePath("gone.tenon");
  settings::add_recent(gone.toStdString(), "project");
  bench_->close_document(bench_->documents()[0].id);
  ASSERT_TRUE(window_->commands().run("file.close"));
  settle();
  ASSERT_TRUE(page());
  EXPECT_NE(part("recent." + trace), nullptr);
  // One that is gone says so and cannot be opened.
  QWidget* missing = part("recent." + gone);
  ASSERT_NE(missing, nullptr);
  EXPECT_FALSE(missing->isEnabled());
  bool told = false;
  for (QLabel* l : missing->findChildren<QLabel*>()) told |= l->text() == "not there any more";
  EXPECT_TRUE(told);
  press_part("forget." + gone);
  settle();
  EXPECT_EQ(part("recent." + gone), nullptr);
  EXPECT_EQ(settings::recent().size(), 2u);
  // By keys: the lines follow each other, Delete takes one away, Enter opens.
  QWidget* line = part("recent." + file_);
  line->setFocus();
  key(line, Qt::Key_Down);
  QWidget* next = part("recent." + trace);
  EXPECT_TRUE(next->hasFocus());
  key(next, Qt::Key_Delete);
  settle();
  EXPECT_EQ(settings::recent().size(), 1u);
  line = part("recent." + file_);
  line->setFocus();
  key(line, Qt::Key_Return);
  settle();
  EXPECT_TRUE(bench_->has_project());
  EXPECT_FALSE(page());
}

TEST_F(Start, a_template_becomes_a_project) {
  make_window();
  settle();
  const QString path = dir_.filePath("new.tenon");
  answer(dir_.filePath("new"));
  press_part("template.spirals");
  settle();
  ASSERT_TRUE(bench_->has_project()) << (problems_.empty() ? "" : problems_[0]);
  EXPECT_EQ(bench_->file(), path);
  EXPECT_EQ(bench_->project()->model(), find_template("spirals").model);
  // The same name again: what is there stays, and it is told.
  ASSERT_TRUE(window_->commands().run("file.close"));
  settle();
  answer(path);
  press_part("start.file.new_empty");
  settle();
  EXPECT_FALSE(bench_->has_project());
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_NE(problems_[0].find("already exists"), std::string::npos) << problems_[0];
  EXPECT_EQ(projects::Project::open(path.toStdString())->model(), find_template("spirals").model);
}

TEST_F(Start, a_template_learns_from_a_table_of_ones_own) {
  make_window();
  settle();
  const QString table = dir_.filePath("mine.csv"), path = dir_.filePath("mine.tenon");
  QFile file(table);
  ASSERT_TRUE(file.open(QIODevice::WriteOnly));
  file.write("a,b,price\n");
  for (int i = 0; i < 200; ++i)
    file.write(QString("%1,%2,%3.5\n").arg(i % 7).arg(i % 3 ? "x" : "y").arg(i % 11).toUtf8());
  file.close();
  ASSERT_TRUE(window_->commands().run("file.new"));
  settle();
  auto* typed = window_->findChild<Picker*>(QString(), Qt::FindDirectChildrenOnly)->field();
  QTest::keyClicks(typed, "tabular with");
  settle();
  answer(table);
  // The dialog of where the project goes opens from within the first one's answer.
  QTimer second;
  second.setInterval(20);
  QObject::connect(&second, &QTimer::timeout, window_.get(), [&] {
    auto* d = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    if (!d || d->acceptMode() != QFileDialog::AcceptSave) return;
    second.stop();
    d->findChild<QLineEdit*>("fileNameEdit")->setText(path);
    QMetaObject::invokeMethod(d, "accept");
  });
  second.start();
  key(typed, Qt::Key_Return);
  settle();
  ASSERT_TRUE(bench_->has_project()) << (problems_.empty() ? "" : problems_[0]);
  EXPECT_EQ(bench_->file(), path);
  EXPECT_EQ(bench_->recipe().text("data.dir"), table.toStdString());
  EXPECT_EQ(bench_->recipe().text("loss.type"), "mse") << "the column that is foretold is a number";
  train(2);
  EXPECT_EQ(bench_->contents().runs.back().status, "finished");
}

/// By the button of the page: a file of one's own, and where its project goes.
TEST_F(Start, data_of_ones_own_become_a_project_whatever_they_are) {
  make_window();
  settle();
  const auto write = [this](const char* name, bool hole) {
    QFile file(dir_.filePath(name));
    EXPECT_TRUE(file.open(QIODevice::WriteOnly));
    file.write("a,b,kind\n");
    for (int i = 0; i < 120; ++i)
      file.write(QString("%1,%2,%3\n").arg(i % 7).arg(i % 5).arg(hole && i == 4 ? "" : i % 3 ? "x" : "y").toUtf8());
    return dir_.filePath(name);
  };
  const auto begin = [this](const QString& data, const QString& project) {
    // Two timers: the one whose key opens a dialog does not fire again before that is closed.
    QTimer kinds, dialogs;
    kinds.setInterval(20);
    dialogs.setInterval(20);
    QObject::connect(&kinds, &QTimer::timeout, window_.get(), [&] {
      auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
      if (!menu) return;
      kinds.stop();
      QTest::keyClick(menu, Qt::Key_Down);
      QTest::keyClick(menu, Qt::Key_Return);
    });
    QObject::connect(&dialogs, &QTimer::timeout, window_.get(), [&] {
      auto* d = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
      if (!d) return;
      const bool where = d->acceptMode() == QFileDialog::AcceptSave;
      if (where) dialogs.stop();
      d->findChild<QLineEdit*>("fileNameEdit")->setText(where ? project : data);
      QMetaObject::invokeMethod(d, "accept");
    });
    kinds.start();
    dialogs.start();
    press_part("start.own");
    until([&] { return bench_->has_project() || !problems_.empty(); });
    settle();
  };
  begin(write("good.csv", false), dir_.filePath("good.tenon"));
  ASSERT_TRUE(bench_->has_project()) << (problems_.empty() ? "" : problems_[0]);
  EXPECT_EQ(bench_->recipe().text("data.dataset"), "csv");
  EXPECT_GT(bench_->contents().model.layers.size(), 3u) << "the model of a template that suits them";
  EXPECT_FALSE(window_->view("data")->visibleRegion().isEmpty());
  train(2);
  EXPECT_EQ(bench_->contents().runs.back().status, "finished");
  ASSERT_TRUE(window_->commands().run("file.close"));
  settle();
  // What cannot be read without a word more is a project, too, with that word as a button.
  begin(write("hole.csv", true), dir_.filePath("hole.tenon"));
  ASSERT_TRUE(bench_->has_project()) << (problems_.empty() ? "" : problems_[0]);
  auto* offer = window_->findChild<QPushButton*>("data.offer");
  until([&] { return offer->isVisible(); });
  click(offer, offer->rect().center());
  auto* first = window_->findChild<QPushButton*>("data.begin");
  until([&] { return first->isVisible(); });
  click(first, first->rect().center());
  until([&] { return bench_->contents().model.layers.size() > 3; });
  train(2);
  EXPECT_EQ(bench_->contents().runs.back().status, "finished");
}

TEST_F(Start, the_tour_makes_trains_and_looks) {
  make_window();
  settle();
  press_part("start.tour");
  ASSERT_TRUE(window_->tour()->isVisible());
  EXPECT_TRUE(said().startsWith("Step 1 of 3"));
  EXPECT_EQ(part("start.tour"), nullptr) << "it is under way";
  auto holder = [this] { return window_->focusWidget() ? window_->focusWidget()->objectName() : QString(); };
  EXPECT_EQ(holder(), "tour.action") << "Space goes on";
  answer(dir_.filePath("tour.tenon"));
  press("tour.action");
  settle();
  ASSERT_TRUE(bench_->has_project());
  EXPECT_TRUE(window_->tour()->isVisible());
  EXPECT_TRUE(said().startsWith("Step 2 of 3")) << said().toStdString();
  // So long that it still trains when a busy machine looks.
  Recipe longer = bench_->recipe();
  longer.set("epochs", "100000");
  bench_->set_recipe(longer);
  settle();
  press("tour.action");
  until([this] { return bench_->training() && bench_->status().step > 20; });
  EXPECT_EQ(window_->layout_name(), "Train");
  until([this] { return said().contains("it trains"); });
  press("tour.action");  // stop
  until([this] { return !bench_->training(); });
  settle();
  EXPECT_TRUE(said().startsWith("Step 3 of 3")) << said().toStdString();
  EXPECT_FALSE(settings::tour_seen());
  press("tour.action");
  settle();
  ASSERT_TRUE(static_cast<bool>(bench_->links()));
  EXPECT_EQ(bench_->links().record()->step, std::max<int64_t>(1, bench_->shown_steps() / 2));
  EXPECT_EQ(holder(), "tour.action");
  press("tour.action");  // done
  EXPECT_FALSE(window_->tour()->isVisible());
  ASSERT_NE(window_->current_view(), nullptr);
  EXPECT_TRUE(window_->current_view()->isAncestorOf(window_->focusWidget())) << holder().toStdString();
  EXPECT_TRUE(settings::tour_seen());
  EXPECT_TRUE(problems_.empty());
}

TEST_F(Start, the_tour_is_left_at_any_time_and_remembered) {
  make_window();
  settle();
  EXPECT_NE(part("start.no_tour"), nullptr);
  choose_in_menu("Help", "help.tour");
  EXPECT_TRUE(window_->tour()->isVisible());
  press("tour.leave");
  EXPECT_FALSE(window_->tour()->isVisible());
  EXPECT_TRUE(settings::tour_seen());
  open_spirals();
  EXPECT_FALSE(window_->tour()->isVisible());
  close_window();
  make_window();
  settle();
  EXPECT_EQ(part("start.no_tour"), nullptr) << "nobody has to say it twice";
  EXPECT_NE(part("start.tour"), nullptr) << "but it can be taken again";
}

TEST_F(Start, an_empty_project_has_only_an_input) {
  open_spirals();
  answer(dir_.filePath("empty.tenon"));
  key(window_.get(), Qt::Key_N, Qt::ControlModifier | Qt::ShiftModifier);
  settle();
  ASSERT_EQ(bench_->file(), dir_.filePath("empty.tenon"));
  ASSERT_EQ(bench_->builder.spec().layers.size(), 1u);
  EXPECT_EQ(bench_->builder.spec().layers[0].type, "Input");
  EXPECT_TRUE(problems_.empty());
}

TEST_F(Start, a_copy_is_saved_while_it_trains) {
  open_spirals();
  bench_->train({.set = {{"epochs", "1000"}, {"data.samples", "100000"}, {"eval_every", "0"}}});
  until([this] { return bench_->training() && bench_->status().step > 20; });
  // An edit of this moment is in it, too.
  SceneCanvas* c = canvas("builder");
  c->setFocus();
  QTest::keyClick(c, Qt::Key_D);
  auto* palette = static_cast<BuilderView*>(window_->view("builder"))->picker();
  QTest::keyClicks(palette->field(), "ropout");
  key(palette->field(), Qt::Key_Return);
  const QString copy = dir_.filePath("copy.tenon");
  answer(dir_.filePath("copy"));
  choose_in_menu("File", "file.copy");
  until([this] { return banner_shown() && banner().startsWith("Saved a copy"); });
  EXPECT_TRUE(bench_->training()) << "it went on";
  EXPECT_TRUE(banner().contains(copy)) << banner().toStdString();
  {
    auto p = projects::Project::open(copy.toStdString());
    EXPECT_NE(p->model().find("dropout"), nullptr);
    EXPECT_EQ(p->model(), bench_->project()->model());
    ASSERT_EQ(p->runs().size(), 1u);
    EXPECT_EQ(p->runs()[0].status, "interrupted");
  }
  window_->commands().run("run.stop");
  until([this] { return !bench_->training(); });
  settle();
  // Onto itself: refused, and nothing is lost.
  answer(file_);
  QTimer replace;  // is asked for as soon as it is
  replace.setInterval(20);
  QObject::connect(&replace, &QTimer::timeout, window_.get(), [&replace] {
    auto* question = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    if (!question || !question->isVisible()) return;
    replace.stop();
    QTest::mouseClick(question->button(QMessageBox::Yes), Qt::LeftButton);
  });
  replace.start();
  window_->commands().run("file.copy");
  settle();
  EXPECT_EQ(problems_.size(), 1u);
  EXPECT_EQ(projects::Project::open(file_.toStdString(), true)->runs().size(), 1u);
  EXPECT_EQ(std::filesystem::exists(dir_.filePath("copy.tenon-wal").toStdString()), false);
}

TEST_F(Start, a_trace_is_imported_into_the_project) {
  open_spirals();
  const QString trace = QString::fromStdString(testing::small_trace(dir_.path().toStdString()));
  answer(trace);
  choose_in_menu("File", "file.import");
  settle();
  EXPECT_TRUE(banner_shown() && banner().startsWith("Imported: small.json is in it")) << banner().toStdString();
  const auto all = bench_->project()->artifacts();
  ASSERT_GT(all.size(), 1u);
  EXPECT_EQ(bench_->contents().artifacts.size(), all.size()) << "the tree shows it";
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const auto& a) { return a.kind == "trace"; }));
  EXPECT_TRUE(problems_.empty());
  // What is neither is told, and nothing of it is in the project.
  QFile other(dir_.filePath("other.txt"));
  ASSERT_TRUE(other.open(QIODevice::WriteOnly));
  other.write("words");
  other.close();
  answer(other.fileName());
  key(window_.get(), Qt::Key_I, Qt::ControlModifier);
  settle();
  EXPECT_EQ(problems_.size(), 1u);
  EXPECT_EQ(bench_->project()->artifacts().size(), all.size());
}

}  // namespace
}  // namespace tenon::views
