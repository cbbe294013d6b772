#include "views/training/charts_form_view.h"

#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include "views/canvas/glyphs.h"
#include "views/frame/attr_editor.h"
#include "views/frame/widgets.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
QLabel* charts_heading(const QString& text, QWidget* parent) {
  auto* l = new QLabel(text, parent);
  l->setFont(face_font(Face::title));
  return l;
}
QLabel* charts_note(const QString& text, QWidget* parent) {
  auto* l = new QLabel(text, parent);
  l->setWordWrap(true);
  set_style(l, "voice", "small");
  return l;
}
}  // namespace

ChartsForm::ChartsForm(TrainingModel& model, QWidget* parent) : QDialog(parent), model_(model) {
  setObjectName("charts");
  setWindowTitle(tr("Charts"));
  setAttribute(Qt::WA_DeleteOnClose);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 12);
  all->setSpacing(12);
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* page = new QWidget(scroll);
  set_style(page, "surface", "panel");
  page->setAttribute(Qt::WA_StyledBackground);
  box_ = new QVBoxLayout(page);
  box_->setContentsMargins(16, 16, 16, 16);
  box_->addWidget(rows_ = new QWidget(page));
  box_->addStretch(1);
  scroll->setWidget(page);
  all->addWidget(scroll, 1);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(16, 0, 16, 0);
  usual_ = new QPushButton(tr("Charts as usual"), this);
  usual_->setObjectName("charts.reset");
  usual_->setToolTip(tr("Metrics of one quantity share a chart, every chart is seen, and every axis is linear"));
  usual_->setAutoDefault(false);
  connect(usual_, &QPushButton::clicked, this, [this] { change([](Charts& c) { c.reset(); }); });
  row->addWidget(usual_);
  row->addStretch(1);
  auto* done = new QPushButton(tr("Close"), this);
  done->setObjectName("charts.close");
  done->setAutoDefault(false);  // Enter in a field takes what was typed, and nothing more
  set_style(done, "primary", "true");
  connect(done, &QPushButton::clicked, this, &QDialog::accept);
  row->addWidget(done);
  all->addLayout(row);
  resize(QSize(560, 520).boundedTo(parent->window()->size() - QSize(20, 20)));
  rebuild();
}

void ChartsForm::change(const std::function<void(Charts&)>& what) {
  Charts charts = model_.charts();
  what(charts);
  if (charts == model_.charts()) return;
  model_.set_charts(std::move(charts));
  rebuild();
}

void ChartsForm::rebuild() {
  QString focused;
  if (QWidget* w = QApplication::focusWidget(); w && rows_->isAncestorOf(w))
    focused = w->objectName().isEmpty() && w->parentWidget() ? w->parentWidget()->objectName() : w->objectName();
  for (QWidget* w : rows_->findChildren<QWidget*>()) w->blockSignals(true);
  QWidget* fresh = rows();
  box_->replaceWidget(rows_, fresh);
  discard(rows_);
  rows_ = fresh;
  usual_->setEnabled(!model_.charts().is_default());
  if (!focused.isEmpty())
    if (auto* w = fresh->findChild<QWidget*>(focused)) w->setFocus();
}

QWidget* ChartsForm::rows() {
  auto* page = new QWidget(rows_->parentWidget());
  auto* grid = new QGridLayout(page);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(16);
  grid->setVerticalSpacing(6);
  grid->setColumnStretch(1, 1);
  int at = 0;
  grid->addWidget(charts_heading(tr("Metrics"), page), at++, 0, 1, 3);
  grid->addWidget(
      charts_note(tr("Metrics with the same chart stand together in it. Choose one, or write a new name."), page), at++,
      0, 1, 3);
  const std::vector<Chart> charts = model_.charts().arrange(model_.metrics(), true);
  QStringList titles;
  for (const Chart& c : charts) titles << QString::fromStdString(c.title);
  for (const Chart& c : charts)
    for (const std::string& metric : c.metrics) {
      const QString name = QString::fromStdString(metric);
      auto* label = new QLabel(name, page);
      auto* list = new QComboBox(page);
      list->setObjectName("charts.of." + name);
      list->setAccessibleName(tr("Chart of %1").arg(name));
      list->setEditable(true);
      list->setInsertPolicy(QComboBox::NoInsert);
      list->addItems(titles);
      list->setCurrentText(QString::fromStdString(c.title));
      list->lineEdit()->setPlaceholderText(QString::fromStdString(quantity_of(metric)));
      let_wheel_scroll(list);
      label->setBuddy(list);
      const auto place = [this, metric, list] {
        change([&](Charts& all) { all.place(metric, list->currentText().trimmed().toStdString()); });
      };
      connect(list, &QComboBox::activated, this, place);
      connect(list->lineEdit(), &QLineEdit::editingFinished, this, place);
      grid->addWidget(label, at, 0);
      grid->addWidget(list, at++, 1, 1, 2);
    }
  grid->setRowMinimumHeight(at++, 10);
  grid->addWidget(charts_heading(tr("Charts"), page), at++, 0, 1, 3);
  for (const Chart& c : charts) {
    const QString title = QString::fromStdString(c.title);
    auto* shown = new QCheckBox(title, page);
    shown->setObjectName("charts.shown." + title);
    shown->setToolTip(tr("Show this chart"));
    shown->setChecked(!model_.charts().hidden(c.title));
    connect(shown, &QCheckBox::toggled, this,
            [this, t = c.title](bool on) { change([&](Charts& all) { all.hide(t, !on); }); });
    auto* log = new QCheckBox(tr("Logarithmic"), page);
    log->setObjectName("charts.log." + title);
    log->setAccessibleName(tr("Logarithmic axis of %1").arg(title));
    log->setChecked(model_.charts().log(c.title));
    connect(log, &QCheckBox::toggled, this,
            [this, t = c.title](bool on) { change([&](Charts& all) { all.set_log(t, on); }); });
    grid->addWidget(shown, at, 0, 1, 2);
    grid->addWidget(log, at++, 2);
  }
  return page;
}

}  // namespace tenon::views
