#pragma once
#include <QToolBar>
#include <functional>

#include "views/frame/commands.h"
#include "views/shell/workbench.h"

class QFrame;
class QLabel;
class QToolButton;

namespace tenon::views {

/// The first minutes with Tenon: a strip that says what to do next, whose button does it. Where one is, is read off
/// what the window holds, so that whoever does a step by other means goes on as well.
class Tour : public QToolBar {
  Q_OBJECT
 public:
  Tour(Workbench& bench, Commands& commands, QWidget* parent);
  void start();
  /// Also once it is done: remembered as seen.
  void leave();
  bool running() const { return running_; }
  /// Shown, or not, as the tour runs: a restored window knows nothing of it.
  void refresh();
  std::function<void()> make_project;
  std::function<void()> on_seen;

 protected:
  void resizeEvent(QResizeEvent* e) override;

 private:
  /// `last`: the button leaves the tour.
  void say(const QString& text, const QString& button = {}, std::function<void()> act = {}, bool last = false);
  void fit();

  Workbench& bench_;
  Commands& commands_;
  bool running_ = false;
  QLabel* text_;
  QToolButton *action_, *leave_;
  std::function<void()> act_;
};

}  // namespace tenon::views
