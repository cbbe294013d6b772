#include "views/frame/table_list.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QHeaderView>
#include <QKeyEvent>
#include <QMenu>
#include <QPainter>
#include <QSortFilterProxyModel>
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "views/canvas/glyphs.h"
#include "views/shared/name_shortener.h"

namespace tenon::views {

static bool same_columns(const Table& a, const Table& b) {
  return std::equal(a.columns.begin(), a.columns.end(), b.columns.begin(), b.columns.end(),
                    [](const auto& x, const auto& y) { return x.title == y.title; });
}

class TableList::Model : public QAbstractTableModel {
 public:
  using QAbstractTableModel::QAbstractTableModel;
  Table table;
  ThemeName theme = ThemeName::dark;
  std::function<void(const Selection&, bool)> on_pick;

  void set(Table t) {
    const bool same = t.rows.size() == table.rows.size() && same_columns(t, table);
    if (same) {  // rows keep their order and place while their numbers change
      table = std::move(t);
      if (!table.rows.empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
      return;
    }
    beginResetModel();
    table = std::move(t);
    endResetModel();
  }
  int rowCount(const QModelIndex& p = {}) const override {
    return p.isValid() ? 0 : static_cast<int>(table.rows.size());
  }
  int columnCount(const QModelIndex& p = {}) const override {
    return p.isValid() ? 0 : static_cast<int>(table.columns.size());
  }
  QVariant headerData(int section, Qt::Orientation o, int role) const override {
    if (o != Qt::Horizontal || section >= columnCount()) return {};
    if (role == Qt::DisplayRole) return QString::fromStdString(table.columns[section].title);
    if (role == Qt::ToolTipRole && !table.columns[section].tip.empty())
      return QString::fromStdString(table.columns[section].tip);
    if (role == Qt::TextAlignmentRole)
      return int((table.columns[section].number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    return {};
  }
  QVariant data(const QModelIndex& i, int role) const override {
    if (!i.isValid() || i.row() >= rowCount() || i.column() >= static_cast<int>(table.rows[i.row()].cells.size()))
      return {};
    const Table::Cell& c = table.rows[i.row()].cells[i.column()];
    const Table::Column& col = table.columns[i.column()];
    switch (role) {
      case Qt::DisplayRole:
        return QString::fromStdString(c.text);
      case Qt::ToolTipRole:
        return QString::fromStdString(c.tip.empty() ? c.text : c.tip.str());
      case Qt::TextAlignmentRole:
        return int((col.number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
      case Qt::FontRole:
        return col.number ? QVariant(face_font(Face::mono_small)) : QVariant();
      case Qt::UserRole:
        return col.number ? QVariant(c.key) : QVariant(QString::fromStdString(c.text));
      case Qt::DecorationRole:
        if (c.mark == Ink::none) return {};
        return views::mark(c.mark, theme, 8);
      case Qt::CheckStateRole:
        if (const auto& picked = table.rows[i.row()].picked; picked && i.column() == 0)
          return *picked ? Qt::Checked : Qt::Unchecked;
        return {};
      default:
        return {};
    }
  }
  Qt::ItemFlags flags(const QModelIndex& i) const override {
    const bool ticks = i.isValid() && i.column() == 0 && i.row() < rowCount() && table.rows[i.row()].picked;
    return QAbstractTableModel::flags(i) | (ticks ? Qt::ItemIsUserCheckable : Qt::NoItemFlags);
  }
  bool setData(const QModelIndex& i, const QVariant& value, int role) override {
    if (role != Qt::CheckStateRole || !i.isValid() || i.row() >= rowCount() || !on_pick) return false;
    const Selection which = table.rows[i.row()].selection;  // the table may be another one when this returns
    on_pick(which, value.toInt() == Qt::Checked);
    return true;
  }
};

class TableList::Sorted : public QSortFilterProxyModel {
 public:
  using QSortFilterProxyModel::QSortFilterProxyModel;

 protected:
  bool lessThan(const QModelIndex& a, const QModelIndex& b) const override {
    QVariant x = a.data(Qt::UserRole), y = b.data(Qt::UserRole);
    if (x.typeId() == QMetaType::Double) return x.toDouble() < y.toDouble();
    return x.toString().localeAwareCompare(y.toString()) < 0;
  }
};

/// Shortens words by what they differ in from the others of their column, and what is left of them in the middle.
class TableList::Cells : public QStyledItemDelegate {
 public:
  Cells(const Model& model, QTableView* list) : QStyledItemDelegate(list), model_(model), list_(list) {}
  /// Other words stand in the columns.
  void forget() { shorteners_.clear(); }

  void initStyleOption(QStyleOptionViewItem* o, const QModelIndex& i) const override {
    QStyledItemDelegate::initStyleOption(o, i);
    o->textElideMode = is_sentence(o->text.toStdString()) ? Qt::ElideRight : Qt::ElideMiddle;
    o->decorationSize = QSize(8, 8);
  }
  void paint(QPainter* p, const QStyleOptionViewItem& o, const QModelIndex& i) const override {
    QStyleOptionViewItem cell = o;
    initStyleOption(&cell, i);
    QStyle* style = list_->style();
    const int margin = style->pixelMetric(QStyle::PM_FocusFrameHMargin, &cell, list_) + 1;
    const QRect box = style->subElementRect(QStyle::SE_ItemViewItemText, &cell, list_);
    if (model_.table.columns[i.column()].number) return paint_number(p, cell, box.adjusted(margin, 0, -margin, 0));
    auto fits = [&](const QString& t) { return cell.fontMetrics.horizontalAdvance(t) <= box.width() - 2 * margin; };
    if (!fits(cell.text) && cell.textElideMode == Qt::ElideMiddle)
      cell.text =
          QString::fromStdString(shortener(i.column()).shorten(cell.text.toStdString(), [&](const std::string& text) {
            return fits(QString::fromStdString(text));
          }));
    style->drawControl(QStyle::CE_ItemViewItem, &cell, p, list_);
  }

 private:
  /// On the line that the words beside it stand on: centred, the smaller face would stand lower.
  void paint_number(QPainter* p, QStyleOptionViewItem cell, QRect at) const {
    const QString shown = cell.fontMetrics.elidedText(std::exchange(cell.text, {}), Qt::ElideMiddle, at.width());
    list_->style()->drawControl(QStyle::CE_ItemViewItem, &cell, p, list_);
    const int line = at.y() + (at.height() - list_->fontMetrics().height()) / 2 + list_->fontMetrics().ascent();
    p->setFont(cell.font);
    p->setPen(cell.palette.color(list_->isEnabled() ? QPalette::Normal : QPalette::Disabled, QPalette::Text));
    p->drawText(at.right() + 1 - cell.fontMetrics.horizontalAdvance(shown), line, shown);
  }
  /// Made where a cell does not fit, which most never need.
  const NameShortener& shortener(int column) const {
    auto [at, made] = shorteners_.try_emplace(column);
    if (made) {
      std::vector<std::string> names;
      for (const Table::Row& row : model_.table.rows)
        if (column < static_cast<int>(row.cells.size())) names.push_back(row.cells[column].text);
      at->second = NameShortener(names);
    }
    return at->second;
  }

  const Model& model_;
  QTableView* list_;
  mutable std::map<int, NameShortener> shorteners_;
};

TableList::TableList(QWidget* parent) : QTableView(parent), model_(new Model(this)), sorted_(new Sorted(this)) {
  sorted_->setSourceModel(model_);
  sorted_->setFilterCaseSensitivity(Qt::CaseInsensitive);
  sorted_->setFilterKeyColumn(-1);
  setModel(sorted_);
  model_->on_pick = [this](const Selection& s, bool on) {
    if (on_pick) on_pick(s, on);
  };
  setItemDelegate(cells_ = new Cells(*model_, this));
  setShowGrid(false);
  setWordWrap(false);
  setSortingEnabled(true);
  sortByColumn(-1, Qt::AscendingOrder);
  setSelectionBehavior(SelectRows);
  setSelectionMode(SingleSelection);
  setEditTriggers(NoEditTriggers);
  setTabKeyNavigation(false);
  setHorizontalScrollMode(ScrollPerPixel);
  verticalHeader()->hide();
  verticalHeader()->setMinimumSectionSize(16);
  verticalHeader()->setDefaultSectionSize(static_cast<int>(px::row));
  horizontalHeader()->setHighlightSections(false);
  horizontalHeader()->setMinimumSectionSize(24);
  connect(horizontalHeader(), &QHeaderView::sectionResized, this, [this] { by_hand_ |= !fitting_; });
  connect(this, &QTableView::clicked, this, [this](const QModelIndex& i) { currentChanged(i, {}); });
}

void TableList::set_table(Table table) {
  marking_ = true;
  const bool fresh = !same_columns(model_->table, table);
  const bool fitting = std::exchange(fitting_, true);  // Qt sizes the columns of a model that is made anew
  model_->set(std::move(table));
  cells_->forget();
  if (fresh) {
    needs_.clear();
    by_hand_ = false;
  }
  fitting_ = fitting;
  measure();
  marking_ = false;
}

/// What the columns need. The longest different texts alone are measured: a table may have many thousands of rows.
/// Numbers that change do not move the columns: these grow, and shrink only where far less would do.
void TableList::measure() {
  const Table& t = model_->table;
  constexpr size_t kMeasured = 6;
  constexpr int kMostWords = 420, kFewLetters = 88;
  needs_.resize(t.columns.size());
  bool changed = false;
  for (int c = 0; c < static_cast<int>(t.columns.size()); ++c) {
    std::vector<std::pair<size_t, int>> longest;  // lengths and rows
    for (int r = 0; r < static_cast<int>(t.rows.size()); ++r) {
      if (c >= static_cast<int>(t.rows[r].cells.size())) continue;
      const size_t letters = t.rows[r].cells[c].text.size();
      if (longest.size() == kMeasured && letters <= longest.front().first) continue;
      // One that stands there already says nothing new; a shorter one may yet be wider.
      if (std::any_of(longest.begin(), longest.end(),
                      [&](const auto& known) { return t.rows[known.second].cells[c].text == t.rows[r].cells[c].text; }))
        continue;
      longest.emplace_back(letters, r);
      std::push_heap(longest.begin(), longest.end(), std::greater<>());
      if (longest.size() <= kMeasured) continue;
      std::pop_heap(longest.begin(), longest.end(), std::greater<>());
      longest.pop_back();
    }
    constexpr int kArrow = 14, kPadding = 12;  // of a head, as the style sheet has them
    const int head = QFontMetrics(face_font(Face::small)).horizontalAdvance(QString::fromStdString(t.columns[c].title));
    ColumnNeed need{head + kPadding + kArrow, 0, t.columns[c].number || t.columns[c].whole};
    const bool last = c > 1 && c + 1 == static_cast<int>(t.columns.size());  // the least important one
    need.least = last ? need.whole : std::max(need.whole, kFewLetters);
    constexpr int kBox = 26;  // of a row that can be ticked: the style sheet's is larger than the style's
    for (const auto& [length, row] : longest)
      need.whole = std::max(need.whole, sizeHintForIndex(sorted_->mapFromSource(model_->index(row, c))).width() + 2 +
                                            (c == 0 && t.rows[row].picked ? kBox : 0));
    if (!need.uncut) {
      need.longest = need.whole;
      need.whole = std::min(need.whole, std::max(kMostWords, need.least));
    }
    need.least = std::min(need.least, need.whole);
    ColumnNeed& known = needs_[c];
    if (need.whole <= known.whole && need.whole * 3 > known.whole * 2) continue;
    known = need;
    changed = true;
  }
  if (changed) fit_columns();
}

void TableList::fit_columns() {
  if (by_hand_ || needs_.empty()) return;
  fitting_ = true;
  std::vector<int> widths;
  if (!model_->table.wide) {
    const int room = viewport()->width();
    std::vector<ColumnNeed> needs = needs_;
    // What is read as a sentence gets more of a wide table.
    for (ColumnNeed& n : needs)
      if (!n.uncut) n.whole = std::max(n.whole, std::min(n.longest, room * 11 / 20));
    widths = column_widths(needs, room);
  }
  for (int c = 0; c < static_cast<int>(needs_.size()); ++c)
    setColumnWidth(c, widths.empty() ? needs_[c].whole : widths[c]);
  fitting_ = false;
}

void TableList::resizeEvent(QResizeEvent* e) {
  QTableView::resizeEvent(e);
  fit_columns();
}
/// Fonts and paddings are the style sheet's from now on.
void TableList::showEvent(QShowEvent* e) {
  QTableView::showEvent(e);
  needs_.clear();
  measure();
}

/// The keys come to a list before anything in it is chosen: Qt makes its first row current.
void TableList::focusInEvent(QFocusEvent* e) {
  marking_ = true;
  QTableView::focusInEvent(e);
  marking_ = false;
}
/// The row that goes hands its place to the next: nobody chose that.
void TableList::set_filter(const QString& text) {
  marking_ = true;
  sorted_->setFilterFixedString(text);
  marking_ = false;
}
void TableList::say_when_empty(const QString& words) {
  when_empty_ = words;
  setAccessibleDescription(words);
  viewport()->update();
}

void TableList::paintEvent(QPaintEvent* e) {
  QTableView::paintEvent(e);
  if (when_empty_.isEmpty() || model_->rowCount() > 0) return;
  QPainter p(viewport());
  p.setPen(QApplication::palette().color(QPalette::PlaceholderText));  // a style sheet makes its own half as clear
  p.drawText(viewport()->rect().adjusted(16, 16, -16, -16), int(Qt::AlignCenter) | int(Qt::TextWordWrap), when_empty_);
}

void TableList::set_theme(ThemeName theme) {
  model_->theme = theme;
  viewport()->update();
}
int TableList::shown_rows() const { return sorted_->rowCount(); }
const Table& TableList::table() const { return model_->table; }

Table TableList::shown() const {
  Table t = model_->table;
  t.rows.clear();
  for (int i = 0; i < sorted_->rowCount(); ++i)
    t.rows.push_back(model_->table.rows[sorted_->mapToSource(sorted_->index(i, 0)).row()]);
  return t;
}

void TableList::mark(const Selection& s) {
  marking_ = true;
  int found = -1;
  for (size_t i = 0; i < model_->table.rows.size(); ++i)
    if (model_->table.rows[i].selection.same(s)) found = static_cast<int>(i);
  if (found >= 0 && s) {
    QModelIndex at = sorted_->mapFromSource(model_->index(found, 0));
    selectRow(at.row());
    scrollTo(at);
  } else if (!currentIndex().isValid() || !model_->table.rows.empty()) {
    clearSelection();
  }
  marking_ = false;
}

void TableList::currentChanged(const QModelIndex& now, const QModelIndex& before) {
  QTableView::currentChanged(now, before);
  if (marking_ || !now.isValid() || !on_select) return;
  const Selection s = model_->table.rows[sorted_->mapToSource(now).row()].selection;
  if (s) on_select(s);
}

void TableList::keyPressEvent(QKeyEvent* e) {
  if (e->key() == Qt::Key_Space && currentIndex().isValid()) {
    const Table::Row& row = model_->table.rows[sorted_->mapToSource(currentIndex()).row()];
    if (row.picked && on_pick) return on_pick(Selection(row.selection), !*row.picked);
  }
  if (e->matches(QKeySequence::Copy) && currentIndex().isValid()) {
    QStringList cells;
    for (int c = 0; c < sorted_->columnCount(); ++c) cells << sorted_->index(currentIndex().row(), c).data().toString();
    QApplication::clipboard()->setText(cells.join('\t'));
    return;
  }
  QTableView::keyPressEvent(e);
}

void TableList::contextMenuEvent(QContextMenuEvent* e) {
  const bool keys = e->reason() == QContextMenuEvent::Keyboard;
  const QModelIndex at = keys ? currentIndex() : indexAt(viewport()->mapFromGlobal(e->globalPos()));
  if (row_commands.isEmpty() || !at.isValid()) return QTableView::contextMenuEvent(e);
  setCurrentIndex(at);
  const Selection row = model_->table.rows[sorted_->mapToSource(at).row()].selection;
  if (on_select) on_select(row);
  QWidget* window = this;
  while (window->parentWidget()) window = window->parentWidget();
  auto* menu = new QMenu(this);
  menu->setObjectName("row.menu");
  menu->setAttribute(Qt::WA_DeleteOnClose);
  for (const QString& id : row_commands)
    if (auto* action = window->findChild<QAction*>(id)) menu->addAction(action);
  menu->popup(keys ? viewport()->mapToGlobal(visualRect(at).bottomLeft()) : e->globalPos());
}

}  // namespace tenon::views
