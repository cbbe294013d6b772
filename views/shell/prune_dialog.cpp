#include "views/shell/prune_dialog.h"

#include <QCheckBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

#include "core/error.h"
#include "views/frame/table_list.h"
#include "views/frame/theme.h"
#include "views/frame/widgets.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/shrink_table.h"

namespace tenon::views {

PruneDialog::PruneDialog(QWidget* parent, std::shared_ptr<const projects::TrainedModel> trained)
    : QDialog(parent), trained_(std::move(trained)) {
  setObjectName("prune");
  setWindowTitle(
      tr("Prune channels of %1 at step %2")
          .arg(QString::fromStdString(trained_->run), QString::fromStdString(format_grouped(trained_->step))));
  setAttribute(Qt::WA_DeleteOnClose);
  auto* all = new QVBoxLayout(this);
  all->setSpacing(10);
  add_form(all);
  table_ = new TableList(this);
  table_->setObjectName("prune.table");
  table_->setAccessibleName(tr("What is left of each layer"));
  all->addWidget(table_, 1);
  said_ = new QLabel(this);
  said_->setObjectName("prune.said");
  said_->setWordWrap(true);
  said_->setTextFormat(Qt::PlainText);
  set_style(said_, "voice", "secondary");
  all->addWidget(said_);
  add_buttons(all);
  wait_.setSingleShot(true);
  wait_.setInterval(120);
  connect(&wait_, &QTimer::timeout, this, &PruneDialog::plan);
  resize(QSize(820, 460).boundedTo(parent->window()->size() - QSize(20, 20)));
  plan();
}

void PruneDialog::add_form(QVBoxLayout* all) {
  const projects::ShrinkOptions usual;
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  amount_ = new QSpinBox(this);
  amount_->setObjectName("prune.amount");
  amount_->setAccessibleName(tr("Share of the channels that go"));
  amount_->setRange(1, 99);
  amount_->setSingleStep(5);
  amount_->setSuffix(" %");
  amount_->setValue(static_cast<int>(usual.amount * 100));
  amount_->setToolTip(
      tr("Of each layer, those whose filters have the smallest 1-norm; layers that are added up lose the "
         "same ones"));
  form->addRow(tr("Channels that go"), amount_);
  zeros_ = new QCheckBox(tr("those that are all zero"), this);
  zeros_->setObjectName("prune.zeros");
  zeros_->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);  // a box is as wide as where a click ticks it
  zeros_->setToolTip(tr("As the callback prune leaves them with kind = channels: the model gives what it gave"));
  form->addRow(tr("Instead"), zeros_);
  layers_ = new QLineEdit(QString::fromStdString(usual.layers), this);
  layers_->setObjectName("prune.layers");
  layers_->setAccessibleName(tr("Layers"));
  layers_->setToolTip(tr("Names of layers, separated by commas; * stands for any text: features.*, classifier.0"));
  form->addRow(tr("Layers"), layers_);
  all->addLayout(form);
  connect(amount_, &QSpinBox::valueChanged, this, [this] { wait_.start(); });
  connect(layers_, &QLineEdit::textChanged, this, [this] { wait_.start(); });
  connect(zeros_, &QCheckBox::toggled, this, [this](bool on) {
    amount_->setEnabled(!on);
    wait_.start();
  });
}

void PruneDialog::add_buttons(QVBoxLayout* all) {
  go_ = add_dialog_buttons(this, all, "prune.go", tr("Make a smaller project…"));
  go_->setDefault(true);
  connect(go_, &QPushButton::clicked, this, [this] {
    const projects::ShrinkOptions asked = options();
    accept();
    if (on_prune) on_prune(asked);
  });
}

projects::ShrinkOptions PruneDialog::options() const {
  projects::ShrinkOptions o;
  o.amount = amount_->value() / 100.0;
  o.zeros = zeros_->isChecked();
  o.layers = layers_->text().remove(' ').toStdString();
  return o;
}

void PruneDialog::plan() {
  try {
    const Shrunk small = projects::plan_shrink(*trained_, options());
    table_->set_table(shrink_table(small));
    said_->setText(QString::fromStdString(
        views::tr("{} of {} parameters stay, {} of {} a sample", format_grouped(small.parameters_after()),
                  format_grouped(small.parameters()), format_flops(small.flops_after()), format_flops(small.flops()))));
    go_->setEnabled(true);
  } catch (const Error& e) {
    table_->set_table({});
    said_->setText(QString::fromStdString(e.hint().empty() ? e.message() : e.message() + "\n" + e.hint()));
    go_->setEnabled(false);
  }
}

}  // namespace tenon::views
