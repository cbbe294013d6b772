#include "views/memory/memory_view.h"

#include <QHBoxLayout>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/shared/format.h"

namespace tenon::views {

MemoryView::MemoryView(Workbench& bench, QWidget* parent) : View("memory", "Memory", "memory", bench, parent) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  at_ = new QLabel(bar);
  bar->add(at_);
  bar->add_stretch();
  auto* peak = new QToolButton(bar);
  peak->setText("Go to peak");
  peak->setToolTip("Put the cursor at the highest moment (P)");
  connect(peak, &QToolButton::clicked, this, [this] { bench_.memory.set_cursor(bench_.memory.peak_time()); });
  bar->add(peak);
  box->addWidget(bar);
  auto* split = new QSplitter(Qt::Vertical, page);
  split->addWidget(make_canvas(bench.memory));
  auto* tables = new QSplitter(Qt::Horizontal, split);
  live_ = new TableList(tables);
  live_->setObjectName("memory.live");
  live_->on_select = [&bench](const Selection& s) { bench.select(s); };
  categories_ = new TableList(tables);
  tables->addWidget(live_);
  tables->addWidget(categories_);
  tables->setStretchFactor(0, 3);
  tables->setStretchFactor(1, 1);
  tables->setSizes({640, 310});
  split->addWidget(tables);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  split->setSizes({340, 180});
  box->addWidget(split, 1);
  set_content(page);
  later_.setSingleShot(true);
  later_.setInterval(60);  // scrubbing: the tables follow a few times a second, the picture at once
  connect(&later_, &QTimer::timeout, this, &MemoryView::refresh);
  bench.memory.on_cursor = [this] { later_.start(); };
  connect(&bench, &Workbench::step_changed, this, &MemoryView::refresh);
  connect(&bench, &Workbench::project_changed, this, &MemoryView::refresh);
  connect(&bench, &Workbench::status_changed, this, [this] {
    if (!bench_.links()) step_state("its memory");
  });
  connect(&bench, &Workbench::selection_changed, this,
          [this](const Selection& s) { live_->mark(Selection::alloc(bench_.links().block_of(s))); });
  refresh();
}

void MemoryView::refresh() {
  if (!step_state("its memory")) return;
  live_->set_table(bench_.memory.live_table());
  categories_->set_table(bench_.memory.categories());
  auto now = bench_.memory.live_at(bench_.memory.cursor());
  at_->setText(QString("%1 live at %2 in %3 blocks · peak %4 at %5")
                   .arg(QString::fromStdString(format_bytes(now.total)),
                        QString::fromStdString(format_ns(bench_.memory.cursor())))
                   .arg(live_->table().rows.size())
                   .arg(QString::fromStdString(format_bytes(static_cast<double>(bench_.memory.peak_bytes()))),
                        QString::fromStdString(format_ns(bench_.memory.peak_time()))));
}

}  // namespace tenon::views
