#include "views/memory/memory_view.h"

#include <QHBoxLayout>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/shared/format.h"

namespace tenon::views {

MemoryView::MemoryView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<MemoryModel>()) {
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
  connect(peak, &QToolButton::clicked, this, [this] { model_.set_cursor(model_.peak_time()); });
  bar->add(peak);
  box->addWidget(bar);
  auto* split = new QSplitter(Qt::Vertical, page);
  split->addWidget(make_canvas(model_));
  auto* tables = new QSplitter(Qt::Horizontal, split);
  live_ = new TableList(tables);
  live_->setObjectName("memory.live");
  live_->on_select = [&bench](const Selection& s) { bench.select(s); };
  categories_ = new TableList(tables);
  tables->addWidget(live_);
  tables->addWidget(categories_);
  tables->setStretchFactor(0, 3);
  tables->setStretchFactor(1, 1);
  tables->setSizes({610, 340});
  split->addWidget(tables);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  split->setSizes({340, 180});
  box->addWidget(split, 1);
  set_content(page);
  later_.setSingleShot(true);
  later_.setInterval(60);  // scrubbing: the tables follow a few times a second, the picture at once
  connect(&later_, &QTimer::timeout, this, &MemoryView::refresh);
  model_.on_cursor = [this] { later_.start(); };
  connect(&bench, &Bench::step_changed, this, &MemoryView::refresh);
  connect(&bench, &Bench::project_changed, this, &MemoryView::refresh);
  connect(&bench, &Bench::status_changed, this, [this] {
    if (!bench_.links()) step_state("its memory");
  });
  connect(&bench, &Bench::selection_changed, this,
          [this](const Selection& s) { live_->mark(Selection::alloc(bench_.links().block_of(s))); });
  refresh();
}

MemoryView::~MemoryView() { model_.on_cursor = nullptr; }

void MemoryView::refresh() {
  if (!step_state("its memory")) return;
  live_->set_table(model_.live_table());
  categories_->set_table(model_.categories());
  auto now = model_.live_at(model_.cursor());
  at_->setText(
      QString("%1 live at %2 in %3 blocks · peak %4 at %5")
          .arg(QString::fromStdString(format_bytes(now.total)), QString::fromStdString(format_ns(model_.cursor())))
          .arg(live_->table().rows.size())
          .arg(QString::fromStdString(format_bytes(static_cast<double>(model_.peak_bytes()))),
               QString::fromStdString(format_ns(model_.peak_time()))));
}

namespace {
const bool registered_memory_view = register_view<MemoryView, MemoryModel>(
    {.id = "memory",
     .title = "Memory",
     .icon = "memory",
     .order = 50,
     .places = {{"Profile", Spot::below, 0}, {"Memory", Spot::middle, 0, true}},
     .fill = "run.replay",
     .link = "Memory",
     .shows = [](const Selection& s, const Bench& bench) { return bench.links().hold(s); },
     .help = {
         "The bytes that were alive during the step, stacked by what they were for, with the peak; below it the blocks "
         "of the allocator at the cursor, and the list of what was alive then.",
         "Click or drag to move the cursor, Shift and drag to move the picture, wheel to zoom, double click to show "
         "the "
         "whole step. A click on a block selects who made it.",
         "Left and Right go from change to change, P goes to the peak, W and S zoom, A and D move, F shows the whole "
         "step."}});
}  // namespace

}  // namespace tenon::views
