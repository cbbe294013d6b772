// What the README says of menus is in the window.
#include <gtest/gtest.h>

#include <QMenu>
#include <QMenuBar>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/views/shell/window_fixture.h"

namespace tenon::views {
namespace {

class Readme : public testing::WindowTest {
 protected:
  /// "Run › Diagnose", by what stands there.
  void find_places(const QMenu& menu, const QString& path) {
    for (QAction* a : menu.actions())
      if (const QMenu* inner = a->menu())
        find_places(*inner, path + " › " + inner->title());
      else
        places_[a] << path;
  }
  QHash<const QAction*, QStringList> places_;
};

TEST_F(Readme, every_menu_entry_that_it_names_is_there) {
  make_window();
  for (const QAction* a : window_->menuBar()->actions()) find_places(*a->menu(), a->menu()->title());
  std::ifstream in(TENON_SOURCE_DIR "/README.md");
  std::stringstream all;
  all << in.rdbuf();
  const std::string text = all.str();
  const std::regex entry(R"(\*([A-Z][a-z]+(?: › [A-Z][a-z]+)?) › ([^*]+)\*)");
  int found = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), entry), end; at != end; ++at, ++found) {
    const QString menu = QString::fromStdString((*at)[1]), title = QString::fromStdString((*at)[2]);
    const auto begins = [](QString has, QString says) {
      // "Open" stands for "Open…", "Continue … with the recipe" names the run in between.
      const QStringList parts = says.split("…", Qt::SkipEmptyParts);
      qsizetype from = 0;
      for (const QString& part : parts) {
        const qsizetype place = has.indexOf(part.trimmed(), from);
        if (place < 0 || (from == 0 && place != 0)) return false;
        from = place + part.size();
      }
      return true;
    };
    bool there = false;
    for (const Command& c : window_->commands().all())
      there |= places_.value(window_->commands().action(c.id)).contains(menu) &&
               (begins(c.title, title) || (c.text && begins(c.text(), title)));
    EXPECT_TRUE(there) << "no entry of the window is " << (*at)[0];
  }
  EXPECT_GT(found, 20);
}

}  // namespace
}  // namespace tenon::views
