#include "views/tensor/tensor_view.h"

#include <QApplication>
#include <QClipboard>
#include <QLineEdit>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>

namespace tenon::views {

TensorView::TensorView(Workbench& bench, QWidget* parent) : View("tensor", "Tensor explorer", "tensor", bench, parent) {
  auto* split = new QSplitter(Qt::Horizontal, this);
  auto* left = new QWidget(split);
  auto* left_box = new QVBoxLayout(left);
  left_box->setContentsMargins(0, 0, 0, 0);
  left_box->setSpacing(0);
  auto* left_bar = new ViewBar(left);
  filter_ = new QLineEdit(left_bar);
  filter_->setPlaceholderText("Find a tensor");
  filter_->setClearButtonEnabled(true);
  left_bar->add(filter_, 1);
  left_box->addWidget(left_bar);
  list_ = new TableList(left);
  list_->setObjectName("tensor.list");
  list_->on_select = [this](const Selection& s) {
    bench_.tensor.show(static_cast<int>(s.id));
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
  heat_->setText("Heat map");
  heat_->setCheckable(true);
  heat_->setToolTip("Show the slice as colours (H)");
  connect(heat_, &QToolButton::clicked, this, [this](bool on) { bench_.tensor.set_heat(on); });
  bar->add(heat_);
  auto* swap = new QToolButton(bar);
  swap->setText("Swap axes");
  swap->setToolTip("Rows become columns (T)");
  connect(swap, &QToolButton::clicked, this,
          [this] { bench_.tensor.set_axes(bench_.tensor.col_axis(), bench_.tensor.row_axis()); });
  bar->add(swap);
  bar->add_stretch();
  auto* copy = new QToolButton(bar);
  copy->setText("Copy slice");
  copy->setToolTip("The numbers of this slice as comma-separated text");
  connect(copy, &QToolButton::clicked, this,
          [this] { QApplication::clipboard()->setText(QString::fromStdString(bench_.tensor.values().csv())); });
  bar->add(copy);
  box->addWidget(bar);
  box->addWidget(make_canvas(bench.tensor), 1);
  split->addWidget(right);
  split->setStretchFactor(0, 0);
  split->setStretchFactor(1, 1);
  split->setSizes({300, 800});
  set_content(split);
  connect(filter_, &QLineEdit::textChanged, list_, [this](const QString& t) { list_->set_filter(t); });
  connect(&bench, &Workbench::step_changed, this, &TensorView::refresh);
  connect(&bench, &Workbench::project_changed, this, &TensorView::refresh);
  connect(&bench, &Workbench::status_changed, this, [this] {
    if (!bench_.links()) step_state("its tensors");
  });
  connect(&bench, &Workbench::selection_changed, this, &TensorView::follow);
  refresh();
}

void TensorView::refresh() {
  if (!step_state("its tensors")) return;
  list_->set_table(bench_.tensor.list());
  follow();
}

void TensorView::follow() {
  list_->mark(Selection::tensor(bench_.tensor.tensor()));
  heat_->setChecked(bench_.tensor.heat());
}

}  // namespace tenon::views
