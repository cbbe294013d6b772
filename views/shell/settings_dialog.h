#pragma once
#include <QDialog>
#include <QHash>
#include <functional>
#include <string>

#include "views/frame/commands.h"

class QGridLayout;
class QLabel;
class QPushButton;
class QTabWidget;
class QToolButton;

namespace tenon::views {

class ShortcutList;

/// What holds for a person: every setting, and the keys of every command. What is changed holds at once.
class SettingsDialog : public QDialog {
  Q_OBJECT
 public:
  SettingsDialog(Commands& commands, QWidget* parent);
  void refresh();
  /// A setting was changed, or put back.
  std::function<void(const std::string& name)> on_change;
  /// Empties the cache folder, and calls `then`; null: there is no way to.
  std::function<void(const std::function<void()>& then)> empty_cache;
  /// Writing it failed: told to the person.
  std::function<void(const QString& message, const QString& hint)> on_failure;

 private:
  QWidget* build_general();
  /// How much the cache folder holds, and its button.
  void add_cache_row(QGridLayout* grid, int at, QWidget* page);
  void change(const std::string& name, const std::function<void()>& write);

  struct Row {
    QWidget* editor = nullptr;
    QToolButton* reset = nullptr;
  };
  Commands& commands_;
  QTabWidget* tabs_;
  QHash<QString, Row> rows_;
  QLabel* cached_ = nullptr;
  QPushButton* empty_cache_ = nullptr;
  ShortcutList* shortcuts_;
};

}  // namespace tenon::views
