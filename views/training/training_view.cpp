#include "views/training/training_view.h"

#include <QSlider>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/shared/format.h"

namespace tenon::views {

TrainingView::TrainingView(Workbench& bench, QWidget* parent) : View("training", "Training", "runs", bench, parent) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  where_ = new ElidedLabel({}, bar);
  bar->add(where_);
  bar->add_stretch();
  bar->add_label("Smoothing");
  smooth_ = new QSlider(Qt::Horizontal, bar);
  smooth_->setRange(0, 98);
  smooth_->setValue(static_cast<int>(bench.training_model.smoothing() * 100));
  smooth_->setFixedWidth(110);
  smooth_->setToolTip("Weight of the past in the smoothed line; the raw values stay under it");
  connect(smooth_, &QSlider::valueChanged, this, [this](int v) { bench_.training_model.set_smoothing(v / 100.0); });
  bar->add(smooth_);
  auto* fit = new QToolButton(bar);
  fit->setText("Fit");
  fit->setToolTip("Show every step (F, or double click)");
  connect(fit, &QToolButton::clicked, this, [this] { bench_.training_model.fit(); });
  bar->add(fit);
  box->addWidget(bar);
  box->addWidget(with_table(make_canvas(bench.training_model), bar, [&bench] { return bench.training_model.table(); }),
                 1);
  set_content(page);
  connect(&bench, &Workbench::run_changed, this, &TrainingView::refresh);
  connect(&bench, &Workbench::status_changed, this, &TrainingView::refresh);
  connect(&bench, &Workbench::project_changed, this, &TrainingView::refresh);
  connect(&bench, &Workbench::selection_changed, this, &TrainingView::refresh);
  refresh();
}

void TrainingView::refresh() {
  const TrainingModel& m = bench_.training_model;
  if (!bench_.has_project()) return set_empty(true, "Open a project to see its training curves.");
  if (m.empty() && bench_.training()) return set_empty(true, "The first step is on its way: curves begin with it.");
  if (m.empty())
    return set_empty(true, "Nothing was trained yet. The curves of a run will be here while it trains.", "Train",
                     [this] { bench_.train(); });
  set_empty(false);
  QString text = QString::fromStdString(m.run());
  const Selection& s = bench_.bus.current();
  if (s.kind == Selection::Kind::step)
    text += QString(" · step %1").arg(QString::fromStdString(format_grouped(s.id)));
  else
    text += QString(" · %1 of %2 steps")
                .arg(QString::fromStdString(format_grouped(m.last_step())),
                     QString::fromStdString(format_grouped(m.total_steps())));
  if (!m.baseline().empty() && m.baseline() != m.run()) text += " · grey: " + QString::fromStdString(m.baseline());
  where_->set_text(text + " · click a point to go back to that step");
}

}  // namespace tenon::views
