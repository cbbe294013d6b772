#pragma once
#include <QHash>
#include <QKeySequence>
#include <QString>
#include <functional>
#include <vector>

class QAction;
class QWidget;

namespace tenon::views {

/// One thing a person can do. Menus, buttons, the palette, shortcuts and tests all go through these.
struct Command {
  QString id;     ///< "run.train"
  QString title;  ///< "Train"
  QString menu;   ///< the menu it stands in; empty: in the palette only
  QString keys;   ///< portable text, may be empty
  QString icon;
  std::function<void()> run;
  std::function<bool()> enabled;  ///< none: always
  std::function<bool()> checked;  ///< none: not a switch
  std::function<QString()> text;  ///< a title that changes ("Undo Move conv1")
};

class Commands {
 public:
  explicit Commands(QWidget* owner) : owner_(owner) {}
  QAction* add(Command c);
  QAction* action(const QString& id) const;
  const std::vector<Command>& all() const { return all_; }
  const Command* find(const QString& id) const;
  /// Runs a command by its id; false where there is none or it is not enabled now.
  bool run(const QString& id);
  /// Enabled states, checks and titles anew.
  void refresh();

 private:
  QWidget* owner_;
  std::vector<Command> all_;
  QHash<QString, QAction*> actions_;
};

}  // namespace tenon::views
