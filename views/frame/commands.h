#pragma once
#include <QHash>
#include <QKeySequence>
#include <QString>
#include <functional>
#include <vector>

#include "views/shared/language.h"

class QAction;
class QWidget;

namespace tenon::views {

/// One thing a person can do. Menus, buttons, the palette, shortcuts and tests all go through these.
struct Command {
  QString id;     ///< "run.train"
  QString title;  ///< tr_later("Train"); kept in the language of the window
  QString menu;   ///< English: the menu it stands in; empty: in the palette only
  QString keys;   ///< portable text, may be empty
  QString icon;
  std::function<void()> run;
  std::function<bool()> enabled;  ///< none: always
  std::function<bool()> checked;  ///< none: not a switch
  std::function<QString()> text;  ///< a title that changes ("Undo Move conv1")
  int section = 0;                ///< of its menu: they stand by section, with a line between two
  QWidget* within = nullptr;      ///< its keys count only while the focus is in here; null: in the whole window
};

/// Sections of the Run menu, to which many views add.
namespace run_menu {
enum { training, recipe, run, curves, sweep, looking };
}

class Commands {
 public:
  explicit Commands(QWidget* owner) : owner_(owner) {}
  QAction* add(Command c);
  QAction* action(const QString& id) const;
  const std::vector<Command>& all() const { return all_; }
  const Command* find(const QString& id) const;
  /// The keys that a command came with, whatever it has now.
  QString usual_keys(const QString& id) const { return usual_.value(id); }
  /// Other keys for a command, or none. Those of another command are not taken away: see `owner_of`.
  void set_keys(const QString& id, const QString& keys);
  /// The command that has these keys now; null where none has.
  const Command* owner_of(const QString& keys) const;
  /// Runs a command by its id; false where there is none or it is not enabled now.
  bool run(const QString& id);
  /// Enabled states, checks and titles anew.
  void refresh();

 private:
  QWidget* owner_;
  std::vector<Command> all_;
  QHash<QString, QAction*> actions_;
  QHash<QString, QString> usual_;  ///< keys by id
};

}  // namespace tenon::views
