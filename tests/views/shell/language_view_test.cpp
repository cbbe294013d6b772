// The window in another language than English.
#include <gtest/gtest.h>

#include <QAbstractButton>
#include <QAction>
#include <QMenuBar>
#include <QTest>

#include "tests/views/shell/window_fixture.h"
#include "views/frame/application.h"
#include "views/frame/view_def.h"

namespace tenon::views {
namespace {

struct German : testing::WindowTest {
  void SetUp() override {
    WindowTest::SetUp();
    ASSERT_TRUE(speak("de"));
  }
  void TearDown() override {
    WindowTest::TearDown();
    speak("en");
  }
  static bool speak(const QString& language) { return dynamic_cast<Application*>(qApp)->speak(language); }
  QStringList menus() {
    QStringList titles;
    for (QAction* a : window_->menuBar()->actions()) titles << a->text();
    return titles;
  }
};

TEST_F(German, menus_views_and_commands_are_german) {
  open_spirals();
  EXPECT_EQ(menus(), (QStringList{"Datei", "Bearbeiten", "Modell", "Lauf", "Ansicht", "Filter", "Extras", "Hilfe"}));
  EXPECT_EQ(window_->commands().action("run.train")->text(), "Trainieren");
  int same = 0;
  for (const ViewDef& def : view_defs()) {
    EXPECT_EQ(window_->view(def.id)->title(), QObject::tr(def.title));
    same += window_->view(def.id)->title() == def.title;
  }
  EXPECT_LT(same, 6) << "but for names such as Details";
  // Ids, object names and what is stored are the same in every language.
  EXPECT_TRUE(window_->findChild<QAbstractButton*>("tool.run.train"));
  EXPECT_TRUE(window_->show_view("timeline"));
}

TEST_F(German, a_run_is_trained_looked_into_and_taken_back) {
  open_spirals();
  train(20);
  load_step(20);
  for (const ViewDef& def : view_defs()) {
    ASSERT_TRUE(window_->show_view(def.id)) << def.id;
    settle();
  }
  for (const char* layout : {"build", "train", "profile", "memory", "debug"}) {
    EXPECT_TRUE(window_->commands().run(QString("layout.") + layout)) << layout;
    settle();
  }
  EXPECT_TRUE(window_->commands().run("run.delete"));
  settle();
  EXPECT_TRUE(bench_->contents().runs.empty());
  ASSERT_TRUE(banner_action());
  EXPECT_TRUE(banner().contains("gelöscht")) << banner().toStdString();
  banner_action()->click();
  settle();
  EXPECT_EQ(bench_->contents().runs.size(), 1u);
  EXPECT_TRUE(problems_.empty()) << problems_.front();
}

// A choice that is shown in German is the one that is kept.
TEST_F(German, what_is_chosen_is_stored_as_it_is_called_in_files) {
  make_window();
  ASSERT_TRUE(window_->commands().run("tools.settings"));
  settle();
  QWidget* theme = nullptr;
  until([&] {
    for (QWidget* w : QApplication::topLevelWidgets())
      if (QWidget* found = w->findChild<QWidget*>("settings.theme")) theme = found;
    return theme != nullptr;
  });
  key(theme, Qt::Key_End);
  settle();
  EXPECT_EQ(window_->theme(), ThemeName::contrast);
  theme->window()->close();
  settle();
}

TEST_F(German, an_unknown_language_is_english) {
  EXPECT_FALSE(speak("xx"));
  make_window();
  EXPECT_EQ(menus().first(), "File");
}

}  // namespace
}  // namespace tenon::views
