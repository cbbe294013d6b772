// The window on small and large screens: every named layout fits, and what there is no room for is neither cut nor
// drawn over.
#include <gtest/gtest.h>

#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMenuBar>
#include <QScrollArea>
#include <QScrollBar>
#include <QTabBar>
#include <QTest>
#include <QTimer>
#include <QToolBar>
#include <QToolButton>
#include <QTreeWidget>
#include <algorithm>

#include "tests/views/shell/window_fixture.h"
#include "tracing/record/step_record.h"
#include "views/frame/table_list.h"

namespace tenon::views {
namespace {

class Layouts : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
  }
  void size_to(QSize size) {
    window_->resize(size);
    settle();
    ASSERT_EQ(window_->size(), size);
  }
  QList<Dock*> seen() const {
    QList<Dock*> out;
    for (Dock* d : window_->findChildren<Dock*>())
      if (!d->view()->visibleRegion().isEmpty()) out << d;
    return out;
  }
  /// Words of a column that its cells do not show whole.
  static QStringList cut(TableList* list) {
    QStringList out;
    for (int r = 0; r < list->model()->rowCount(); ++r)
      for (int c = 0; c < list->model()->columnCount(); ++c) {
        const QModelIndex at = list->model()->index(r, c);
        if (list->sizeHintForIndex(at).width() > list->columnWidth(c)) out << at.data().toString();
      }
    return out;
  }
};

/// 960 x 540 is a screen of 1920 x 1080 at scale 2.
const QSize kScreens[] = {{960, 540}, {1280, 720}, {1440, 900}, {1920, 1080}};

TEST_F(Layouts, EveryLayoutFitsEveryScreen) {
  train(6);
  load_step(5);
  for (const QSize& screen : kScreens)
    for (const NamedLayout& layout : named_layouts()) {
      SCOPED_TRACE(QString("%1 at %2 x %3").arg(layout.name).arg(screen.width()).arg(screen.height()).toStdString());
      size_to(screen);
      window_->set_layout(layout.name);
      settle();
      ASSERT_EQ(window_->size(), screen) << "it asks for more than there is";
      EXPECT_LE(window_->minimumSizeHint().width(), 960);
      const QList<Dock*> docks = seen();
      EXPECT_EQ(docks.size(), 4);
      for (Dock* d : docks) {
        EXPECT_TRUE(window_->rect().contains(d->geometry())) << d->objectName().toStdString();
        const QString id = d->view()->id();
        const QSize least = id == "project"        ? QSize(160, 240)
                            : id == "details"      ? QSize(212, 240)
                            : id == leader(layout) ? QSize(440, 140)
                                                   : QSize(440, 96);
        EXPECT_GE(d->view()->width(), least.width()) << id.toStdString();
        EXPECT_GE(d->view()->height(), least.height()) << id.toStdString();
        for (Dock* other : docks)
          EXPECT_TRUE(other == d || !other->geometry().intersects(d->geometry()))
              << d->objectName().toStdString() << " lies over " << other->objectName().toStdString();
      }
      for (QTabBar* bar : window_->findChildren<QTabBar*>())
        for (int i = 0; i < bar->count() && bar->isVisible(); ++i) {
          if (!bar->isTabVisible(i)) continue;
          EXPECT_GE(bar->tabRect(i).width(), bar->fontMetrics().horizontalAdvance(bar->tabText(i)))
              << "the tab " << bar->tabText(i).toStdString() << " is cut";
        }
      // The bar keeps every control in sight: none goes behind an arrow.
      for (QToolBar* bar : window_->findChildren<QToolBar*>()) {
        if (!bar->isVisible()) continue;
        for (QToolButton* b : bar->findChildren<QToolButton*>("qt_toolbar_ext_button"))
          EXPECT_FALSE(b->isVisible()) << bar->objectName().toStdString();
      }
    }
}

TEST_F(Layouts, TheTabsOfEveryLayoutAreSeenAtOnceOnAUsualScreen) {
  for (const ViewDef& def : view_defs())
    for (const char* name : def.layouts)
      EXPECT_TRUE(std::any_of(named_layouts().begin(), named_layouts().end(),
                              [&](const NamedLayout& l) { return QString(l.name) == name; }))
          << def.id << " stands in no layout " << name;
  for (const QSize& screen : {QSize{1440, 900}, QSize{1920, 1080}})
    for (const NamedLayout& layout : named_layouts()) {
      SCOPED_TRACE(QString("%1 at %2").arg(layout.name).arg(screen.width()).toStdString());
      size_to(screen);
      window_->set_layout(layout.name);
      settle();
      int tabs = 0;
      for (QTabBar* bar : window_->findChildren<QTabBar*>()) {
        if (!bar->isVisible()) continue;
        tabs += bar->count();
        for (QToolButton* b : bar->findChildren<QToolButton*>())
          EXPECT_FALSE(b->isVisible()) << "its tabs scroll: " << bar->tabText(0).toStdString() << " and "
                                       << bar->count() - 1 << " more";
      }
      EXPECT_GT(tabs, 6);
    }
}

TEST_F(Layouts, IconsOfTheBarAreAsLargeAtEveryScale) {
  auto* bar = window_->findChild<QToolBar*>("bar");
  ASSERT_NE(bar, nullptr);
  for (const char* name : {"tool.run.train", "tool.run.pause", "tool.go.to"}) {
    auto* b = bar->findChild<QToolButton*>(name);
    ASSERT_NE(b, nullptr) << name;
    // A bar gives its buttons its own size of icons; one larger than what is drawn shows at scale 2 only.
    EXPECT_EQ(b->icon().actualSize(bar->iconSize()), bar->iconSize()) << name;
  }
}

TEST_F(Layouts, AViewThatDoesNotStandInALayoutComesWhenItIsAskedForAndGoesWithTheLayout) {
  window_->set_layout("Train");
  settle();
  auto* dock = window_->findChild<Dock*>("dock.nan");
  ASSERT_TRUE(dock->isHidden());
  ASSERT_TRUE(window_->commands().run("view.nan"));
  settle();
  EXPECT_FALSE(window_->view("nan")->visibleRegion().isEmpty());
  EXPECT_FALSE(dock->isFloating());
  EXPECT_TRUE(window_->tabifiedDockWidgets(dock).contains(window_->findChild<Dock*>("dock.training")))
      << "a tab beside the others";
  ASSERT_TRUE(window_->commands().run("layout.train"));
  settle();
  EXPECT_TRUE(dock->isHidden());
  EXPECT_FALSE(window_->view("training")->visibleRegion().isEmpty());
}

TEST_F(Layouts, TheLastRowOfTheDetailsCanBeReadWhole) {
  train(6);
  load_step(5);
  const auto run = bench_->shown_run();
  auto* area = window_->view("details")->findChild<QScrollArea*>();
  ASSERT_NE(area, nullptr);
  for (const QSize& screen : kScreens)
    for (const Selection& s :
         {Selection::op(4, "test"), Selection::tensor(0, "test"), Selection::run(run, "test"),
          Selection::module("layers.0", "test"), Selection::step(5, "test"), Selection::grad_node(0, "test")}) {
      SCOPED_TRACE(to_text(s) + " at a height of " + std::to_string(screen.height()));
      size_to(screen);
      bench_->select(s);
      settle();
      ASSERT_TRUE(area->isVisible());
      area->verticalScrollBar()->setValue(area->verticalScrollBar()->maximum());
      settle();
      QWidget *page = area->widget(), *last = nullptr;
      int lowest = -1;
      for (QWidget* w : page->findChildren<QWidget*>()) {
        if (!w->isVisible() || w->layout()) continue;
        const int bottom = w->mapTo(page, QPoint(0, w->height())).y();
        if (auto* label = qobject_cast<QLabel*>(w); label && label->pixmap(Qt::ReturnByValue).isNull()) {
          EXPECT_GE(w->height(), w->fontMetrics().height()) << "cut: " << label->accessibleName().toStdString();
        }
        if (bottom > lowest) lowest = bottom, last = w;
        EXPECT_LE(w->mapTo(page, QPoint(w->width(), 0)).x(), page->width()) << "cut at the right";
      }
      ASSERT_NE(last, nullptr);
      EXPECT_LE(last->mapTo(area->viewport(), QPoint(0, last->height())).y(), area->viewport()->height());
    }
}

TEST_F(Layouts, ANarrowBarListsTheButtonsThatItHasNoRoomFor) {
  window_->set_layout("Build");
  window_->show_view("builder");
  size_to({960, 540});
  View* view = window_->view("builder");
  EXPECT_EQ(view->canvas()->visibleRegion().boundingRect().width(), view->canvas()->width())
      << "the picture is in sight whole";
  auto* more = view->findChild<QToolButton*>("bar.more");
  ASSERT_NE(more, nullptr);
  ASSERT_FALSE(more->visibleRegion().isEmpty());
  auto* table = view->findChild<QToolButton*>("builder.as_table");
  EXPECT_TRUE(table->visibleRegion().isEmpty());
  EXPECT_EQ(table->focusPolicy(), Qt::NoFocus);
  const auto listed = [&] {
    for (QAction* a : more->menu()->actions())
      if (a->objectName() == "builder.as_table") return a;
    return static_cast<QAction*>(nullptr);
  };
  for (const bool on : {true, false}) {  // its button comes back while what it shows is there
    auto* button = table->visibleRegion().isEmpty() ? more : table;
    EXPECT_EQ(button == more, on);
    if (button == more) {
      QTimer::singleShot(0, more, [&] {
        ASSERT_NE(listed(), nullptr);
        EXPECT_EQ(listed()->text(), table->text());
        listed()->trigger();
        more->menu()->close();
      });
      QTest::mouseClick(more, Qt::LeftButton);
    } else {
      QTest::mouseClick(table, Qt::LeftButton);
    }
    settle();
    EXPECT_EQ(table->isChecked(), on);
  }
  size_to({1920, 1080});
  EXPECT_TRUE(more->visibleRegion().isEmpty()) << "there is room for all";
  EXPECT_FALSE(table->visibleRegion().isEmpty());
  EXPECT_NE(table->focusPolicy(), Qt::NoFocus);
  size_to({960, 540});
  table->hide();  // as a view does that has no such page
  settle();
  EXPECT_FALSE(table->isVisible());
  more->menu()->popup({0, 0});
  EXPECT_EQ(listed(), nullptr);
  more->menu()->close();
  table->show();
}

TEST_F(Layouts, ColumnsAreAsWideAsTheirWords) {
  train(6);
  load_step(5);
  window_->set_layout("Memory");
  size_to({1920, 1080});
  auto* live = window_->findChild<TableList*>("memory.live");
  ASSERT_GT(live->model()->rowCount(), 5);
  EXPECT_EQ(cut(live).join(", ").toStdString(), "");
  // Where there is no room words give way, and numbers do not.
  window_->view("memory")->parentWidget()->resize(500, 400);
  size_to({960, 540});
  for (int c = 0; c < live->model()->columnCount(); ++c) {
    if (!live->table().columns[c].number) continue;
    for (int r = 0; r < live->model()->rowCount(); ++r)
      EXPECT_LE(live->sizeHintForIndex(live->model()->index(r, c)).width(), live->columnWidth(c));
  }
  // A width that a hand has set stays.
  live->horizontalHeader()->resizeSection(4, 222);
  size_to({1280, 720});
  EXPECT_EQ(live->columnWidth(4), 222);
}

TEST_F(Layouts, APausedRunIsCalledPausedAndCountsAgree) {
  ASSERT_TRUE(window_->commands().run("run.step"));
  until([this] {
    return bench_->training() && bench_->status().state == projects::RunStatus::State::paused &&
           bench_->status().step == 1;
  });
  settle();
  const QString all = QLocale(QLocale::English).toString(qlonglong(bench_->status().total_steps));
  QStringList words;
  for (QLabel* l : window_->findChildren<QLabel*>())
    if (!l->visibleRegion().isEmpty()) words << (l->text().isEmpty() ? l->accessibleName() : l->text());
  EXPECT_TRUE(words.contains("step 1 / " + all)) << words.join(" | ").toStdString();
  bench_->select(Selection::run(bench_->shown_run(), "test"));
  window_->show_view("training");
  settle();
  words.clear();
  for (QLabel* l : window_->findChildren<QLabel*>())
    if (!l->visibleRegion().isEmpty()) words << (l->text().isEmpty() ? l->accessibleName() : l->text());
  EXPECT_FALSE(words.filter("1 of " + all + " steps").isEmpty()) << words.join(" | ").toStdString();
  EXPECT_TRUE(words.contains("1 of " + all)) << "in the details";
  EXPECT_TRUE(words.contains("paused")) << "in the details";
  EXPECT_TRUE(words.filter("running").isEmpty()) << words.filter("running").join(" | ").toStdString();
  auto* tree = window_->findChild<QTreeWidget*>("project.tree");
  QTreeWidgetItem* run =
      tree->findItems(QString::fromStdString(bench_->status().name), Qt::MatchExactly | Qt::MatchRecursive).value(0);
  ASSERT_NE(run, nullptr);
  EXPECT_TRUE(run->toolTip(0).contains("paused")) << run->toolTip(0).toStdString();
  window_->open_goto("?");
  QStringList notes;
  for (int i = 0; i < window_->picker()->list()->count(); ++i)
    notes << window_->picker()->list()->item(i)->data(Qt::UserRole).toString();
  EXPECT_EQ(notes.value(0), "paused");
  key(window_->picker()->field(), Qt::Key_Escape);
  bench_->stop();
  until([this] { return !bench_->training(); });
  settle();
}

TEST_F(Layouts, ABannerIsAsTallAsItsWords) {
  size_to({1440, 900});
  bench_->fail("The file could not be opened", "t.tenon is no project", "Open another one.");
  settle();
  auto* text = window_->findChild<QLabel*>("banner.text");
  auto* bar = window_->findChild<QToolBar*>("banner");
  ASSERT_TRUE(bar->isVisible());
  EXPECT_GE(text->height(), 2 * text->fontMetrics().height());
  EXPECT_LE(bar->height(), 2 * text->fontMetrics().lineSpacing() + 40);
}

TEST_F(Layouts, AGoToWithoutHitsSaysWhatWasSearchedAndWhatCanBeTyped) {
  train(3);
  load_step(2);
  const auto& record = *bench_->links().record();
  auto said = [&](const QString& typed) {
    key(window_.get(), Qt::Key_K, Qt::ControlModifier);
    QTest::keyClicks(window_->picker()->field(), typed);
    QStringList lines;
    for (int i = 0; i < window_->picker()->list()->count(); ++i) lines << window_->picker()->list()->item(i)->text();
    key(window_->picker()->field(), Qt::Key_Return);  // there is nothing to choose
    EXPECT_TRUE(window_->picker()->isVisible());
    key(window_->picker()->field(), Qt::Key_Escape);
    return lines.join("\n").toStdString();
  };
  const std::string everything = said("zqzq");
  EXPECT_NE(everything.find("Nothing fits “zqzq” among"), std::string::npos) << everything;
  EXPECT_NE(everything.find(std::to_string(record.ops.size()) + " ops"), std::string::npos) << everything;
  EXPECT_NE(everything.find("# and a tensor"), std::string::npos) << everything;
  EXPECT_NE(said("?zqzq").find("Nothing fits “zqzq” among 1 run"), std::string::npos);
  window_->open_palette();
  QTest::keyClicks(window_->picker()->field(), "zqzq");
  EXPECT_TRUE(window_->picker()->list()->item(0)->text().contains("zqzq"));
  EXPECT_GE(window_->picker()->list()->count(), 2);
  EXPECT_GE(window_->picker()->list()->viewport()->height(), 28 * window_->picker()->list()->count());
  key(window_->picker()->field(), Qt::Key_Escape);
}

TEST_F(Layouts, MenusFitASmallScreen) {
  for (const QAction* a : window_->menuBar()->actions())
    EXPECT_LE(a->menu()->sizeHint().height(), 720) << a->text().toStdString();
  EXPECT_EQ(window_->menuBar()->actions().size(), 8);
}

}  // namespace
}  // namespace tenon::views
