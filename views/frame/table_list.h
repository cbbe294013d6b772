#pragma once
#include <QAbstractTableModel>
#include <QStyledItemDelegate>
#include <QTableView>
#include <functional>
#include <vector>

#include "views/frame/theme.h"
#include "views/shared/column_widths.h"
#include "views/shared/table.h"

class QSortFilterProxyModel;

namespace tenon::views {

/// A Table as a sortable, keyboard-driven list; choosing a row chooses its selection. Columns are as wide as what
/// stands in them, see column_widths(), until a hand sets one.
class TableList : public QTableView {
  Q_OBJECT
 public:
  explicit TableList(QWidget* parent = nullptr);
  void set_table(Table table);
  void set_filter(const QString& text);
  void set_theme(ThemeName theme);
  /// Marks the row of a selection without choosing it.
  void mark(const Selection& s);
  /// What is said in the place of rows where the table has none; one that a filter has emptied says nothing.
  void say_when_empty(const QString& words);
  int shown_rows() const;
  const Table& table() const;
  /// The rows that the filter leaves, in the order in which they stand.
  Table shown() const;
  std::function<void(const Selection&)> on_select;
  /// A row was ticked or unticked; it shows so once the table says it.
  std::function<void(const Selection&, bool)> on_pick;
  /// Names of commands that a row's menu offers, once the row is chosen; none: rows have no menu.
  QStringList row_commands;

 protected:
  void contextMenuEvent(QContextMenuEvent* e) override;
  void keyPressEvent(QKeyEvent* e) override;
  void focusInEvent(QFocusEvent* e) override;
  void currentChanged(const QModelIndex& now, const QModelIndex& before) override;
  void resizeEvent(QResizeEvent* e) override;
  void showEvent(QShowEvent* e) override;
  void paintEvent(QPaintEvent* e) override;

 private:
  class Model;
  class Sorted;
  class Cells;
  void measure();
  void fit_columns();
  Model* model_;
  Sorted* sorted_;
  Cells* cells_;
  std::vector<ColumnNeed> needs_;
  QString when_empty_;
  bool marking_ = false, fitting_ = false, by_hand_ = false;
};

}  // namespace tenon::views
