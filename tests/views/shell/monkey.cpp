#include "tests/views/shell/monkey.h"

#include <fcntl.h>
#include <unistd.h>

#include <QApplication>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QScreen>
#include <QTest>
#include <QThread>
#include <QTimer>
#include <QWheelEvent>
#include <QWindow>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "tests/views/shell/drop.h"
#include "views/frame/application.h"
#include "views/shell/dock_layout.h"

namespace tenon::views::testing {

namespace {
Qt::KeyboardModifiers mods_of(const std::string& text) {
  Qt::KeyboardModifiers m;
  if (text.find('c') != std::string::npos) m |= Qt::ControlModifier;
  if (text.find('s') != std::string::npos) m |= Qt::ShiftModifier;
  if (text.find('a') != std::string::npos) m |= Qt::AltModifier;
  return m;
}
Qt::MouseButton button_of(const std::string& text) {
  return text == "right" ? Qt::RightButton : text == "middle" ? Qt::MiddleButton : Qt::LeftButton;
}
}  // namespace

std::string word(QString text) { return text.isEmpty() ? kNobody : text.replace(' ', '_').toStdString(); }

std::string Act::text() const {
  std::ostringstream out;
  out << what << ' ' << (window.empty() ? kNobody : window) << ' ' << x << ' ' << y << ' '
      << (arg.empty() ? kNobody : arg) << ' ' << (mods.empty() ? kNobody : mods);
  return out.str();
}

Act Act::parse(const std::string& line) {
  std::istringstream in(line);
  Act a;
  in >> a.what >> a.window >> a.x >> a.y >> a.arg >> a.mods;
  return a;
}

Monkey::Monkey(Options options) : options_(std::move(options)), random_(options_.seed) {
  log_ = ::open(options_.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

Monkey::~Monkey() {
  drop_window();
  static_cast<Application*>(qApp)->on_exception = nullptr;  // it tells this monkey
  if (log_ >= 0) ::close(log_);
}

void Monkey::make_window() {
  bench_ = std::make_unique<Workbench>();
  static_cast<Application*>(qApp)->on_exception = [this](const QString& where, const QString& message,
                                                         const QString& hint) {
    report_.thrown.push_back((where + ": " + message).toStdString());
    if (bench_) bench_->caught(where, message, hint);
  };
  QObject::connect(bench_.get(), &Workbench::problem, [this](const QString& title, const QString&, const QString&) {
    ++report_.problems[title.toStdString()];
  });
  bench_->bus.listen([this](const Selection& s) { ++report_.seen[std::string("selected ") + name(s.kind)]; });
  QObject::connect(bench_.get(), &Workbench::step_changed, [this, had = false]() mutable {
    if (bench_->links() && !had) ++report_.seen["step loaded"];
    had = static_cast<bool>(bench_->links());
  });
  QObject::connect(bench_.get(), &Workbench::status_changed, [this, had = false]() mutable {
    if (bench_->training() && !had) ++report_.seen["training begun"];
    had = bench_->training();
  });
  QObject::connect(bench_.get(), &Workbench::project_changed, [this, had = QString()]() mutable {
    if (bench_->file() != had) ++report_.seen["project opened"];
    had = bench_->file();
  });
  window_ = std::make_unique<MainWindow>(*bench_, ThemeName::dark);
  if (!options_.trains) window_->setAnimated(false);  // docks that make room by the clock
  window_->resize(1200, 760);
  window_->show();
  wait_for([this] { return window_->windowHandle() && window_->windowHandle()->isExposed(); }, 5000);
  QApplication::setActiveWindow(window_.get());
}

void Monkey::drop_window() {
  if (window_) window_->close();
  window_.reset();
  bench_.reset();
  held_window_.clear();
}

// The loop of a drag that a timer began (words dragged out of a text) turns around no act: only its level tells of it.
bool Monkey::quiet_moment() const {
  return depth_ <= 1 && QThread::currentThread()->loopLevel() <= 1 && !QApplication::activeModalWidget() &&
         !QApplication::activePopupWidget();
}

std::string Monkey::name_of(const QWidget* w) const {
  if (w == window_.get()) return "main";
  return word(w->objectName().isEmpty() ? QString(w->metaObject()->className()) : w->objectName());
}

QWidget* Monkey::top_level(const std::string& name) const {
  if (name == "main") return window_.get();
  // Of a menu and the menu within it, which share a name, the inner one; Qt lists windows in the order of addresses.
  if (QWidget* w = QApplication::activePopupWidget(); w && name_of(w) == name) return w;
  for (QWidget* w : QApplication::topLevelWidgets())
    if (w->isVisible() && name_of(w) == name) return w;
  return nullptr;
}

Monkey::Report Monkey::run() {
  report_ = {};
  QApplication::setKeyboardInputInterval(options_.trains ? 400 : -1);
  make_window();
  open_copy(0);
  turn_.start();
  ask();
  loop_.exec();
  report_.end = fingerprint();
  return report_;
}

Monkey::Report Monkey::replay(const std::string& log) {
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') script_.push_back(Act::parse(line));
  replaying_ = true;
  options_.events = std::count_if(script_.begin(), script_.end(), [](const Act& a) { return a.what != "turn"; });
  script_.push_back({"turn", {}, 0, 0, "hasty", {}});
  return run();
}

void Monkey::wait_for(const std::function<bool()>& what, int ms) {
  waiting_ = true;
  // What comes in the meantime may open a loop of its own (a drag that begins by a timer), which the wait cannot see
  // the end of.
  const int serial = ++waits_;
  QTimer::singleShot(ms + 500, &loop_, [this, serial] {
    if (!waiting_ || serial != waits_) return;
    waiting_ = false;
    ask();
  });
  QElapsedTimer since;
  since.start();
  while (!what() && since.elapsed() < ms) {
    QCoreApplication::processEvents();
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
    QThread::usleep(500);
  }
  waiting_ = false;
  if (std::exchange(missed_, false)) ask();
}

void Monkey::ask() {
  if (std::exchange(asked_, true)) return;
  QTimer::singleShot(0, &loop_, [this] { tick(); });
}

constexpr int kLooks = 1000;

/// Note [Loops within the loop]
/// What closes a menu, a dialog or a drag only asks its loop to end. Whether one more look of the monkey comes before
/// it has ended is a matter of microseconds, and what was chosen happens behind it: nothing is done in a loop that is
/// over, and the act that ended it is the last of its turn there.
void Monkey::count_loops() {
  const int level = QThread::currentThread()->loopLevel();
  while (!inner_.empty() && inner_.back().level > level) inner_.pop_back();
  auto held = [this](const QWidget* w) {
    return std::any_of(inner_.begin(), inner_.end(), [&](const Inner& l) { return l.widget == w; });
  };
  QWidget* w = QApplication::activeModalWidget();
  if (!w || held(w)) w = QApplication::activePopupWidget();
  if (w && held(w)) w = nullptr;
  if (!inner_.empty() && inner_.back().level == level) {
    if (!w || !loop_is_over()) return;
    inner_.pop_back();  // one question after the other, within one act
  }
  if (level > 1) inner_.push_back({level, w != nullptr, w});
}

bool Monkey::loop_is_over() const {
  if (inner_.empty() || inner_.back().level != QThread::currentThread()->loopLevel()) return false;
  const Inner& l = inner_.back();
  return l.shows ? !l.widget || !l.widget->isVisible() : l.let_go;
}

void Monkey::tick() {
  asked_ = false;
  // An act that waits lets the loop turn, and is finished first. The loop of a dialog, a menu or a drag is gone on with
  // from here.
  if (waiting_) {
    missed_ = true;
    return;
  }
  const bool over = report_.acts >= options_.events || (replaying_ && at_ >= script_.size());
  count_loops();
  if (!over && loop_is_over()) {
    if (++inner_.back().looks > kLooks) inner_.back() = {inner_.back().level};  // it goes on: only something was hidden
    return ask();
  }
  if (const double ms = static_cast<double>(turn_.nsecsElapsed()) / 1e6; ms > report_.longest_ms) {
    report_.longest_ms = ms;
    report_.longest_act = std::to_string(report_.acts);
  }
  turn_.start();
  // What is held is let go first, and one more look follows: a drag that a timer begins after the quit would turn its
  // loop for ever.
  if (over && quiet_moment() && held_window_.empty()) {
    if (!std::exchange(last_look_, true)) ask();
    return loop_.quit();
  }
  if (over) {
    ask();
    if (++endings_ % 1000 == 0) {
      std::fprintf(stderr, "monkey: cannot end: loop %d, depth %d, held \"%s\", popup %s, dialog %s\n",
                   QThread::currentThread()->loopLevel(), depth_, held_window_.c_str(),
                   QApplication::activePopupWidget() ? name_of(QApplication::activePopupWidget()).c_str() : kNobody,
                   QApplication::activeModalWidget() ? name_of(QApplication::activeModalWidget()).c_str() : kNobody);
      held_window_.clear();
    }
    if (QApplication::activePopupWidget()) QApplication::activePopupWidget()->close();
    if (auto* d = qobject_cast<QDialog*>(QApplication::activeModalWidget())) d->reject();
    if (!top_level(held_window_)) held_window_.clear();  // a menu that closed while a button was held over it
    if (!held_window_.empty())
      carry_out({"release", held_window_, 0, 0, held_button_, {}});
    else if (QThread::currentThread()->loopLevel() > 1)
      carry_out({"key", "main", 0, 0, "Escape", {}});
    return;
  }
  ++depth_;
  // A turn: the acts that come between two looks of the event loop. Half of them wait for what was read and replayed
  // before.
  const int burst = chance(40) ? 1 + below(4) : 10 + below(40);
  Act turn{"turn", {}, 0, 0, chance(50) ? "calm" : "hasty", {}};
  if (replaying_ && script_[at_].what == "turn") turn = script_[at_++];
  write_down(turn);
  if (turn.arg == "calm" && options_.trains && quiet_moment())
    wait_for([this] { return bench_->files.idle() && bench_->jobs.idle(); }, 250);
  for (int i = 0;
       report_.acts < options_.events && (replaying_ ? at_ < script_.size() && script_[at_].what != "turn" : i < burst);
       ++i) {
    const Act act = replaying_ ? script_[at_++] : choose();
    write_down(act);
    ++report_.acts;
    ++report_.kinds[act.what];
    ask();  // first: an act may open a dialog, whose own loop then goes on
    carry_out(act);
    count_loops();  // those within the act have ended
    come_to_rest();
    watchdog_.act_done();
    if (loop_is_over()) break;
    if (!replaying_ && (act.what == "wait" || act.what == "settle" || QApplication::activeModalWidget())) break;
  }
  --depth_;
  ask();
}

/// Without training a replay ends as its log did, so every act finds what it would have found the time before: what is
/// worked out beside the window is there, also within a menu or a drag, and the display has told of everything that the
/// window asked of it. (A picture of one pixel is answered after all that came before it.) Letters that are typed into
/// a list never make one word, however fast they come.
void Monkey::come_to_rest() {
  if (options_.trains) return;
  int quiet = 0;
  QElapsedTimer since;
  since.start();
  wait_for(
      [&] {
        window_->screen()->grabWindow(0, 0, 0, 1, 1);
        // In a window too small for its docks some lie under others: what is never seen is never painted.
        const bool settled = window_->idle() || (bench_->idle() && since.elapsed() > 400);
        quiet = settled ? quiet + 1 : 0;
        return quiet > 3;
      },
      2000);
}

void Monkey::write_down(const Act& act) {
  const std::string line = act.text() + "\n";
  if (log_ >= 0 && ::write(log_, line.data(), line.size()) < 0) log_ = -1;
}

/// The window that was clicked last is the active one, as any window manager has it. The display, which has none, hands
/// the keyboard to a window that floats off, or does not, by the microsecond.
void Monkey::activate(const Act& act) {
  if (QApplication::activeModalWidget() || endings_ > 0) return;
  if (act.what == "press" || act.what == "click" || act.what == "double")
    if (QWidget* w = top_level(act.window); w && w->windowType() != Qt::Popup) active_ = w;
  QWidget* w = active_ && active_->isVisible() && active_->isWindow() ? active_.data() : window_.get();
  if (QApplication::activeWindow() != w) QApplication::setActiveWindow(w);
}

void Monkey::carry_out(const Act& act) {
  activate(act);
  if (act.what == "command") return void(window_->commands().run(QString::fromStdString(act.arg)));
  if (act.what == "answer") return answer(act.arg);
  if (act.what == "open") {
    if (quiet_moment()) open_copy(static_cast<size_t>(act.x));
    return;
  }
  if (act.what == "reopen" || !window_->isVisible()) {
    if (!quiet_moment()) return;
    drop_window();
    make_window();
    open_copy(static_cast<size_t>(copies_));
    return;
  }
  if (act.what == "resize") return window_->resize(act.x, act.y);
  if (act.what == "wait" || act.what == "settle") {
    if (!quiet_moment()) return;
    if (act.what == "wait") return wait_for([] { return false; }, act.x);
    return wait_for([this] { return window_->idle() || bench_->training(); }, 20000);
  }
  if (act.what == "dock") {
    auto* d = window_->findChild<QDockWidget*>(QString::fromStdString(act.window));
    if (!d || !quiet_moment() || !held_window_.empty()) return;  // no hand floats a dock while it drags another
    // A hand that takes a dock is on no separator any more: Note [Layouts under a held mouse].
    leave_separator(window_.get());
    if (act.arg == "float") {
      d->setFloating(true);
      d->move(act.x, act.y);
    } else if (act.arg == "dock")
      d->setFloating(false);
    else if (act.arg == "close")
      d->close();
    else if (act.arg == "tab") {
      for (QDockWidget* other : window_->findChildren<QDockWidget*>())
        if (other != d && !other->isFloating() && other->isVisible()) {
          window_->tabifyDockWidget(other, d);
          break;
        }
      d->show();
    } else {
      window_->addDockWidget(act.arg == "left"    ? Qt::LeftDockWidgetArea
                             : act.arg == "right" ? Qt::RightDockWidgetArea
                             : act.arg == "top"   ? Qt::TopDockWidgetArea
                                                  : Qt::BottomDockWidgetArea,
                             d);
      d->show();
    }
    return;
  }
  QWidget* top = top_level(act.window);
  if (!top || !top->windowHandle()) return;
  QWindow* handle = top->windowHandle();
  const Qt::KeyboardModifiers mods = mods_of(act.mods);
  if (act.what == "key") {
    int key = QKeySequence::fromString(QString::fromStdString(act.arg), QKeySequence::PortableText)[0].key();
    QString text;
    if (act.arg.size() == 1 && !(mods & (Qt::ControlModifier | Qt::AltModifier)))
      text = QString::fromStdString(act.arg).toLower();
    if (act.arg == "Space") text = " ";
    QPointer<QWindow> still(handle);
    qt_handleKeyEvent(handle, QEvent::KeyPress, key, mods, text);
    if (still) qt_handleKeyEvent(handle, QEvent::KeyRelease, key, mods, text);
    return;
  }
  const QPointer<QWidget> still_there(top);
  const QPoint at(act.x, act.y);
  const QPointF local(at), global(top->mapToGlobal(at));
  if (act.what == "wheel") {
    QWidget* under = top->childAt(at) ? top->childAt(at) : top;
    QWheelEvent e(under->mapFrom(top, at), global, {}, {0, std::atoi(act.arg.c_str())}, Qt::NoButton, mods,
                  Qt::NoScrollPhase, false);
    QApplication::sendEvent(under, &e);
    return;
  }
  const Qt::MouseButton button = button_of(act.arg);
  const Qt::MouseButton held = held_window_.empty() ? Qt::NoButton : button_of(held_button_);
  auto mouse = [&, still = QPointer<QWindow>(handle)](QEvent::Type type, Qt::MouseButton b, Qt::MouseButtons state,
                                                      int after) {
    timestamp_ += after;
    if (still) qt_handleMouseEvent(still, local, global, state, b, type, mods, timestamp_);
  };
  constexpr int kApart = 1000, kSoon = 20;  // milliseconds: what is apart is no double click
  auto let_go = [&] {
    if (!inner_.empty()) inner_.back().let_go = true;
    if (held != Qt::NoButton) mouse(QEvent::MouseButtonRelease, held, Qt::NoButton, kSoon);
    held_window_.clear();
  };
  if (act.what == "move") {
    // Dragging words out of a text is Qt's, takes a real pointer, and takes badly to another one within it.
    if (held == Qt::NoButton || !holds_text_) mouse(QEvent::MouseMove, Qt::NoButton, held, kSoon);
    return;
  }
  if (act.what == "release") return let_go();
  let_go();  // one button at a time
  if (!still_there) return;
  bool text = false;  // asked before the press, which may close what is under it
  for (QWidget* w = top->childAt(at); w; w = w->parentWidget())
    text |= qobject_cast<QLineEdit*>(w) || qobject_cast<QPlainTextEdit*>(w) || qobject_cast<QLabel*>(w);
  mouse(QEvent::MouseMove, Qt::NoButton, Qt::NoButton, kApart);
  mouse(QEvent::MouseButtonPress, button, button, kSoon);
  if (act.what == "press") {
    held_window_ = act.window;
    held_button_ = act.arg;
    holds_text_ = text;
    return;
  }
  mouse(QEvent::MouseButtonRelease, button, Qt::NoButton, kSoon);
  if (act.what != "double") return;
  mouse(QEvent::MouseButtonPress, button, button, kSoon);
  mouse(QEvent::MouseButtonRelease, button, Qt::NoButton, kSoon);
}

void Monkey::open_copy(size_t project) {
  const std::string from = options_.projects[project % options_.projects.size()];
  const std::string to = options_.folder + "/copy-" + std::to_string(copies_++) + ".tenon";
  std::error_code ignored;
  for (int old = copies_ - 40; old >= 0 && old > copies_ - 44; --old)
    for (const char* tail : {"", "-wal", "-shm"})
      std::filesystem::remove(options_.folder + "/copy-" + std::to_string(old) + ".tenon" + tail, ignored);
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, ignored);
  if (std::filesystem::exists(from + "-wal"))
    std::filesystem::copy_file(from + "-wal", to + "-wal", std::filesystem::copy_options::overwrite_existing, ignored);
  drop_files(window_.get(), {QString::fromStdString(to)});
  if (!options_.trains)
    wait_for([this] { return window_->idle(); }, 20000);  // then nothing depends on how fast a file is read
}

void Monkey::answer(const std::string& how) {
  auto* d = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
  if (!d) {
    if (auto* other = qobject_cast<QDialog*>(QApplication::activeModalWidget())) other->reject();
    return;
  }
  const QString folder = QString::fromStdString(options_.folder);
  QString path;
  if (how == "project" && d->acceptMode() == QFileDialog::AcceptOpen)
    path = QString::fromStdString(options_.projects[copies_ % options_.projects.size()]);
  else if (how == "broken")
    path = folder + "/broken.tenon";
  else if (how == "new")
    path = folder + QString("/made-%1").arg(copies_++);
  else if (how == "nowhere")
    path = "/no/such/folder/file";
  // What is not there cannot be opened: the dialog would ask, in a dialog of its own.
  const bool there = QFileInfo::exists(path), opens = d->acceptMode() == QFileDialog::AcceptOpen;
  auto* field = d->findChild<QLineEdit*>("fileNameEdit");
  if (path.isEmpty() || there != opens || how == "nowhere" || !field) return d->reject();
  field->setText(path);
  QMetaObject::invokeMethod(d, "accept");
}

std::string Monkey::fingerprint() const {
  std::ostringstream out;
  out << "selection " << to_text(bench_->bus.current()) << "; layout " << window_->layout_name().toStdString()
      << "; theme " << theme_id(window_->theme()).toStdString() << "; size " << window_->width() << "x"
      << window_->height() << "; run " << bench_->shown_run() << "; model "
      << std::hash<std::string>()(bench_->builder.spec().to_json().dump());
  return out.str();
}

}  // namespace tenon::views::testing
