#include "views/tensor/edit_form_view.h"

#include <QComboBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QVBoxLayout>
#include <cmath>

#include "core/number.h"
#include "views/shared/format.h"

namespace tenon::views {
namespace {

std::optional<double> typed_number(const QLineEdit* line) {
  const std::string text = line->text().trimmed().toStdString();
  if (text == "nan") return NAN;
  if (text == "inf" || text == "-inf") return text[0] == '-' ? -INFINITY : INFINITY;
  return number_of(text);
}

}  // namespace

EditForm::EditForm(EditDraft draft, QWidget* parent)
    : BranchDialog("edit", tr("Change a value and go on"), parent), draft_(std::move(draft)) {
  using How = TensorEdit::How;
  auto* all = new QVBoxLayout(this);
  all->setSpacing(10);
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  const QString name = QString::fromStdString(draft_.tensor());
  form->addRow(tr("Tensor"), new QLabel(name, this));
  form->addRow(tr("At step %1").arg(QString::fromStdString(format_grouped(draft_.edit().step))),
               new QLabel(QString::fromStdString(draft_.when()), this));
  which_ = new QComboBox(this);
  which_->setObjectName("edit.which");
  which_->setAccessibleName(tr("What is changed"));
  which_->addItem(tr("Element %1").arg(QString::fromStdString(to_string(*draft_.edit().element))));
  which_->addItem(tr("Every element"));
  form->addRow(tr("What"), which_);
  auto* line = new QHBoxLayout;
  how_ = new QComboBox(this);
  how_->setObjectName("edit.how");
  how_->setAccessibleName(tr("How it is changed"));
  how_->addItem(tr("set to"), static_cast<int>(How::set));
  how_->addItem(tr("multiplied by"), static_cast<int>(How::scale));
  how_->addItem(tr("raised by"), static_cast<int>(How::add));
  how_->addItem(tr("kept within"), static_cast<int>(How::clamp));
  line->addWidget(how_);
  value_ = new QLineEdit(QString::fromStdString(format_exact(draft_.edit().a)), this);
  value_->setObjectName("edit.value");
  value_->setAccessibleName(tr("Value"));
  line->addWidget(value_, 1);
  and_ = new QLabel(tr("to"), this);
  line->addWidget(and_);
  upper_ = new QLineEdit("1", this);
  upper_->setObjectName("edit.upper");
  upper_->setAccessibleName(tr("Upper bound"));
  line->addWidget(upper_, 1);
  form->addRow(tr("How"), line);
  add_name(form, [this](std::string name) { draft_.set_name(std::move(name)); });
  all->addLayout(form);
  add_end(all, true);
  for (QComboBox* box : {which_, how_}) connect(box, &QComboBox::currentIndexChanged, this, &EditForm::refresh);
  for (QLineEdit* edit : {value_, upper_}) connect(edit, &QLineEdit::textChanged, this, &EditForm::refresh);
  resize(QSize(520, 320).boundedTo(parent->window()->size() - QSize(20, 20)));
  refresh();
  value_->setFocus();
  value_->selectAll();
}

void EditForm::refresh() {
  const auto how = static_cast<TensorEdit::How>(how_->currentData().toInt());
  const bool bounds = how == TensorEdit::How::clamp;
  and_->setVisible(bounds);
  upper_->setVisible(bounds);
  draft_.set_whole(which_->currentIndex() == 1);
  draft_.set_how(how);
  const auto a = typed_number(value_), b = typed_number(upper_);
  QString fault;
  if (!a || (bounds && !b))
    fault = tr("A number is expected.");
  else if (bounds)
    draft_.set_bounds(*a, *b);
  else
    draft_.set_value(*a);
  if (fault.isEmpty()) fault = QString::fromStdString(draft_.fault());
  say(fault, fault.isEmpty() ? tr("The branch goes on from step %1 with the edit “%2”; its replays make it, too.")
                                   .arg(QString::fromStdString(format_grouped(draft_.edit().step - 1)),
                                        QString::fromStdString(edit_text(draft_.edit())))
                             : QString());
}

}  // namespace tenon::views
