#include "views/tensor/edit_form_view.h"

#include <QComboBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>
#include <cmath>

#include "core/number.h"
#include "views/frame/theme.h"
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

EditForm::EditForm(EditDraft draft, QWidget* parent) : QDialog(parent), draft_(std::move(draft)) {
  using How = TensorEdit::How;
  setObjectName("edit");
  setWindowTitle(tr("Change a value and go on"));
  setAttribute(Qt::WA_DeleteOnClose);
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
  auto* run = new QLineEdit(this);
  run->setObjectName("edit.name");
  run->setPlaceholderText(tr("name: the next free one"));
  connect(run, &QLineEdit::textChanged, this,
          [this](const QString& text) { draft_.set_name(text.trimmed().toStdString()); });
  form->addRow(tr("Name"), run);
  all->addLayout(form);
  said_ = new QLabel(this);
  said_->setObjectName("edit.said");
  said_->setWordWrap(true);
  said_->setTextFormat(Qt::PlainText);
  all->addWidget(said_);
  all->addStretch(1);
  auto* row = new QHBoxLayout;
  row->addStretch(1);
  auto* cancel = new QPushButton(tr("Cancel"), this);
  cancel->setAutoDefault(false);
  connect(cancel, &QPushButton::clicked, this, &QDialog::reject);
  row->addWidget(cancel);
  train_ = new QPushButton(tr("Train the branch"), this);
  train_->setObjectName("edit.train");
  train_->setAutoDefault(false);
  set_style(train_, "primary", "true");
  connect(train_, &QPushButton::clicked, this, [this] {
    const projects::TrainOptions options = draft_.options();
    accept();
    if (on_train) on_train(options);
  });
  row->addWidget(train_);
  all->addLayout(row);
  for (QComboBox* box : {which_, how_}) connect(box, &QComboBox::currentIndexChanged, this, &EditForm::refresh);
  for (QLineEdit* edit : {value_, upper_}) connect(edit, &QLineEdit::textChanged, this, &EditForm::refresh);
  resize(QSize(520, 320).boundedTo(parent->window()->size() - QSize(20, 20)));
  refresh();
  value_->setFocus();
  value_->selectAll();
}

void EditForm::set_busy(const QString& why) {
  busy_ = why;
  refresh();
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
  const bool bad = !fault.isEmpty();
  set_style(said_, "voice", bad ? "bad" : "secondary");
  said_->setText(bad ? fault
                 : !busy_.isEmpty()
                     ? busy_
                     : tr("The branch goes on from step %1 with the edit “%2”; its replays make it, too.")
                           .arg(QString::fromStdString(format_grouped(draft_.edit().step - 1)),
                                QString::fromStdString(edit_text(draft_.edit()))));
  train_->setEnabled(!bad && busy_.isEmpty());
}

}  // namespace tenon::views
