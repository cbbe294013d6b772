#include "views/tensor/tensor_view.h"

#include <QApplication>
#include <QClipboard>
#include <QLineEdit>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/frame/table_list.h"

namespace tenon::views {

TensorView::TensorView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<TensorModel>()) {
  auto* split = new QSplitter(Qt::Horizontal, this);
  auto* left = new QWidget(split);
  auto* left_box = new QVBoxLayout(left);
  left_box->setContentsMargins(0, 0, 0, 0);
  left_box->setSpacing(0);
  auto* left_bar = new ViewBar(left);
  filter_ = new QLineEdit(left_bar);
  filter_->setPlaceholderText(tr("Find a tensor"));
  filter_->setClearButtonEnabled(true);
  left_bar->add(filter_, 1);
  left_box->addWidget(left_bar);
  list_ = new TableList(left);
  list_->setObjectName("tensor.list");
  list_->on_select = [this](const Selection& s) {
    model_.show(static_cast<int>(s.id));
    bench_.select(s);
    follow();
  };
  left_box->addWidget(list_, 1);
  split->addWidget(left);
  auto* right = new QWidget(split);
  auto* box = new QVBoxLayout(right);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(right);
  heat_ = new QToolButton(bar);
  heat_->setText(tr("Heat map"));
  heat_->setCheckable(true);
  heat_->setToolTip(tr("Show the slice as colours (H)"));
  connect(heat_, &QToolButton::clicked, this, [this](bool on) { model_.set_heat(on); });
  bar->add(heat_);
  auto* swap = new QToolButton(bar);
  swap->setText(tr("Swap axes"));
  swap->setToolTip(tr("Rows become columns (T)"));
  connect(swap, &QToolButton::clicked, this, [this] { model_.set_axes(model_.col_axis(), model_.row_axis()); });
  bar->add(swap);
  bar->add_stretch();
  auto* copy = new QToolButton(bar);
  copy->setText(tr("Copy slice"));
  copy->setToolTip(tr("The numbers of this slice as comma-separated text"));
  connect(copy, &QToolButton::clicked, this,
          [this] { QApplication::clipboard()->setText(QString::fromStdString(model_.values().csv())); });
  bar->add(copy);
  box->addWidget(bar);
  box->addWidget(make_canvas(model_), 1);
  split->addWidget(right);
  split->setStretchFactor(0, 0);
  split->setStretchFactor(1, 1);
  split->setSizes({350, 800});
  set_content(split);
  model_.on_need_stats = [this](int index) { count(index); };
  connect(filter_, &QLineEdit::textChanged, list_, [this](const QString& t) { list_->set_filter(t); });
  connect(&bench, &Bench::step_changed, this, &TensorView::refresh);
  connect(&bench, &Bench::project_changed, this, &TensorView::refresh);
  connect(&bench, &Bench::status_changed, this, [this] {
    if (!bench_.links()) step_state(tr("its tensors"));
  });
  connect(&bench, &Bench::selection_changed, this, &TensorView::follow);
  refresh();
}

TensorView::~TensorView() { model_.on_need_stats = nullptr; }

/// Statistics of a tensor of the loaded step, away from the UI thread.
void TensorView::count(int index) {
  const auto record = bench_.links().record();
  if (!record || index < 0 || index >= static_cast<int>(record->tensors.size())) return;
  Tensor value = record->tensors[index].value;
  bench_.jobs.start(
      "stats", tr("Statistics"),
      [value](const Jobs::Report& report, const std::atomic<bool>&) { return tensor_stats(value, 48, report); },
      [this, index, record](const TensorStats& stats) {
        if (record == bench_.links().record()) model_.set_stats(index, stats);  // an index belongs to its step
      },
      {}, true);
}

void TensorView::refresh() {
  if (!step_state(tr("its tensors"))) return;
  list_->set_table(model_.list());
  follow();
}

void TensorView::follow() {
  list_->mark(Selection::tensor(model_.tensor()));
  heat_->setChecked(model_.heat());
}

namespace {
const bool registered_tensor_view = register_view<TensorView, TensorModel>(
    {.id = "tensor",
     .title = tr_later("Tensor explorer"),
     .icon = "tensor",
     .order = 60,
     .places = {{"Memory", Spot::below, 1}, {"Debug", Spot::below, 0}},
     .layouts = {"Build", "Memory", "Debug"},
     .fill = "run.replay",
     .link = tr_later("Tensor"),
     .shows =
         [](const Selection& s, const Bench& bench) {
           const bool one = s.kind != Selection::Kind::module && bench.links().tensor_of(s) >= 0;
           return bench.links().hold(s) && (one || s.kind == Selection::Kind::step);
         },
     .help = {tr_later("A tensor of the step: the values of a slice, where each lies on the storage, the strides, and "
                       "its statistics with a histogram; values that are not finite are marked."),
              tr_later("Choose a tensor on the left. A click on a cell or on the storage strip shows the other side of "
                       "it. A click on an axis makes it the rows, with Shift the columns; the wheel over an axis "
                       "changes its index, elsewhere it scrolls."),
              tr_later("Arrows, Page Up, Page Down, Home and End move over the cells, H colours them by value, T swaps "
                       "rows and columns.")}});
}  // namespace

}  // namespace tenon::views
