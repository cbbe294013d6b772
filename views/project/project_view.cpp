#include "views/project/project_view.h"

#include <QHeaderView>
#include <set>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QTreeWidget>

#include "views/canvas/glyphs.h"

namespace tenon::views {

namespace {
/// Name, then a quieter note at the right edge.
class Noted : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* p, const QStyleOptionViewItem& o, const QModelIndex& i) const override {
    QStyleOptionViewItem plain = o;
    initStyleOption(&plain, i);
    QString text = plain.text, note = i.data(Qt::UserRole + 1).toString();
    plain.text.clear();
    const QWidget* w = plain.widget;
    w->style()->drawControl(QStyle::CE_ItemViewItem, &plain, p, w);
    QRect r = o.rect.adjusted(plain.icon.isNull() ? 6 : 28, 0, -8, 0);
    QFont body = face_font(Face::body), small = face_font(Face::small);
    QFontMetrics bm(body), sm(small);
    int note_w = std::min(sm.horizontalAdvance(note), std::max(0, r.width() - std::min(bm.horizontalAdvance(text), r.width() * 3 / 5) - 10));
    p->setFont(body);
    p->setPen(o.palette.color(QPalette::Text));
    p->drawText(r.adjusted(0, 0, -note_w - 8, 0), Qt::AlignLeft | Qt::AlignVCenter, bm.elidedText(text, Qt::ElideMiddle, r.width() - note_w - 8));
    p->setFont(small);
    p->setPen(o.palette.color(QPalette::PlaceholderText));
    p->drawText(r, Qt::AlignRight | Qt::AlignVCenter, sm.elidedText(note, Qt::ElideMiddle, note_w + 1));
  }
  QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override { return {60, 24}; }
};
}  // namespace

ProjectView::ProjectView(Workbench& bench, QWidget* parent) : View("project", "Project", "project", bench, parent), tree_(new QTreeWidget(this)) {
  tree_->setObjectName("project.tree");
  tree_->setHeaderHidden(true);
  tree_->setColumnCount(1);
  tree_->setIndentation(14);
  tree_->setUniformRowHeights(true);
  tree_->setItemDelegate(new Noted(tree_));
  tree_->setIconSize({16, 16});
  tree_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  set_content(tree_);
  connect(tree_, &QTreeWidget::currentItemChanged, this, [this](QTreeWidgetItem* item) {
    if (filling_ || !item) return;
    int k = item->data(0, Qt::UserRole).toInt();
    if (k >= 0 && k < static_cast<int>(selections_.size()) && selections_[k]) bench_.select(selections_[k]);
  });
  connect(&bench, &Workbench::project_changed, this, &ProjectView::refresh);
  connect(&bench, &Workbench::status_changed, this, &ProjectView::refresh);
  connect(&bench, &Workbench::run_changed, this, &ProjectView::refresh);
  connect(&bench, &Workbench::selection_changed, this, &ProjectView::mark);
  refresh();
}

void ProjectView::set_theme(ThemeName theme) {
  View::set_theme(theme);
  shown_.clear();
  refresh();
}

void ProjectView::refresh() {
  if (!bench_.has_project()) {
    return set_empty(true, "No project is open. A .tenon file holds a model, its runs and all that was seen of them.", "Open a project", [this] {
      if (on_open) on_open();
    });
  }
  set_empty(false);
  auto tree = bench_.project_model.tree();
  if (tree == shown_) return;
  filling_ = true;
  std::set<QString> closed;
  for (int i = 0; i < tree_->topLevelItemCount(); ++i)
    if (!tree_->topLevelItem(i)->isExpanded()) closed.insert(tree_->topLevelItem(i)->text(0));
  bool first = shown_.empty();
  tree_->clear();
  selections_.clear();
  std::function<void(QTreeWidgetItem*, const ProjectModel::Node&, int)> add = [&](QTreeWidgetItem* parent, const ProjectModel::Node& n, int depth) {
    auto* item = parent ? new QTreeWidgetItem(parent) : new QTreeWidgetItem(tree_);
    item->setText(0, QString::fromStdString(n.text));
    item->setToolTip(0, QString::fromStdString(n.tip.empty() ? n.text : n.tip));
    item->setIcon(0, icon(QString::fromStdString(n.icon), theme_, n.mark == Ink::none ? Ink::secondary : n.mark));
    item->setData(0, Qt::UserRole, static_cast<int>(selections_.size()));
    item->setData(0, Qt::UserRole + 1, QString::fromStdString(n.note));
    selections_.push_back(n.selection);
    for (const auto& c : n.children) add(item, c, depth + 1);
    bool shown_run = n.selection.kind == Selection::Kind::run && n.selection.id == bench_.shown_run();
    if (depth == 0) item->setExpanded(first ? n.icon != "model" : !closed.count(item->text(0)));
    else item->setExpanded(shown_run);
  };
  for (const auto& n : tree) add(nullptr, n, 0);
  shown_ = std::move(tree);
  filling_ = false;
  mark(bench_.bus.current());
}

void ProjectView::mark(const Selection& s) {
  filling_ = true;
  QTreeWidgetItem* found = nullptr;
  for (QTreeWidgetItemIterator it(tree_); *it; ++it) {
    int k = (*it)->data(0, Qt::UserRole).toInt();
    if (s && k < static_cast<int>(selections_.size()) && selections_[k].same(s)) found = *it;
  }
  if (found) tree_->setCurrentItem(found);
  else tree_->setCurrentItem(nullptr);
  filling_ = false;
}

}  // namespace tenon::views
