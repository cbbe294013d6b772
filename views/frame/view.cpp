#include "views/frame/view.h"

#include <QDockWidget>
#include <QScrollArea>
#include <QSplitter>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include "tracing/record/step_record.h"
#include "views/frame/application.h"
#include "views/frame/table_list.h"
#include "views/frame/wait_strip.h"
#include "views/shared/format.h"

namespace tenon::views {

View::View(const ViewDef& def, Bench& bench, QWidget* parent)
    : QWidget(parent),
      bench_(bench),
      strip_(new WaitStrip(this)),
      stack_(new QStackedWidget(this)),
      empty_(new EmptyState(this)),
      def_(def) {
  setObjectName(id());
  setAccessibleName(title());
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  box->addWidget(strip_);
  box->addWidget(stack_);
  stack_->addWidget(empty_);
}

void View::showEvent(QShowEvent* e) {
  QWidget::showEvent(e);
  // A dock that comes to the front of others was visible to Qt before, and tells of it in its own way.
  for (QWidget* w = parentWidget(); w; w = w->parentWidget())
    if (auto* dock = qobject_cast<QDockWidget*>(w))
      connect(dock, &QDockWidget::visibilityChanged, this, &View::look, Qt::UniqueConnection);
  look();
}

void View::look() {
  if (looking_) return;
  looking_ = true;
  QTimer::singleShot(0, this, [this] {
    looking_ = false;
    if (in_sight()) came_into_sight();
  });
}

SceneCanvas* View::make_canvas(CanvasModel& model) {
  canvas_ = new SceneCanvas(model, this);
  canvas_->setObjectName(id() + ".canvas");
  canvas_->setAccessibleName(title());
  canvas_->on_fault = [this] { Application::report(tr("the picture of %1").arg(title())); };
  return canvas_;
}

QWidget* View::with_table(SceneCanvas* canvas, ViewBar* bar, std::function<Table()> table) {
  auto* split = new QSplitter(Qt::Vertical, this);
  split->addWidget(canvas);
  twin_ = new TableList(split);
  twin_->setObjectName(id() + ".table");
  twin_->setAccessibleName(tr("%1 as a table").arg(title()));
  twin_->on_select = [this](const Selection& s) { bench_.select(s); };
  twin_->hide();
  split->addWidget(twin_);
  split->setSizes({400, 200});
  split->setStretchFactor(0, 1);
  twin_table_ = std::move(table);
  auto* button = new QToolButton(bar);
  twin_button_ = button;
  button->setObjectName(id() + ".as_table");
  button->setText(tr("Table"));
  button->setCheckable(true);
  button->setToolTip(tr("The same as rows: to sort, to copy, to read aloud"));
  connect(button, &QToolButton::toggled, this, [this](bool on) {
    twin_->setVisible(on);
    refresh_table();
  });
  bar->add(button);
  connect(&bench_, &Bench::state_changed, this, &View::refresh_table);
  connect(&bench_, &Bench::step_changed, this, &View::refresh_table);
  connect(&bench_, &Bench::status_changed, this, &View::refresh_table);
  return split;
}

void View::offer_table(bool offered) { twin_button_->setVisible(offered); }

void View::refresh_table() {
  if (!twin_ || !twin_->isVisibleTo(this)) return;
  twin_->set_table(twin_table_());
  twin_->mark(bench_.bus.current());
}

/// In a dock that is smaller than what stands in the view, the view scrolls.
void View::set_content(QWidget* content) {
  if (qobject_cast<QAbstractScrollArea*>(content)) {  // it does so itself
    stack_->addWidget(content);
    return;
  }
  auto* area = new QScrollArea(this);
  area->setFrameShape(QFrame::NoFrame);
  area->setFocusPolicy(Qt::NoFocus);
  area->setWidgetResizable(true);
  area->setWidget(content);
  // The view's own background shows through: what hides it wholly makes it count as one that is not seen.
  set_style(area, "clear", "true");
  area->viewport()->setAutoFillBackground(false);
  content->setAutoFillBackground(false);
  stack_->addWidget(area);
}

void View::set_empty(bool empty, const QString& sentence, const QString& button, std::function<void()> run) {
  if (empty) empty_->set(sentence, button, std::move(run));
  if (stack_->currentIndex() != (empty ? 0 : 1)) stack_->setCurrentIndex(empty ? 0 : 1);
}

void View::set_waiting(Jobs& jobs, std::function<bool(const Jobs::State&)> which, const QString& what,
                       std::function<void()> cancelled) {
  stack_->setCurrentIndex(0);
  empty_->wait_for(jobs, std::move(which), what, std::move(cancelled));
}

const TableList* View::shown_list() const {
  for (const TableList* list : findChildren<TableList*>())
    if (list->isVisibleTo(this)) return list;
  return nullptr;
}

std::optional<Table> View::shown_table() const {
  if (!has_table()) return {};
  const TableList* list = shown_list();
  return list ? list->shown() : twin_table_();
}

void View::set_theme(ThemeName theme) {
  theme_ = theme;
  if (canvas_) canvas_->set_theme(theme);
  for (TableList* t : findChildren<TableList*>()) t->set_theme(theme);
}

bool View::step_state(const QString& what) {
  if (bench_.links()) {
    set_empty(false);
    const bool sample = bench_.links().record()->sample >= 0;
    const QString step = QString::fromStdString(format_grouped(bench_.links().record()->step));
    strip_->wait_for(bench_.jobs, "step",
                     (sample ? tr("a sample under the state of step %1") : tr("step %1")).arg(step),
                     [this] { emit bench_.step_changed(); });
    return true;
  }
  strip_->stop();
  int64_t steps = bench_.shown_steps();
  if (!bench_.has_project())
    set_empty(true, tr("Open a project to see %1.").arg(what));
  else if (bench_.loading_step())
    set_waiting(
        bench_.jobs, [](const Jobs::State& job) { return job.tag == "step"; },
        tr("%1 will be here in a moment.").arg(what), [this] { emit bench_.step_changed(); });
  else if (!bench_.shown_run() || steps < 1)
    set_empty(true, tr("Train, then pick a step: %1 will be here.").arg(what), bench_.training() ? "" : tr("Train"),
              [this] { bench_.train(); });
  else
    set_empty(true, tr("No step is loaded. Replay one to see %1.").arg(what),
              tr("Replay step %1").arg(QString::fromStdString(format_grouped(steps))),
              [this, steps] { bench_.select(Selection::step(steps, "empty")); });
  return false;
}

}  // namespace tenon::views
