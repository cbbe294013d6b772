// What the monkey does next.
#include <QApplication>
#include <QDialog>
#include <QDockWidget>
#include <QThread>
#include <algorithm>
#include <iterator>

#include "tests/views/shell/monkey.h"

namespace tenon::views::testing {

Act Monkey::choose() {
  // A dialog of files is answered, never clicked in at random: it can delete files.
  if (QApplication::activeModalWidget()) {
    static constexpr const char* kAnswers[] = {"reject", "reject", "project", "broken", "new", "nowhere"};
    return {"answer", {}, 0, 0, kAnswers[below(6)], {}};
  }
  // Something is being dragged: a hand that holds a button down can drop it or take it back, and press nothing else.
  if ((depth_ > 1 || QThread::currentThread()->loopLevel() > 1) && !QApplication::activePopupWidget()) {
    if (!held_window_.empty() && chance(60))
      return {"release", held_window_, below(1000), below(600), held_button_, {}};
    return {"key", "main", 0, 0, "Escape", {}};
  }
  if (!held_window_.empty() && chance(45)) {
    const std::string from = held_window_;
    if (chance(30)) return {"release", from, below(1300), below(800), held_button_, {}};
    return {"move", from, below(1300), below(800), {}, {}};
  }
  const int kind = below(1000);
  if (kind < 560) return choose_mouse();
  if (kind < 850) return choose_key();
  if (kind < 940) {
    const auto& all = window_->commands().all();
    const Command& c = all[static_cast<size_t>(below(static_cast<int>(all.size())))];
    if (c.id == "file.quit" && !chance(10)) return choose_mouse();
    if (!options_.trains && (c.id.startsWith("run.") || c.id == "tools.picture")) return choose_mouse();
    return {"command", {}, 0, 0, c.id.toStdString(), {}};
  }
  return choose_rare();
}

Act Monkey::choose_mouse() {
  QWidget* top = QApplication::activePopupWidget();
  if (!top) {
    std::vector<QWidget*> tops{window_.get(), window_.get(), window_.get()};
    for (QWidget* w : QApplication::topLevelWidgets())
      if (w->isVisible() && w->isWindow() && w != window_.get() && !qobject_cast<QDialog*>(w) &&
          w->windowType() != Qt::ToolTip)
        tops.push_back(w);
    top = tops[static_cast<size_t>(below(static_cast<int>(tops.size())))];
  }
  QPoint p(below(top->width()), below(top->height()));
  if (chance(70)) {  // something that answers
    QWidgetList inside;
    for (QWidget* w : top->findChildren<QWidget*>())
      if (w->isVisible() && !w->visibleRegion().isEmpty() && w->window() == top) inside << w;
    if (!inside.isEmpty()) {
      QWidget* w = inside[below(static_cast<int>(inside.size()))];
      if (chance(40)) {  // a picture of things is worth many widgets
        QList<QWidget*> canvases;
        for (QWidget* c : inside)
          if (qobject_cast<SceneCanvas*>(c)) canvases << c;
        if (!canvases.isEmpty()) w = canvases[below(static_cast<int>(canvases.size()))];
      }
      QPoint in(below(w->width()), below(w->height()));
      if (auto* c = qobject_cast<SceneCanvas*>(w); c && chance(70)) {
        const auto& targets = c->model().last().targets();
        if (!targets.empty()) {
          const Box& b = targets[static_cast<size_t>(below(static_cast<int>(targets.size())))].box;
          in = {static_cast<int>(b.x + b.w / 2), static_cast<int>(b.y + b.h / 2)};
        }
      }
      p = w->mapTo(top, in);
    }
  }
  static constexpr const char* kMods[] = {"-", "-", "-", "-", "-", "-", "c", "s", "a", "cs"};
  const std::string mods = kMods[below(10)];
  const std::string window = name_of(top);
  const int kind = below(100);
  const char* button = kind < 80 ? "left" : kind < 90 ? "middle" : "right";
  switch (below(10)) {
    case 0:
    case 1:
      return {"move", window, p.x(), p.y(), {}, mods};
    case 2:
      return {"wheel", window, p.x(), p.y(), std::to_string((below(9) - 4) * 120), mods};
    case 3:
      return {"double", window, p.x(), p.y(), "left", mods};
    case 4:
    case 5:
      return {"press", window, p.x(), p.y(), button, mods};
    default:
      return {"click", window, p.x(), p.y(), button, mods};
  }
}

Act Monkey::choose_key() {
  static constexpr const char* kKeys[] = {
      "Escape", "Return", "Tab",    "Backtab", "Backspace", "Delete", "Left", "Right", "Up", "Down", "Home",
      "End",    "PgUp",   "PgDown", "Space",   "F",         "W",      "A",    "S",     "D",  "M",    "N",
      "/",      "@",      "#",      ":",       "?",         "-",      ".",    ",",     "F1", "F2"};
  QWidget* top = QApplication::activePopupWidget() ? QApplication::activePopupWidget() : window_.get();
  static constexpr const char* kMods[] = {"-", "-", "-", "-", "-", "-", "-", "c", "s", "a"};
  std::string key = kKeys[below(static_cast<int>(std::size(kKeys)))];
  if (chance(35)) key = std::string(1, static_cast<char>('A' + below(26)));
  // Two digits in a row now and then make a layer of gigabytes: that is not what this test is about.
  if (chance(8) && !last_was_digit_) {
    key = std::string(1, static_cast<char>('0' + below(10)));
    last_was_digit_ = true;
  } else if (key == "Backspace" || key == "Delete") {
    last_was_digit_ = false;
  }
  std::string mods = kMods[below(10)];
  if (key == "Q" && mods == "c") mods = kNobody;  // the command quits often enough
  if (!options_.trains && (key.size() > 1 && key[0] == 'F')) key = "Escape";
  return {"key", name_of(top), 0, 0, key, mods};
}

Act Monkey::choose_rare() {
  const auto& views = window_->findChildren<QDockWidget*>();
  switch (below(options_.trains ? 15 : 9)) {
    case 0:
    case 1:
      return {"resize", "main", 300 + below(1280), 250 + below(740), {}, {}};
    case 2:
    case 3:
    case 4: {
      static constexpr const char* kVerbs[] = {"float", "dock", "close", "left", "right", "bottom", "top", "tab"};
      QDockWidget* d = views[below(static_cast<int>(views.size()))];
      return {"dock", word(d->objectName()), below(800), below(500), kVerbs[below(8)], {}};
    }
    case 5:
      return {"open", {}, below(static_cast<int>(options_.projects.size())), 0, {}, {}};
    case 6:
      return chance(30) ? Act{"reopen", {}, 0, 0, {}, {}} : choose_key();
    case 7:
    case 8:
      return {"settle", {}, 0, 0, {}, {}};
    case 9:
      return {"wait", {}, below(chance(20) ? 900 : 60), 0, {}, {}};
    case 10:
    case 11:
      return {"command", {}, 0, 0, "run.replay", {}};
    case 12:
      return {"open", {}, below(static_cast<int>(options_.projects.size())), 0, {}, {}};
    default:
      return {"command", {}, 0, 0, chance(50) ? "run.train" : chance(50) ? "run.stop" : "run.step", {}};
  }
}

}  // namespace tenon::views::testing
