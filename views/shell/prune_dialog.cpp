#include "views/shell/prune_dialog.h"

#include <QComboBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

#include "views/frame/table_list.h"
#include "views/frame/theme.h"
#include "views/frame/widgets.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/shrink_table.h"

namespace tenon::views {

PruneDialog::PruneDialog(QWidget* parent, Jobs& jobs, std::shared_ptr<const projects::TrainedModel> trained)
    : QDialog(parent), jobs_(jobs), trained_(std::move(trained)) {
  setObjectName("prune");
  setWindowTitle(
      tr("Make %1 at step %2 smaller")
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
  how_ = new QComboBox(this);
  how_->setObjectName("prune.how");
  how_->setAccessibleName(tr("How it gets smaller"));
  how_->addItems({tr("fewer channels: those of least weight go"), tr("fewer channels: those that are all zero go"),
                  tr("lower rank: a layer becomes two")});
  const QString why[] = {
      tr("Of each layer, those whose filters have the smallest 1-norm; layers that are added up lose the "
         "same ones"),
      tr("As the callback prune leaves them with kind = channels: the model gives what it gave"),
      tr("Of the lowest rank that keeps this share of the squares of the layer's singular values, "
         "where the two are smaller than the one")};
  for (int i = 0; i < 3; ++i) how_->setItemData(i, why[i], Qt::ToolTipRole);
  form->addRow(tr("How"), how_);
  amount_ = new QSpinBox(this);
  amount_->setObjectName("prune.amount");
  amount_->setRange(1, 99);
  amount_->setSingleStep(5);
  amount_->setSuffix(" %");
  amount_->setValue(static_cast<int>(usual.amount * 100));
  auto* amount_label = new QLabel(this);
  form->addRow(amount_label, amount_);
  layers_ = new QLineEdit(QString::fromStdString(usual.layers), this);
  layers_->setObjectName("prune.layers");
  layers_->setAccessibleName(tr("Layers"));
  layers_->setToolTip(tr("Names of layers, separated by commas; * stands for any text: features.*, classifier.0"));
  form->addRow(tr("Layers"), layers_);
  all->addLayout(form);
  connect(amount_, &QSpinBox::valueChanged, this, [this] { wait_.start(); });
  connect(layers_, &QLineEdit::textChanged, this, [this] { wait_.start(); });
  const auto chosen = [this, amount_label] {
    const bool factors = how_->currentIndex() == 2;
    amount_label->setText(factors ? tr("Energy that stays") : tr("Channels that go"));
    amount_->setAccessibleName(amount_label->text());
    amount_->setToolTip(how_->currentData(Qt::ToolTipRole).toString());
    amount_->setEnabled(how_->currentIndex() != 1);
    how_->setToolTip(amount_->toolTip());
  };
  connect(how_, &QComboBox::currentIndexChanged, this, [this, chosen](int now) {
    chosen();
    if (now != 1) amount_->setValue(now == 2 ? 90 : 50);
    wait_.start();
  });
  chosen();
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
  const double share = amount_->value() / 100.0;
  if (how_->currentIndex() == 2)
    o.energy = share;
  else
    o.amount = share;
  o.zeros = how_->currentIndex() == 1;
  o.layers = layers_->text().remove(' ').toStdString();
  return o;
}

void PruneDialog::plan() {
  static constexpr const char* kTag = "prune plan";
  jobs_.cancel_tag(kTag);
  go_->setEnabled(false);
  const QPointer<PruneDialog> self = this;
  jobs_.start(
      kTag, tr("Work out a smaller model"),
      [trained = trained_, asked = options()](const Jobs::Report&, const std::atomic<bool>&) {
        return std::make_shared<const Shrunk>(projects::plan_shrink(*trained, asked));
      },
      [self](const std::shared_ptr<const Shrunk>& small) {
        if (self) self->show_plan(*small);
      },
      [self](const QString& message, const QString& hint) {
        if (self) self->show_fault(message, hint);
      },
      true);
}

void PruneDialog::show_plan(const Shrunk& small) {
  table_->set_table(shrink_table(small));
  said_->setText(QString::fromStdString(
      views::tr("{} of {} parameters stay, {} of {} a sample", format_grouped(small.parameters_after()),
                format_grouped(small.parameters()), format_flops(small.flops_after()), format_flops(small.flops()))));
  go_->setEnabled(true);
}

void PruneDialog::show_fault(const QString& message, const QString& hint) {
  table_->set_table({});
  said_->setText(hint.isEmpty() ? message : message + "\n" + hint);
}

}  // namespace tenon::views
