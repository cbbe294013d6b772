// The dialog of settings: everything in it holds at once, is kept, and goes back.
#include "views/shell/settings_dialog.h"

#include <gtest/gtest.h>

#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QKeySequenceEdit>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTabBar>
#include <QTabWidget>
#include <QTest>
#include <QTreeWidget>
#include <filesystem>

#include "core/cache_folder.h"
#include "core/file.h"
#include "core/parallel.h"
#include "tests/views/shell/window_fixture.h"
#include "views/canvas/glyphs.h"
#include "views/shared/settings.h"

namespace tenon::views {
namespace {

class Dialog : public testing::WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    open_spirals();
    key(window_.get(), Qt::Key_Comma, Qt::ControlModifier);
    dialog_ = window_->findChild<SettingsDialog*>();
    ASSERT_NE(dialog_, nullptr);
    ASSERT_TRUE(QTest::qWaitForWindowExposed(dialog_));
    // What is typed into a box counts once the box loses the keys, which it has only in a window that is active.
    until([this] {
      dialog_->activateWindow();
      return dialog_->isActiveWindow();
    });
  }
  void TearDown() override {
    if (dialog_) dialog_->close();
    WindowTest::TearDown();
    for (const AttrDef& def : settings::defs()) settings::reset(def.name);
    settings::reset_shortcuts();
    set_text_size(13);
    set_num_threads(0);
  }
  template <class Widget>
  Widget* part(const QString& name) {
    auto* w = dialog_->findChild<Widget*>(name);
    EXPECT_NE(w, nullptr) << name.toStdString();
    return w;
  }
  void show_shortcuts() {
    auto* bar = dialog_->findChild<QTabWidget*>()->tabBar();
    click(bar, bar->tabRect(1).center());
  }
  void choose(const QString& words) {
    auto* search = part<QLineEdit>("shortcuts.search");
    search->setFocus();
    search->clear();
    QTest::keyClicks(search, words);
    auto* list = part<QTreeWidget>("shortcuts.list");
    ASSERT_GT(list->topLevelItemCount(), 0) << words.toStdString();
    click(list->viewport(), list->visualItemRect(list->topLevelItem(0)).center());
  }
  void type(Qt::Key k, Qt::KeyboardModifiers m) {
    auto* editor = part<QKeySequenceEdit>("shortcuts.editor");
    editor->setFocus();
    QTest::keyClick(editor, k, m);
    settle();
  }
  QString keys_of(const char* id) { return window_->commands().action(id)->shortcut().toString(); }
  QPointer<SettingsDialog> dialog_;
};

TEST_F(Dialog, the_cache_folder_has_a_limit_and_is_emptied) {
  cache::empty();  // of what the tests before this one kept
  std::filesystem::create_directories(cache::folder_of("traces"));
  const std::string path = cache::folder_of("traces") + "/kept";
  write_file(path, std::string(3 << 20, 'x'));
  dialog_->refresh();
  EXPECT_EQ(part<QLabel>("settings.cached")->text(), "3.00 MiB in 1 file");
  auto* box = part<QSpinBox>("settings.cache_limit");
  EXPECT_EQ(box->value(), 10);
  box->setFocus();
  box->selectAll();
  QTest::keyClicks(box, "7");
  QTest::keyClick(box, Qt::Key_Return);
  settle();
  EXPECT_EQ(settings::integer("cache_limit"), 7);
  EXPECT_EQ(cache::limit(), int64_t{7} << 30);
  EXPECT_TRUE(std::filesystem::exists(path));
  auto* empty = part<QPushButton>("settings.empty_cache");
  ASSERT_TRUE(empty->isEnabled());
  empty->click();
  settle();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(empty->isEnabled());
  EXPECT_EQ(part<QLabel>("settings.cached")->text(), "nothing is kept there");
  // A limit of nothing holds at once.
  write_file(path, "x");
  box->setFocus();
  box->selectAll();
  QTest::keyClicks(box, "0");
  QTest::keyClick(box, Qt::Key_Return);
  settle();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(Dialog, shows_every_setting_with_its_help) {
  for (const AttrDef& def : settings::defs()) {
    EXPECT_NE(part<QWidget>("settings." + QString::fromStdString(def.name)), nullptr);
    bool help = false;
    for (QLabel* l : dialog_->findChildren<QLabel*>()) help |= l->text() == QString::fromStdString(def.help);
    EXPECT_TRUE(help) << def.name;
  }
}

TEST_F(Dialog, theme_and_letters_hold_at_once_and_go_back) {
  auto* theme = part<QComboBox>("settings.theme");
  theme->setFocus();
  while (theme->currentText() != "contrast") key(theme, Qt::Key_Down);
  EXPECT_EQ(window_->theme(), ThemeName::contrast);
  EXPECT_EQ(settings::text("theme"), "contrast");

  const int before = window_->step_slider()->fontMetrics().height();
  auto* size = part<QSpinBox>("settings.text_size");
  size->setFocus();
  size->selectAll();
  QTest::keyClicks(size, "17");
  key(size, Qt::Key_Return);
  settle();
  ASSERT_NE(dialog_, nullptr) << "Enter in a field does not close the dialog";
  EXPECT_EQ(settings::integer("text_size"), 17);
  EXPECT_EQ(face_font(Face::body).pixelSize(), 17);
  EXPECT_GT(window_->step_slider()->fontMetrics().height(), before);
  int mono = 0;  // labels with a face of their own follow, too
  for (QLabel* l : window_->findChildren<QLabel*>())
    mono += l->font().family() == face_font(Face::mono).family() &&
            l->font().pixelSize() == face_font(Face::mono).pixelSize();
  EXPECT_GT(mono, 0);
  EXPECT_EQ(window_->view("builder")->canvas()->model().last().texts().empty(), false) << "the canvas drew again";
  settle();
  click(part<QToolButton>("settings.reset.text_size"), {5, 5});
  EXPECT_EQ(settings::integer("text_size"), 13);
  EXPECT_EQ(face_font(Face::body).pixelSize(), 13);
  EXPECT_EQ(size->value(), 13);
  EXPECT_EQ(window_->step_slider()->fontMetrics().height(), before);
  click(part<QPushButton>("settings.reset"), {5, 5});
  EXPECT_EQ(settings::text("theme"), "system");
  // A window that is made later comes with what was set.
  settings::set("theme", std::string("light"));
  dialog_->close();
  close_window();
  make_window();
  window_->use_settings();
  EXPECT_EQ(window_->theme(), ThemeName::light);
}

TEST_F(Dialog, threads_are_those_that_compute) {
  auto* threads = part<QSpinBox>("settings.threads");
  EXPECT_EQ(threads->text(), "every core");
  threads->setFocus();
  threads->selectAll();
  QTest::keyClicks(threads, "3");
  key(threads, Qt::Key_Tab);
  until([] { return num_threads() == 3; });
  EXPECT_EQ(num_threads(), 3);
  EXPECT_EQ(settings::integer("threads"), 3);
}

TEST_F(Dialog, a_command_gets_other_keys_and_keeps_them) {
  show_shortcuts();
  choose("Checkpoint now");
  EXPECT_EQ(keys_of("run.checkpoint"), "Ctrl+S");
  type(Qt::Key_B, Qt::ControlModifier | Qt::AltModifier);
  EXPECT_EQ(keys_of("run.checkpoint"), "Ctrl+Alt+B");
  EXPECT_EQ(settings::shortcuts()["run.checkpoint"], "Ctrl+Alt+B");
  // A letter alone is for typing.
  type(Qt::Key_B, Qt::NoModifier);
  EXPECT_EQ(keys_of("run.checkpoint"), "Ctrl+Alt+B");
  EXPECT_TRUE(part<QLabel>("shortcuts.said")->text().contains("hold Ctrl or Alt"));
  dialog_->close();
  close_window();
  make_window();
  EXPECT_EQ(keys_of("run.checkpoint"), "Ctrl+S") << "a picture without a hand follows nobody's settings";
  window_->use_settings();
  EXPECT_EQ(keys_of("run.checkpoint"), "Ctrl+Alt+B");
}

TEST_F(Dialog, keys_of_another_command_are_told_and_taken_only_when_said) {
  show_shortcuts();
  choose("Show runs");
  type(Qt::Key_K, Qt::ControlModifier);
  EXPECT_EQ(keys_of("go.to"), "Ctrl+K");
  EXPECT_EQ(keys_of("view.runs"), "");
  EXPECT_TRUE(part<QLabel>("shortcuts.said")->text().contains("Go to…"));
  auto* take = part<QPushButton>("shortcuts.take");
  ASSERT_TRUE(take->isVisible());
  click(take, {5, 5});
  EXPECT_EQ(keys_of("go.to"), "");
  EXPECT_EQ(keys_of("view.runs"), "Ctrl+K");
  // The keys do what they say now.
  dialog_->close();
  settle();
  QApplication::setActiveWindow(window_.get());
  key(window_.get(), Qt::Key_K, Qt::ControlModifier);
  settle();
  EXPECT_FALSE(window_->picker()->isVisible());
  EXPECT_FALSE(window_->view("runs")->visibleRegion().isEmpty());
  // And back, one and all.
  key(window_.get(), Qt::Key_Comma, Qt::ControlModifier);
  dialog_ = window_->findChild<SettingsDialog*>();
  ASSERT_NE(dialog_, nullptr);
  show_shortcuts();
  choose("Show runs");
  click(part<QPushButton>("shortcuts.usual"), {5, 5});
  EXPECT_EQ(keys_of("view.runs"), "");
  click(part<QPushButton>("settings.reset"), {5, 5});
  EXPECT_EQ(keys_of("go.to"), "Ctrl+K");
  EXPECT_TRUE(settings::shortcuts().empty());
}

TEST_F(Dialog, no_two_commands_come_with_the_same_keys) {
  QHash<QString, QString> seen;
  for (const Command& c : window_->commands().all()) {
    if (c.keys.isEmpty()) continue;
    EXPECT_FALSE(seen.contains(c.keys)) << c.id.toStdString() << " and " << seen[c.keys].toStdString();
    seen[c.keys] = c.id;
  }
}

}  // namespace
}  // namespace tenon::views
