#include "views/timeline/timeline_view.h"

#include <QLineEdit>
#include <QShortcut>
#include <QSplitter>
#include <QTabWidget>
#include <QToolButton>
#include <QVBoxLayout>

namespace tenon::views {

TimelineView::TimelineView(Workbench& bench, QWidget* parent)
    : View("timeline", "Timeline", "timeline", bench, parent) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  search_ = new QLineEdit(bar);
  search_->setPlaceholderText("Find ops by name, module or attribute");
  search_->setClearButtonEnabled(true);
  search_->setMaximumWidth(300);
  search_->setObjectName("timeline.search");
  found_ = new QLabel(bar);
  set_style(found_, "voice", "small");
  bar->add(search_, 1);
  bar->add(found_);
  bar->add_stretch();
  auto* keys = new ElidedLabel("W A S D zoom and pan · Shift-drag measure · F fit · N next of the same", bar);
  set_style(keys, "voice", "small");
  bar->add(keys);
  box->addWidget(bar);
  auto* split = new QSplitter(Qt::Vertical, page);
  split->addWidget(make_canvas(bench.timeline));
  tabs_ = new QTabWidget(split);
  tabs_->setDocumentMode(true);
  for (auto [list, title] :
       {std::pair{&operators_, "Operators"}, std::pair{&modules_, "Modules"}, std::pair{&events_, "Ops in order"}}) {
    *list = new TableList(tabs_);
    (*list)->on_select = [&bench](const Selection& s) { bench.select(s); };
    tabs_->addTab(*list, title);
  }
  events_->setObjectName("timeline.events");
  split->addWidget(tabs_);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  split->setSizes({330, 190});
  split->setChildrenCollapsible(true);
  box->addWidget(split, 1);
  set_content(page);

  connect(search_, &QLineEdit::textChanged, this, [this](const QString& text) {
    int n = bench_.timeline.set_search(text.toStdString());
    found_->setText(text.isEmpty() ? QString() : n == 1 ? QString("1 op") : QString("%1 ops").arg(n));
    events_->set_filter(text);
  });
  connect(search_, &QLineEdit::returnPressed, this, [this] { bench_.timeline.next_match(1); });
  auto* slash = new QShortcut(QKeySequence("/"), canvas());
  slash->setContext(Qt::WidgetShortcut);
  connect(slash, &QShortcut::activated, search_, [this] { search_->setFocus(); });
  connect(&bench, &Workbench::step_changed, this, &TimelineView::refresh);
  connect(&bench, &Workbench::status_changed, this, [this] {
    if (!bench_.links()) step_state("its timeline");
  });
  connect(&bench, &Workbench::project_changed, this, &TimelineView::refresh);
  connect(&bench, &Workbench::selection_changed, this, [this](const Selection& s) {
    uint32_t seq = bench_.links().op_of(s);
    if (seq && s.kind != Selection::Kind::module) events_->mark(Selection::op(seq));
    if (s.kind == Selection::Kind::module) modules_->mark(s);
  });
  refresh();
}

void TimelineView::refresh() {
  if (!step_state("its timeline")) return;
  operators_->set_table(bench_.timeline.operators());
  modules_->set_table(bench_.timeline.modules());
  events_->set_table(bench_.timeline.events());
}

}  // namespace tenon::views
