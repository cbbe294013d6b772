// What every view has: help, a picture, a table, and progress while one waits for it.
#include <gtest/gtest.h>

#include <QApplication>
#include <QClipboard>
#include <QFile>
#include <QLabel>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QSvgRenderer>
#include <QTabBar>
#include <QTest>
#include <QTimer>
#include <QToolButton>
#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/record/step_record.h"
#include "views/frame/table_list.h"
#include "views/frame/wait_strip.h"
#include "views/shell/help_panel.h"

namespace tenon::views {
namespace {

class ViewTools : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
  }
  static std::string content(const QString& path) {
    std::ifstream in(path.toStdString(), std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
  }
  /// A replay of step 7 that is at 34 of 120 until it is cancelled.
  void replay_without_end() {
    bench_->jobs.start(
        "step", "Replay step 7",
        [](const Jobs::Report& report, const std::atomic<bool>& cancelled) {
          report(34, 120);
          while (!cancelled) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        },
        [] {});
    emit bench_->step_changed();
  }
};

TEST_F(ViewTools, every_view_brings_its_help) {
  for (const ViewDef& def : view_defs()) {
    const std::string shows = def.help.shows, mouse = def.help.mouse, keys = def.help.keys;
    EXPECT_GT(shows.size(), 20u) << def.id;
    EXPECT_GT(mouse.size(), 10u) << def.id;
    EXPECT_GT(keys.size(), 10u) << def.id;
    for (const std::string& text : {shows, mouse, keys})
      EXPECT_TRUE(text.empty() || text.back() == '.') << def.id << ": " << text;
  }
}

TEST_F(ViewTools, f1_helps_with_the_view_that_has_the_keys) {
  for (const ViewDef& def : view_defs()) {
    ASSERT_TRUE(window_->show_view(def.id));
    settle();
    key(window_.get(), Qt::Key_F1);
    ASSERT_TRUE(window_->help()->isVisible()) << def.id;
    EXPECT_EQ(window_->help()->view(), window_->view(def.id)) << def.id;
    auto* shows = window_->help()->findChild<QLabel*>("help.What it shows");
    ASSERT_NE(shows, nullptr);
    EXPECT_TRUE(window_->rect().contains(window_->help()->geometry())) << def.id;
    key(window_->help(), Qt::Key_Escape);
    EXPECT_FALSE(window_->help()->isVisible());
    settle();
  }
  // On a small window it scrolls rather than runs over.
  window_->resize(640, 340);
  settle();
  window_->show_view("timeline");
  key(window_.get(), Qt::Key_F1);
  EXPECT_TRUE(window_->rect().contains(window_->help()->geometry()));
  press("help.close");
  EXPECT_FALSE(window_->help()->isVisible());
}

TEST_F(ViewTools, a_picture_of_a_view_as_pixels_and_as_lines) {
  train(5);
  SceneCanvas* c = canvas("training");
  const QString png = dir_.filePath("p.png"), svg = dir_.filePath("p.svg");
  answer(png);
  key(window_.get(), Qt::Key_P, Qt::ControlModifier);
  const QImage image(png);
  EXPECT_EQ(image.size(), window_->view("training")->size() * window_->devicePixelRatioF());
  answer(dir_.filePath("p"), "SVG (*.svg)");
  choose_in_menu("View", "picture.view");
  const std::string text = content(svg);
  ASSERT_NE(text.find("<svg"), std::string::npos);
  // Letters are letters, and lines are lines.
  EXPECT_NE(text.find("<text"), std::string::npos);
  EXPECT_NE(text.find("<polyline"), std::string::npos) << "the curve";
  EXPECT_EQ(text.find("<image"), std::string::npos);
  for (const std::string& word : c->model().last().texts()) {
    if (word.size() > 2 && word.find_first_of("&<>…") == std::string::npos) {
      EXPECT_NE(text.find(word), std::string::npos) << word;
    }
  }
  QSvgRenderer drawn(svg);
  ASSERT_TRUE(drawn.isValid());
  EXPECT_EQ(drawn.defaultSize(), c->size());
  EXPECT_TRUE(problems_.empty());
  // Another end says no kind; nothing is written.
  answer(dir_.filePath("p.jpg"));
  window_->commands().run("picture.view");
  EXPECT_EQ(problems_.size(), 1u);
  EXPECT_FALSE(QFile::exists(dir_.filePath("p.jpg")));
}

TEST_F(ViewTools, every_view_makes_both_pictures_full_and_empty) {
  auto all = [this](const QString& state) {
    for (const ViewDef& def : view_defs()) {
      ASSERT_TRUE(window_->show_view(def.id));
      settle();
      for (const char* end : {"png", "svg"}) {
        const QString path = dir_.filePath(QString("%1-%2.%3").arg(state, def.id, end));
        answer(path);
        ASSERT_TRUE(window_->commands().run("picture.view")) << def.id;
        EXPECT_TRUE(QFile::exists(path)) << path.toStdString();
        if (path.endsWith("svg")) {
          EXPECT_TRUE(QSvgRenderer(path).isValid()) << path.toStdString();
        }
      }
    }
  };
  all("empty");
  train(8);
  load_step(4);
  all("full");
  EXPECT_TRUE(problems_.empty()) << problems_[0];
}

TEST_F(ViewTools, a_table_is_saved_and_copied_as_it_stands) {
  train(5);
  window_->show_view("runs");
  settle();
  auto* list = window_->view("runs")->findChild<TableList*>();
  ASSERT_NE(list, nullptr);
  list->setFocus();
  const Table shown = list->shown();
  ASSERT_EQ(shown.rows.size(), 1u);
  key(window_.get(), Qt::Key_C, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_EQ(QApplication::clipboard()->text().toStdString(), shown.tabbed());
  answer(dir_.filePath("t"));
  choose_in_menu("View", "table.save");
  settle();
  EXPECT_EQ(content(dir_.filePath("t.csv")), shown.csv());
  answer(dir_.filePath("t"), "Markdown (*.md)");
  window_->commands().run("table.save");
  settle();
  EXPECT_EQ(content(dir_.filePath("t.md")), shown.markdown());
  // A view of a canvas has its twin.
  window_->show_view("training");
  settle();
  EXPECT_TRUE(window_->commands().action("table.copy")->isEnabled());
  window_->commands().run("table.copy");
  EXPECT_TRUE(QApplication::clipboard()->text().startsWith("Metric\t")) << "the metrics of the curves";
  // One that has none says so.
  window_->show_view("project");
  settle();
  EXPECT_FALSE(window_->commands().action("table.copy")->isEnabled());
}

TEST_F(ViewTools, the_menu_of_a_tab_has_them) {
  window_->show_view("training");
  settle();
  QTabBar* bar = nullptr;
  int tab = -1;
  for (QTabBar* b : window_->findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly))
    for (int i = 0; b->isVisible() && i < b->count(); ++i)
      if (b->tabText(i) == "Recipe") bar = b, tab = i;
  ASSERT_NE(bar, nullptr);
  bool seen = false;
  QTimer::singleShot(0, window_.get(), [&] {
    auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
    ASSERT_NE(menu, nullptr);
    seen = menu->actions().contains(window_->commands().action("picture.view"));
    menu->close();
  });
  const QPoint at = bar->tabRect(tab).center();
  QContextMenuEvent e(QContextMenuEvent::Mouse, at, bar->mapToGlobal(at));
  QApplication::sendEvent(bar, &e);
  EXPECT_TRUE(seen);
}

/// Work that holds still: a job of the test's own, in the place of a replay, that ends when it is cancelled.
TEST_F(ViewTools, a_view_says_how_far_the_work_on_it_is_and_cancels_it) {
  train(5);
  for (const char* id : {"timeline", "tensor", "memory", "autograd"}) {
    window_->show_view(id);
    settle();
    View* v = window_->view(id);
    const auto* bar = v->findChild<QProgressBar*>();
    const auto* figures = v->findChild<QLabel*>("waiting.figures");
    ASSERT_NE(bar, nullptr);
    EXPECT_FALSE(bar->isVisible());
    replay_without_end();
    EXPECT_TRUE(bar->isVisible()) << id << ": from the first moment";
    until([&] { return figures->text() == "34 / 120"; });
    EXPECT_TRUE(figures->isVisible());
    EXPECT_NEAR(bar->value() / 1000.0, 34 / 120.0, 0.002);
    bool titled = false;
    for (QLabel* l : v->findChildren<QLabel*>()) titled |= l->isVisible() && l->text().startsWith("Replay step 7: ");
    EXPECT_TRUE(titled) << id;
    QPushButton* cancel = nullptr;
    for (QPushButton* b : v->findChildren<QPushButton*>())
      if (b->isVisible() && b->text() == "Cancel") cancel = b;
    ASSERT_NE(cancel, nullptr) << id;
    click(cancel, cancel->rect().center());
    settle();
    EXPECT_FALSE(bench_->loading_step()) << id;
    EXPECT_FALSE(bar->isVisible()) << id;
  }
}

/// Six rows that say the same are measured once: what is shorter may be wider.
TEST_F(ViewTools, a_column_is_as_wide_as_its_widest_word_not_its_longest) {
  TableList list;
  list.resize(600, 300);
  Table t;
  t.wide = true;  // no column is given room that it does not need
  t.columns = {{"Words"}, {"Other words"}};
  for (int i = 0; i < 8; ++i) t.rows.push_back({{{"iiiiiiiiiiiiiiiiii"}, {"x"}}, {}});
  t.rows.push_back({{{"WWWWWWWWWWWWWWWW"}, {"x"}}, {}});
  list.set_table(t);
  list.show();
  ASSERT_TRUE(QTest::qWaitForWindowExposed(&list));
  EXPECT_GE(list.columnWidth(0), list.fontMetrics().horizontalAdvance("WWWWWWWWWWWWWWWW"));
}

/// What a view still shows is said to be what it is while another step is on its way.
TEST_F(ViewTools, an_older_step_is_called_so_while_another_one_is_replayed) {
  train(12);
  load_step(4);
  for (const char* id : {"tensor", "autograd", "memory", "timeline"}) {
    ASSERT_TRUE(window_->commands().run(QString("view.") + id));
    settle();
    auto* strip = window_->view(id)->findChild<WaitStrip*>();
    ASSERT_NE(strip, nullptr);
    EXPECT_FALSE(strip->isVisible()) << id;
    replay_without_end();
    EXPECT_TRUE(strip->isVisible()) << id << ": from the first moment";
    until([&] { return strip->text() == "This is still step 4. Replay step 7: 34 / 120"; });
    auto* cancel = strip->findChild<QToolButton*>("wait.cancel");
    click(cancel, cancel->rect().center());
    settle();
    EXPECT_FALSE(bench_->loading_step()) << id;
    until([&] { return !strip->isVisible(); });
    EXPECT_EQ(bench_->links().record()->step, 4) << id;
  }
}

/// The real thing counts bytes: a file that is read.
TEST_F(ViewTools, bytes_of_a_file_are_told_as_bytes) {
  window_->show_view("jobs");
  bench_->jobs.start(
      "read a", "Read a.json",
      [](const Jobs::Report& report, const std::atomic<bool>& cancelled) {
        report(3 << 20, 12 << 20);
        while (!cancelled) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      },
      [] {}, {}, false, Jobs::Unit::bytes);
  auto* figures = window_->view("findings")->findChild<QLabel*>("waiting.figures");
  window_->show_view("findings");
  until([&] { return figures->isVisible() && figures->text() == "3.00 MiB / 12.0 MiB"; });
  bench_->jobs.cancel_tag("read a");
  settle();
  EXPECT_FALSE(figures->isVisible());
}

}  // namespace
}  // namespace tenon::views
