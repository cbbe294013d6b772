#pragma once
#include <gtest/gtest.h>

#include <QImage>
#include <QTemporaryDir>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "views/shell/main_window.h"

namespace tenon::views::testing {

/// A real window under a virtual display, driven with real mouse and key events.
class WindowTest : public ::testing::Test {
 protected:
  void SetUp() override;
  /// Ends with the window closed, and fails where a handler threw (Note [The net under the event loop]).
  void TearDown() override;

  /// An empty window, without a project.
  void make_window();
  void close_window();
  void open(const QString& file);
  /// A fresh project of the template "spirals", which needs no data files, open in a window.
  void open_spirals();
  void settle();
  /// Trains some steps to the end, by what a person's button calls.
  void train(int steps, const std::vector<std::pair<std::string, std::string>>& set = {});
  void load_step(int64_t step);
  void until(const std::function<bool()>& what);

  void key(QWidget* w, Qt::Key k, Qt::KeyboardModifiers m = Qt::NoModifier);
  void click(QWidget* w, QPoint at);
  /// A part of the window by its name; the test fails where there is none.
  template <class W = QWidget>
  W* part(const QString& name) {
    auto* w = window_->findChild<W*>(name);
    EXPECT_NE(w, nullptr) << name.toStdString();
    return w;
  }
  /// A click into the middle of a widget that is seen, found by its name.
  void press(const QString& name);
  /// An entry of a menu, by the mouse.
  void choose_in_menu(const QString& menu, const QString& command);
  /// The file dialog that opens next is given a name, and a kind where one is named.
  void answer(const QString& path, const QString& kind = {});
  SceneCanvas* canvas(const QString& id);
  /// Where a target of the canvas's picture is.
  QPoint place(SceneCanvas* c, Hit hit);
  QString banner() const;
  bool banner_shown() const;
  /// The button on the banner; null where it shows none.
  QToolButton* banner_action() const;

  QTemporaryDir dir_;
  QString file_;
  std::unique_ptr<Workbench> bench_;
  std::unique_ptr<MainWindow> window_;
  std::vector<std::string> thrown_;    ///< by handlers since the window was made
  std::vector<std::string> problems_;  ///< told in banners since the window was made

 private:
  void take_picture();
  QImage last_picture_;
  int pictures_ = 0;
};

}  // namespace tenon::views::testing
