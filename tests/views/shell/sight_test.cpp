// Views behind the tabs of others work nothing out: their jobs begin when they come to the front, and once.
#include <gtest/gtest.h>

#include <QDockWidget>
#include <QTabBar>
#include <QTest>
#include <map>

#include "tests/views/shell/drop.h"
#include "tests/views/shell/project_states.h"
#include "tests/views/shell/window_fixture.h"

namespace tenon::views {
namespace {

class Sight : public testing::WindowTest {
 protected:
  /// Counts from now on how often there is a job of each of these tags where there was none.
  void count_jobs() {
    QObject::connect(&bench_->jobs, &Jobs::changed, window_.get(), [this] {
      for (const QString tag : {"finding", "flame", "query"}) {
        const bool now = bench_->jobs.has(tag);
        jobs_[tag] += now && !there_[tag];
        there_[tag] = now;
      }
    });
  }
  int jobs(const char* tag) { return jobs_[tag]; }
  std::string all() const {
    std::string text;
    for (const auto& [tag, n] : jobs_) text += tag.toStdString() + " " + std::to_string(n) + ", ";
    return text;
  }
  QDockWidget* dock(const char* id) {
    for (QWidget* w = window_->view(id); w; w = w->parentWidget())
      if (auto* d = qobject_cast<QDockWidget*>(w)) return d;
    return nullptr;
  }
  /// A click on the tab of a view, which stands among those of others.
  void raise(const char* id) {
    const QString title = window_->view(id)->title();
    for (QTabBar* bar : window_->findChildren<QTabBar*>())
      for (int i = 0; bar->isVisible() && i < bar->count(); ++i)
        if (bar->tabText(i) == title) {
          click(bar, bar->tabRect(i).center());
          return settle();
        }
    FAIL() << "no tab " << id;
  }
  std::map<QString, int> jobs_;
  std::map<QString, bool> there_;
};

TEST_F(Sight, jobs_begin_when_a_tab_comes_to_the_front_and_once) {
  make_window();
  // All in one place, the timeline in front.
  for (const char* id : {"findings", "flame", "overview", "query"}) {
    window_->show_view(id);
    settle();
    if (dock(id) != dock("timeline")) window_->tabifyDockWidget(dock("timeline"), dock(id));
  }
  window_->show_view("timeline");
  settle();
  for (const char* id : {"findings", "flame", "overview", "query"}) {
    EXPECT_TRUE(window_->view(id)->isVisible()) << id << ": Qt does not tell it";
    EXPECT_FALSE(window_->view(id)->in_sight()) << id;
  }
  EXPECT_TRUE(window_->view("timeline")->in_sight());
  count_jobs();
  bench_->open(QString::fromStdString(testing::small_trace(dir_.path().toStdString())));
  settle();
  ASSERT_EQ(bench_->documents().size(), 1u) << (problems_.empty() ? "" : problems_.back());
  window_->show_view("timeline");
  settle();
  const std::map<QString, int> before = jobs_;
  for (const char* tag : {"finding", "flame", "query"}) EXPECT_EQ(jobs(tag), 0) << tag << ": nobody looks";
  struct {
    const char *id, *tag;
  } const views[] = {{"findings", "finding"}, {"flame", "flame"}, {"query", "query"}};
  for (const auto& v : views) {
    raise(v.id);
    EXPECT_TRUE(window_->view(v.id)->in_sight()) << v.id;
    EXPECT_EQ(jobs(v.tag), 1) << v.id << " (jobs: " << all() << ")";
  }
  // Another look needs no other work.
  for (const auto& v : views) {
    raise(v.id);
    EXPECT_EQ(jobs(v.tag), 1) << v.id << " (jobs: " << all() << ")";
  }
}

}  // namespace
}  // namespace tenon::views
