#pragma once
#include <QKeySequence>
#include <QWidget>
#include <functional>

#include "views/frame/commands.h"

class QKeySequenceEdit;
class QLabel;
class QLineEdit;
class QPushButton;
class QTreeWidget;

namespace tenon::views {

/// Every command with its keys, and an editor for those of the one that is chosen. Keys that another command has are
/// told of, and taken from it only where the person says so.
class ShortcutList : public QWidget {
  Q_OBJECT
 public:
  ShortcutList(Commands& commands, QWidget* parent);
  void reset_all();
  /// Carries out what writes the settings, and tells where that fails.
  std::function<void(const std::function<void()>&)> write;

 private:
  void fill();
  void show_chosen();
  void typed(const QKeySequence& keys);
  void give(const QString& keys);
  QString chosen() const;

  Commands& commands_;
  QLineEdit* search_;
  QTreeWidget* list_;
  QKeySequenceEdit* editor_;
  QLabel* said_;
  QPushButton *take_, *usual_, *none_;
  QString wanted_;  ///< keys that another command has
};

}  // namespace tenon::views
