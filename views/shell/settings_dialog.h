#pragma once
#include <QDialog>
#include <QHash>
#include <functional>
#include <string>

#include "views/frame/commands.h"

class QTabWidget;
class QToolButton;

namespace tenon::views {

class ShortcutList;

/// What holds for a person: every setting, and the keys of every command. What is changed holds at once.
class SettingsDialog : public QDialog {
  Q_OBJECT
 public:
  SettingsDialog(Commands& commands, QWidget* parent);
  /// A setting was changed, or put back.
  std::function<void(const std::string& name)> on_change;
  /// Writing it failed: told to the person.
  std::function<void(const QString& message, const QString& hint)> on_failure;

 private:
  QWidget* build_general();
  void change(const std::string& name, const std::function<void()>& write);
  void refresh();

  struct Row {
    QWidget* editor = nullptr;
    QToolButton* reset = nullptr;
  };
  Commands& commands_;
  QTabWidget* tabs_;
  QHash<QString, Row> rows_;
  ShortcutList* shortcuts_;
};

}  // namespace tenon::views
