#include "views/training/branch_form_view.h"

#include <QApplication>
#include <QFormLayout>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <climits>

#include "views/canvas/glyphs.h"
#include "views/frame/attr_editor.h"
#include "views/frame/widgets.h"
#include "views/shared/language.h"

namespace tenon::views {

BranchForm::BranchForm(BranchDraft draft, QWidget* parent)
    : BranchDialog("branch", tr("Branch of %1").arg(QString::fromStdString(draft.run().name)), parent),
      draft_(std::move(draft)) {
  auto* all = new QVBoxLayout(this);
  all->setSpacing(10);
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  auto* step = new QSpinBox(this);
  step->setObjectName("branch.step");
  step->setAccessibleName(tr("After step"));
  step->setRange(0, static_cast<int>(std::min<int64_t>(draft_.run().steps, INT_MAX)));
  step->setValue(static_cast<int>(draft_.step()));
  step->setToolTip(tr("The branch goes on from the state after this step; 0 is the state before the first one"));
  connect(step, &QSpinBox::valueChanged, this, [this](int v) {
    draft_.set_step(v);
    refresh();
  });
  form->addRow(tr("After step"), step);
  add_name(form, [this](std::string name) { draft_.set_name(std::move(name)); });
  auto* without = new QLineEdit(this);
  without->setObjectName("branch.without");
  without->setPlaceholderText("96, 120-130; own.csv, line 7");
  without->setToolTip(
      tr("Training samples that are left out, by their rows or by where they come from, with semicolons between them"));
  connect(without, &QLineEdit::textChanged, this, [this](const QString& text) {
    draft_.set_left_out(text.trimmed().toStdString());
    refresh();
  });
  form->addRow(tr("Without samples"), without);
  all->addLayout(form);
  auto* heading = new QLabel(tr("Changes"), this);
  heading->setFont(face_font(Face::title));
  all->addWidget(heading);
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* page = new QWidget(scroll);
  box_ = new QVBoxLayout(page);
  box_->setContentsMargins(0, 0, 0, 0);
  box_->addWidget(rows_ = new QWidget(page));
  auto* add = new QPushButton(tr("Add a change"), page);
  add->setObjectName("branch.add");
  add->setAutoDefault(false);
  connect(add, &QPushButton::clicked, this, [this] {
    draft_.add_change();
    rebuild();
  });
  auto* line = new QHBoxLayout;
  line->addWidget(add);
  line->addStretch(1);
  box_->addLayout(line);
  box_->addStretch(1);
  scroll->setWidget(page);
  all->addWidget(scroll, 1);
  add_end(all, false);
  draft_.add_change();
  resize(QSize(560, 460).boundedTo(parent->window()->size() - QSize(20, 20)));
  rebuild();
}

void BranchForm::rebuild() {
  QString focused;
  if (QWidget* w = QApplication::focusWidget(); w && rows_->isAncestorOf(w)) focused = w->objectName();
  for (QWidget* w : rows_->findChildren<QWidget*>()) w->blockSignals(true);
  auto* fresh = new QWidget(rows_->parentWidget());
  auto* grid = new QGridLayout(fresh);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(8);
  grid->setVerticalSpacing(6);
  grid->setColumnStretch(0, 1);
  grid->setColumnStretch(1, 1);
  for (size_t i = 0; i < draft_.changes().size(); ++i) add_row(grid, i);
  box_->replaceWidget(rows_, fresh);
  discard(rows_);
  rows_ = fresh;
  if (!focused.isEmpty())
    if (auto* w = fresh->findChild<QWidget*>(focused)) w->setFocus();
  refresh();
}

void BranchForm::add_row(QGridLayout* grid, size_t at) {
  const auto& [key, value] = draft_.changes()[at];
  AttrDef which{"key", key, 0, 0, views::tr("the key that is changed")};
  for (const AttrDef& d : draft_.choices(at)) which.choices.push_back(d.name);
  if (std::find(which.choices.begin(), which.choices.end(), key) == which.choices.end()) which.choices.push_back(key);
  QWidget* name = make_attr_editor(
      which, key,
      [this, at](const AttrValue& v) {
        draft_.set_key(at, std::get<std::string>(v));
        QTimer::singleShot(0, this, &BranchForm::rebuild);  // not within the list's own signal
      },
      grid->parentWidget());
  const auto row = static_cast<int>(at);
  name->setObjectName(QString("branch.key.%1").arg(row));
  name->setAccessibleName(tr("Key %1").arg(row + 1));
  grid->addWidget(name, row, 0);
  QWidget* editor = make_attr_editor(
      draft_.definition(at), value,
      [this, at](const AttrValue& v) {
        draft_.set_value(at, v);
        refresh();
      },
      grid->parentWidget());
  editor->setObjectName(QString("branch.value.%1").arg(row));
  editor->setAccessibleName(tr("Value of key %1").arg(row + 1));
  grid->addWidget(editor, row, 1);
  auto* remove = new QToolButton(grid->parentWidget());
  remove->setText("×");
  remove->setObjectName(QString("branch.remove.%1").arg(row));
  remove->setAccessibleName(tr("Take key %1 out").arg(row + 1));
  remove->setToolTip(tr("Take this key out"));
  set_style(remove, "slim", "true");
  connect(remove, &QToolButton::clicked, this, [this, at] {
    draft_.remove(at);
    rebuild();
  });
  grid->addWidget(remove, row, 2);
}

void BranchForm::refresh() {
  const QString fault = QString::fromStdString(draft_.fault());
  const QString said = QString::fromStdString(draft_.said());
  say(fault, said.isEmpty()
                 ? tr("Without a change it is %1 again, step for step.").arg(QString::fromStdString(draft_.run().name))
                 : said);
}

}  // namespace tenon::views
