#include "views/shell/quantize_dialog.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

#include "views/frame/theme.h"
#include "views/frame/widgets.h"
#include "views/shared/language.h"

namespace tenon::views {
namespace {

struct Offer {
  formats::Precision precision;
  const char *title, *said;
};
constexpr Offer kOffers[] = {
    {formats::Precision::int8_static, tr_later("int8, static"),
     tr_later(
         "Weights and activations in 8 bits; training samples tell the range of the activations. The fastest where "
         "a runtime has integer kernels.")},
    {formats::Precision::int8_dynamic, tr_later("int8, dynamic"),
     tr_later("Weights in 8 bits, activations too, by the range of each batch. Nothing is calibrated.")},
    {formats::Precision::int8_weights, tr_later("int8, weights alone"),
     tr_later("Weights in 8 bits, computed in f32: a quarter of the size, and hardly a difference.")},
    {formats::Precision::int4_weights, tr_later("int4, weights alone"),
     tr_later("Weights in 4 bits, in groups of 32 with a scale each, computed in f32. For models of many weights.")},
};

}  // namespace

QuantizeDialog::QuantizeDialog(QWidget* parent, bool program) : QDialog(parent), program_(program) {
  setObjectName("quantize");
  setWindowTitle(tr("Export in fewer bits"));
  setAttribute(Qt::WA_DeleteOnClose);
  auto* all = new QVBoxLayout(this);
  all->setSpacing(10);
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  add_precision(form);
  add_calibration(form);
  add_budget(form);
  all->addLayout(form);
  said_ = new QLabel(this);
  said_->setObjectName("quantize.said");
  said_->setWordWrap(true);
  said_->setTextFormat(Qt::PlainText);
  set_style(said_, "voice", "secondary");
  all->addWidget(said_);
  all->addStretch(1);
  auto* go = add_dialog_buttons(this, all, "quantize.export", tr("Export"));
  go->setDefault(true);
  connect(go, &QPushButton::clicked, this, [this] {
    const projects::QuantizeOptions asked = options();
    accept();
    if (on_export) on_export(asked);
  });
  resize(QSize(460, 300).boundedTo(parent->window()->size() - QSize(20, 20)));
  refresh();
}

void QuantizeDialog::add_precision(QFormLayout* form) {
  precision_ = new QComboBox(this);
  precision_->setObjectName("quantize.precision");
  precision_->setAccessibleName(tr("Precision"));
  for (const Offer& o : kOffers)
    if (!program_ || o.precision != formats::Precision::int8_dynamic)  // which torch.export has no operators for
      precision_->addItem(tr(o.title), static_cast<int>(&o - kOffers));
  connect(precision_, &QComboBox::currentIndexChanged, this, &QuantizeDialog::refresh);
  form->addRow(tr("Precision"), precision_);
}

void QuantizeDialog::add_calibration(QFormLayout* form) {
  const projects::QuantizeOptions usual;
  calibration_ = new QComboBox(this);
  calibration_->setObjectName("quantize.calibration");
  calibration_->setAccessibleName(tr("Calibration"));
  for (const formats::CalibrationDef& d : formats::calibrations()) {
    calibration_->addItem(QString::fromStdString(d.name));
    calibration_->setItemData(calibration_->count() - 1, QString::fromStdString(d.help), Qt::ToolTipRole);
  }
  calibration_->setCurrentText(QString::fromStdString(usual.how.calibration));
  calibration_->setToolTip(tr("How the range of values that 8 bits are spent on is chosen; others are cut off"));
  form->addRow(tr("Calibration"), calibration_);
  samples_ = new QSpinBox(this);
  samples_->setObjectName("quantize.samples");
  samples_->setAccessibleName(tr("Samples"));
  samples_->setRange(1, 1000000);
  samples_->setValue(static_cast<int>(usual.samples));
  samples_->setToolTip(
      tr("Training samples, spread evenly, that the model is calibrated and its layers are measured by"));
  form->addRow(tr("Samples"), samples_);
}

void QuantizeDialog::add_budget(QFormLayout* form) {
  auto* row = new QHBoxLayout;
  limited_ = new QCheckBox(tr("no more than"), this);
  limited_->setObjectName("quantize.limited");
  connect(limited_, &QCheckBox::toggled, this, &QuantizeDialog::refresh);
  row->addWidget(limited_);
  budget_ = new QDoubleSpinBox(this);
  budget_->setObjectName("quantize.budget");
  budget_->setAccessibleName(tr("What may be lost"));
  budget_->setRange(0, 100);
  budget_->setSingleStep(0.1);
  budget_->setValue(0.5);
  row->addWidget(budget_, 1);
  auto* unit = new QLabel(tr("points of accuracy, of other metrics %"), this);
  unit->setBuddy(budget_);
  row->addWidget(unit);
  const QString tip = tr("The most sensitive layers stay in f32 until no more is lost");
  limited_->setToolTip(tip);
  budget_->setToolTip(tip);
  form->addRow(tr("May be lost"), row);
}

void QuantizeDialog::refresh() {
  const Offer& offer = kOffers[precision_->currentData().toInt()];
  calibration_->setEnabled(offer.precision == formats::Precision::int8_static);
  budget_->setEnabled(limited_->isChecked());
  said_->setText(tr(offer.said));
}

projects::QuantizeOptions QuantizeDialog::options() const {
  projects::QuantizeOptions o;
  o.how.precision = kOffers[precision_->currentData().toInt()].precision;
  o.program = program_;
  o.how.calibration = calibration_->currentText().toStdString();
  o.samples = samples_->value();
  if (limited_->isChecked()) o.budget = budget_->value();
  return o;
}

}  // namespace tenon::views
