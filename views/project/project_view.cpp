#include "views/project/project_view.h"

#include <QApplication>
#include <QHeaderView>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QTreeWidget>
#include <algorithm>
#include <map>

#include "views/canvas/glyphs.h"

namespace tenon::views {

namespace {
constexpr int kKey = Qt::UserRole, kNote = Qt::UserRole + 1, kBrief = Qt::UserRole + 2, kSelection = Qt::UserRole + 3;

/// Name, then a quieter note at the right edge. Where there is no room, the note's brief form stands there and the name
/// is shortened; a note without one gives way to the name.
class Noted : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* p, const QStyleOptionViewItem& o, const QModelIndex& i) const override {
    QStyleOptionViewItem plain = o;
    initStyleOption(&plain, i);
    QString text = plain.text, note = i.data(kNote).toString();
    plain.text.clear();
    const QWidget* w = plain.widget;
    w->style()->drawControl(QStyle::CE_ItemViewItem, &plain, p, w);
    QRect r = o.rect.adjusted(plain.icon.isNull() ? 6 : 28, 0, -8, 0);
    QFont body = face_font(Face::body), small = face_font(Face::small);
    QFontMetrics bm(body), sm(small);
    const QString brief = i.data(kBrief).toString();
    if (!brief.isEmpty() && bm.horizontalAdvance(text) + sm.horizontalAdvance(note) + 10 > r.width()) note = brief;
    int note_w = std::min(sm.horizontalAdvance(note), r.width());
    constexpr int kGap = 8, kLeast = 28;  // less of a note says nothing
    if (const int room = r.width() - bm.horizontalAdvance(text) - kGap - 1; brief.isEmpty() && room < note_w)
      note_w = room < kLeast ? 0 : room;
    p->setFont(body);
    p->setPen(o.palette.color(QPalette::Text));
    const int behind = note_w ? note_w + kGap : 0;
    p->drawText(r.adjusted(0, 0, -behind, 0), Qt::AlignLeft | Qt::AlignVCenter,
                bm.elidedText(text, Qt::ElideMiddle, r.width() - behind));
    if (!note_w) return;
    p->setFont(small);
    p->setPen(QApplication::palette().color(QPalette::PlaceholderText));
    p->drawText(r, Qt::AlignRight | Qt::AlignVCenter, sm.elidedText(note, Qt::ElideRight, note_w + 1));
  }
  QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override { return {60, 24}; }
};
}  // namespace

ProjectView::ProjectView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), tree_(new QTreeWidget(this)) {
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
    Selection s = parse_selection(item->data(0, kSelection).toString().toStdString());
    s.source = "project";
    if (s) bench_.select(s);
  });
  connect(&bench, &Bench::project_changed, this, &ProjectView::refresh);
  connect(&bench, &Bench::documents_changed, this, &ProjectView::refresh);
  connect(&bench, &Bench::status_changed, this, &ProjectView::refresh);
  connect(&bench, &Bench::run_changed, this, &ProjectView::refresh);
  connect(&bench, &Bench::selection_changed, this, &ProjectView::mark);
  connect(&bench, &Bench::state_changed, this, [this] {  // an edit of the model is in the file
    if (bench_.has_project() && !(bench_.contents().model == model_)) refresh();
  });
  refresh();
}

void ProjectView::set_theme(ThemeName theme) {
  View::set_theme(theme);
  shown_.clear();  // every icon has another colour
  refresh();
}

/// Tells an item from its neighbours.
static QString key_of(const ProjectModel::Node& n) {
  return QString::fromStdString(to_text(n.selection) + "\n" + n.text);
}

void ProjectView::dress(QTreeWidgetItem* item, const ProjectModel::Node& n) {
  item->setText(0, QString::fromStdString(n.text));
  item->setToolTip(0, QString::fromStdString(n.tip.empty() ? n.text : n.tip));
  item->setIcon(0, icon(QString::fromStdString(n.icon), theme_, n.mark == Ink::none ? Ink::secondary : n.mark));
  item->setData(0, kKey, key_of(n));
  item->setData(0, kSelection, QString::fromStdString(to_text(n.selection)));
  item->setData(0, kNote, QString::fromStdString(n.note));
  item->setData(0, kBrief, QString::fromStdString(n.brief));
}

/// Makes the children of an item those of the model, touching only what differs: while a run trains, one line of
/// hundreds changes ten times a second.
void ProjectView::bring_up_to_date(QTreeWidgetItem* parent, const std::vector<ProjectModel::Node>& now,
                                   const std::vector<ProjectModel::Node>& before) {
  std::map<QString, const ProjectModel::Node*> had;
  for (const auto& n : before) had.emplace(key_of(n), &n);
  for (int i = 0; i < static_cast<int>(now.size()); ++i) {
    const ProjectModel::Node& n = now[static_cast<size_t>(i)];
    const QString key = key_of(n);
    // What stands here and is no longer wanted goes; what is new comes in between.
    while (i < parent->childCount() && parent->child(i)->data(0, kKey).toString() != key &&
           std::none_of(now.begin() + i, now.end(),
                        [&](const auto& o) { return key_of(o) == parent->child(i)->data(0, kKey).toString(); }))
      delete parent->takeChild(i);
    const bool stands = i < parent->childCount() && parent->child(i)->data(0, kKey).toString() == key;
    QTreeWidgetItem* item = stands ? parent->child(i) : new QTreeWidgetItem;
    if (!stands) parent->insertChild(i, item);
    const auto old = stands ? had.find(key) : had.end();
    if (old == had.end() || !old->second->same_line(n)) dress(item, n);
    bring_up_to_date(item, n.children, old == had.end() ? std::vector<ProjectModel::Node>() : old->second->children);
    if (stands) continue;
    if (!item->parent())
      item->setExpanded(n.icon != "model");
    else if (n.selection.kind == Selection::Kind::run)
      item->setExpanded(n.selection.id == bench_.shown_run());
  }
  while (parent->childCount() > static_cast<int>(now.size())) delete parent->takeChild(parent->childCount() - 1);
}

void ProjectView::refresh() {
  if (!bench_.has_project() && bench_.documents().empty()) {
    return set_empty(true,
                     tr("No project is open. A .tenon file holds a model, its runs and all that was seen of them."),
                     tr("Open a project"), [this] { bench_.ask("file.open"); });
  }
  set_empty(false);
  std::vector<ProjectModel::Node> tree;
  model_ = bench_.contents().model;
  if (bench_.has_project()) tree = ProjectModel::tree(bench_.contents());
  if (!bench_.documents().empty()) tree.push_back(ProjectModel::opened(bench_.documents()));
  if (tree == shown_) return;
  filling_ = true;
  if (bench_.file() != file_) {  // another project: nothing of the last one stays, not even what was folded
    file_ = bench_.file();
    tree_->clear();
    shown_.clear();
  }
  bring_up_to_date(tree_->invisibleRootItem(), tree, shown_);
  shown_ = std::move(tree);
  filling_ = false;
  mark(bench_.bus.current());
}

void ProjectView::mark(const Selection& s) {
  filling_ = true;
  const QString wanted = QString::fromStdString(to_text(s));
  QTreeWidgetItem* found = nullptr;
  for (QTreeWidgetItemIterator it(tree_); *it && s && !found; ++it)
    if ((*it)->data(0, kSelection).toString() == wanted) found = *it;
  if (found != tree_->currentItem()) tree_->setCurrentItem(found);
  filling_ = false;
}

namespace {
const bool registered_project_view = register_view<ProjectView>(
    {.id = "project",
     .title = tr_later("Project"),
     .icon = "project",
     .order = 180,
     .spot = Spot::left,
     .help = {
         tr_later("What the project file holds: its model, runs with their checkpoints, and what was kept with them; "
                  "below it the traces that are open."),
         tr_later("A click shows a run, goes to a checkpoint's step, or brings a trace to the front. The triangle "
                  "folds and unfolds."),
         tr_later("Up and Down choose, Left and Right fold and unfold, letters go to the next name that begins with "
                  "them.")}});
}  // namespace

}  // namespace tenon::views
