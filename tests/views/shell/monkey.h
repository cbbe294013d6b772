#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <QElapsedTimer>
#include <QEventLoop>
#include <QPoint>
#include <QPointer>

#include "tests/views/shell/watchdog.h"
#include "views/shell/main_window.h"

namespace tenon::views::testing {

inline constexpr const char* kNobody = "-";
/// The name of a widget without spaces, for a line of the log.
std::string word(QString text);

/// One thing a hand does, as one line of a log: "press main 345 220 left ctrl", "key main Escape", "command
/// view.memory", "open 3".
struct Act {
  std::string what;  ///< turn (the event loop looks), press, release, move, double, wheel, key, command, resize, dock,
                     ///< open, reopen, answer, wait, settle
  std::string window;  ///< the top-level window it goes to; "main", "dock.tensor", "QMenu"
  int x = 0, y = 0;
  std::string arg;   ///< a button, a key, a command, a dock's verb
  std::string mods;  ///< "c", "s", "a" in any mixture; "-": none

  std::string text() const;
  static Act parse(const std::string& line);
};

/// A user without intentions.
///
/// Note [The monkey]
/// Acts are chosen by a seeded generator that looks at what is on the screen, and carried out through Qt's
/// window-system interface, the way a real mouse's are: popups, grabs and drags of docks behave as they do for a hand.
/// Each act is written to the log before it is done, so that the log of a program that ended holds what ended it. A log
/// replays without the generator: places are pixels of named windows. What a training thread does in between is not in
/// the log, so a replay of a log with training repeats the hand, not the scheduler.
class Monkey {
 public:
  struct Options {
    uint64_t seed = 1;
    int64_t events = 1000;
    std::vector<std::string> projects;  ///< files that it opens copies of
    std::string folder;                 ///< where the copies and what it saves go
    std::string log;                    ///< the file the acts are written to
    bool trains = true;  ///< false: nothing that runs beside the window, so that a replay ends in the same state
  };
  struct Report {
    int64_t acts = 0;
    std::map<std::string, int64_t> kinds;
    std::vector<std::string> thrown;          ///< by handlers: each is a finding
    std::map<std::string, int64_t> problems;  ///< told in banners, by title
    std::map<std::string, int64_t> seen;      ///< what it came to: selections by kind, steps loaded, runs begun
    double longest_ms = 0;                    ///< between two turns of the event loop
    std::string longest_act;
    std::string end;  ///< the state of the window at the end, in words
  };

  explicit Monkey(Options options);
  ~Monkey();
  Report run();
  /// Carries out a log instead of choosing.
  Report replay(const std::string& log);

 private:
  void ask();
  void wait_for(const std::function<bool()>& what, int ms);
  void tick();
  void write_down(const Act& act);
  void come_to_rest();
  void activate(const Act& act);
  void carry_out(const Act& act);
  Act choose();
  Act choose_mouse();
  Act choose_key();
  Act choose_rare();
  void make_window();
  void drop_window();
  void open_copy(size_t project);
  void answer(const std::string& how);
  QWidget* top_level(const std::string& name) const;
  std::string name_of(const QWidget* w) const;
  std::string fingerprint() const;
  void count_loops();
  bool loop_is_over() const;  ///< see Note [Loops within the loop]
  bool quiet_moment() const;  ///< nothing is open over the window: it may be closed
  int below(int n) { return n > 0 ? static_cast<int>(random_() % static_cast<uint64_t>(n)) : 0; }
  bool chance(int percent) { return below(100) < percent; }

  Options options_;
  Report report_;
  std::mt19937_64 random_;
  std::unique_ptr<Workbench> bench_;
  std::unique_ptr<MainWindow> window_;
  std::vector<Act> script_;  ///< what is replayed
  bool replaying_ = false, last_was_digit_ = false;
  bool asked_ = false;  ///< the loop has been asked for the next turn
  int waits_ = 0;
  bool waiting_ = false;  ///< an act lets the loop turn until something is so
  bool missed_ = false;   ///< a look came while it waited
  size_t at_ = 0;
  int endings_ = 0;  ///< looks since all acts are done
  int depth_ = 0, in_dialog_ = 0, copies_ = 0;
  QPointer<QWidget> active_;  ///< the window that was clicked last
  std::string held_window_;   ///< where a button is held down
  std::string held_button_;
  bool holds_text_ = false;  ///< over a text
  int log_ = -1;
  int timestamp_ = 1000;
  QElapsedTimer turn_;
  bool last_look_ = false;  ///< was asked for
  QEventLoop loop_;
  /// A loop within the loop: a menu's, a dialog's, a drag's.
  struct Inner {
    int level;
    bool shows = false;  ///< a widget, whose end is the loop's
    QPointer<QWidget> widget{};
    bool let_go = false;  ///< a drag that was dropped or taken back
    int looks = 0;        ///< since it was over
  };
  std::vector<Inner> inner_;
  Watchdog watchdog_;
};

}  // namespace tenon::views::testing
