#include "views/plan/plan_view.h"

#include <QLabel>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>

#include "projects/run_plan.h"
#include "views/frame/table_list.h"
#include "views/frame/wait_strip.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr const char* kPlanTag = "plan a step";
constexpr qsizetype kMostEvents = 6;
}  // namespace

PlanView::PlanView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<PlanModel>()) {
  build();
  model_.on_choose = [this] { follow(); };
  connect(&bench, &Bench::project_changed, this, &PlanView::refresh);
  connect(&bench, &Bench::recipe_changed, this, &PlanView::refresh);
  connect(&bench, &Bench::run_changed, this, &PlanView::refresh);
  connect(&bench, &Bench::step_changed, this, &PlanView::refresh);
  connect(&bench, &Bench::status_changed, this, [this] {
    if (!model_.planned() || !of_.same(wanted())) refresh();
  });
  connect(&bench, &Bench::selection_changed, this, &PlanView::follow);
  connect(&bench, &Bench::run_events_changed, this, &PlanView::show_events);
  // Cancelled among the jobs: nobody hands its result over.
  connect(&bench.jobs, &Jobs::changed, this, [this] {
    if (!planning_ || bench_.jobs.has(kPlanTag)) return;
    planning_ = false;
    cancelled_ = true;
    refresh();
  });
  refresh();
  show_events();
}

PlanView::~PlanView() { model_.on_choose = nullptr; }

void PlanView::build() {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  told_ = new ElidedLabel({}, bar);
  told_->setObjectName("plan.told");
  set_style(told_, "voice", "secondary");
  bar->add(told_, 1);
  step_ = bar->add_button(
      "plan.step", tr("Load its step"),
      tr("Replays a step of the run: a kernel then selects its op in every view, and not its layer alone"),
      [this] { bench_.ask("run.replay"); });
  bar->add_button("plan.peak", tr("Peak"), tr("The kernel beside which most is alive (P)"),
                  [this] { model_.go_to_peak(); });
  bar->add_button("plan.fit", tr("Fit"), tr("Show the whole step and the whole arena (F, or double click)"),
                  [this] { model_.fit(); });
  again_ = bar->add_button("plan.again", tr("Plan again"),
                           tr("Does three steps of the run again as compile does them; nothing of it is kept"),
                           [this] { plan(); });
  box->addWidget(bar);
  headline_ = new QLabel(page);
  headline_->setObjectName("plan.headline");
  headline_->setWordWrap(true);
  headline_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  headline_->setContentsMargins(12, 6, 12, 4);
  box->addWidget(headline_);
  events_ = new QLabel(page);
  events_->setObjectName("plan.events");
  events_->setWordWrap(true);
  events_->setContentsMargins(12, 0, 12, 6);
  events_->setTextFormat(Qt::RichText);
  events_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  events_->setTextInteractionFlags(Qt::TextBrowserInteraction);
  set_style(events_, "voice", "secondary");
  connect(events_, &QLabel::linkActivated, this,
          [this](const QString& step) { bench_.select(Selection::step(step.toLongLong(), "plan")); });
  box->addWidget(events_);
  auto* split = new QSplitter(Qt::Vertical, page);
  split->setChildrenCollapsible(false);
  split->addWidget(make_canvas(model_));
  list_ = new TableList(split);
  list_->setObjectName("plan.table");
  list_->setAccessibleName(tr("%1 as a table").arg(title()));
  list_->on_select = [this](const Selection& row) { model_.choose_row(row); };
  split->addWidget(list_);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  split->setSizes({360, 220});
  box->addWidget(split, 1);
  set_content(page);
}

std::vector<Command> PlanView::commands() {
  return {{.id = "plan.show",
           .title = tr_later("Show what a step comes to as a plan"),
           .menu = {},
           .run =
               [this] {
                 bench_.ask("view.plan");
                 if (!model_.plan()) plan();
               },
           .enabled = [this] { return can_plan(); }},
          {.id = "plan.again",
           .title = tr_later("Plan a step of the shown run again"),
           .menu = {},
           .run =
               [this] {
                 bench_.ask("view.plan");
                 plan();
               },
           .enabled = [this] { return can_plan() && !planning_ && model_.plan(); }}};
}

bool PlanView::can_plan() const {
  return bench_.has_project() && (bench_.shown_run() ? bench_.shown_steps() > 0 : bench_.contents().runs.empty());
}

QString PlanView::run_name() const {
  const auto* r = bench_.shown();
  return QString::fromStdString(r ? r->name : bench_.status().name);
}

PlanView::Of PlanView::wanted() const {
  Of of{bench_.project(), bench_.shown_run(), {}, {}};
  if (of.run) return of;
  of.model = bench_.contents().model;
  of.recipe = bench_.contents().recipe;
  return of;
}

void PlanView::drop() {
  if (planning_) {
    planning_ = false;  // first: whoever is told of the cancelled job comes back here
    bench_.jobs.cancel_tag(kPlanTag);
  }
  of_ = {};
  fault_.clear();
  cancelled_ = false;
  if (model_.plan()) model_.set_plan(nullptr);
}

void PlanView::refresh() {
  const bool any = planning_ || cancelled_ || model_.plan() || !fault_.isEmpty();
  if (any && (!bench_.has_project() || !of_.same(wanted()))) drop();
  again_->setEnabled(can_plan() && !planning_);
  step_->setVisible(!bench_.links() && bench_.shown_run());
  step_->setEnabled(!bench_.loading_step());
  if (!model_.planned()) return show_why_empty();
  set_empty(false);
  if (planning_)
    strip_->wait_for(bench_.jobs, kPlanTag, tr("the plan of before"), {});
  else
    strip_->stop();
  fill();
}

void PlanView::show_why_empty() {
  strip_->stop();
  const auto plan_now = [this] { plan(); };
  if (!bench_.has_project()) return set_empty(true, tr("Open a project to see what a step of it comes to as a plan."));
  if (planning_)
    return set_waiting(
        bench_.jobs, [](const Jobs::State& job) { return job.tag == kPlanTag; },
        tr("steps are done again and traced, as compile does it."));
  const QStringList seen = events(false);
  const QString became = seen.isEmpty() ? QString() : "\n\n" + tr("In this run:") + "\n" + seen.join("\n");
  if (!fault_.isEmpty()) return set_empty(true, fault_ + became, can_plan() ? tr("Try again") : QString(), plan_now);
  if (model_.plan())
    return set_empty(true, QString::fromStdString(model_.headline()) + became,
                     can_plan() ? tr("Plan again") : QString(), plan_now);
  if (!bench_.shown_run() && !bench_.contents().runs.empty())
    return set_empty(true, tr("Pick a run: the plan of its steps will be here."));
  if (!can_plan())
    return set_empty(
        true, tr("%1 has not done a step yet: once it has, one of its steps can be planned here.").arg(run_name()));
  const QString shows = tr(
      "Under compile = true the forward and backward passes of a step run from a plan: which kernels, in which order, "
      "and where their memory lies will be here.");
  const bool fresh = !bench_.shown_run();
  QString how;
  if (cancelled_)
    how = tr("Planning was cancelled.");
  else if (fresh)
    how = tr("There is no run yet: a step of a fresh start tells the same.");
  else if (bench_.trains(bench_.shown_run()))
    how = tr("%1 trains: it goes on meanwhile, and the steps that are in its file are done again beside it.")
              .arg(run_name());
  else
    how = tr("The last steps of %1 are done again for it; nothing of them is kept.").arg(run_name());
  set_empty(true, shows + " " + how + became, fresh ? tr("Plan a step") : tr("Plan a step of this run"), plan_now);
}

void PlanView::fill() {
  list_->set_table(model_.table());
  headline_->setText(QString::fromStdString(model_.headline()));
  follow();
}

QStringList PlanView::events(bool links) const {
  QStringList lines;
  for (const projects::RunEvent& e : bench_.run_events()) {
    if (e.kind != "plan" && e.kind != "op by op") continue;
    const QString step = tr("step %1").arg(QString::fromStdString(format_grouped(e.step)));
    const QString text = QString::fromStdString(e.text);
    lines += links ? QString("<a href=\"%1\">%2</a>: %3").arg(e.step).arg(step.toHtmlEscaped(), text.toHtmlEscaped())
                   : step + ": " + text;
  }
  if (const qsizetype earlier = lines.size() - kMostEvents; earlier > 0) {
    const QString more = tr("Earlier ones (%1): the table run_events of Query").arg(earlier);
    lines = QStringList(links ? more.toHtmlEscaped() : more) + lines.mid(earlier);
  }
  return lines;
}

void PlanView::show_events() {
  events_->setText(events(true).join("<br>"));
  events_->setVisible(!events_->text().isEmpty());
  if (!model_.planned()) show_why_empty();
}

void PlanView::follow() {
  if (!model_.planned()) return;
  QString told;
  if (model_.chosen() >= 0) {
    const auto kernel = static_cast<size_t>(model_.chosen());
    list_->mark(PlanModel::row_of(kernel));
    told = QString::fromStdString(model_.told_of(kernel)).replace('\n', " · ");
  } else {
    const tracing::SeenPlan& p = *model_.plan();
    const QString steps = tr("steps %1 to %2")
                              .arg(QString::fromStdString(format_grouped(p.first_step)),
                                   QString::fromStdString(format_grouped(p.last_step)));
    told = (bench_.shown_run() ? run_name() : tr("Fresh start")) + " · " + steps;
  }
  told_->set_text(told);
}

void PlanView::plan() {
  if (!can_plan() || planning_) return;
  of_ = wanted();
  fault_.clear();
  cancelled_ = false;
  planning_ = true;
  bench_.jobs.start(
      kPlanTag, bench_.shown_run() ? tr("Plan a step of %1").arg(run_name()) : tr("Plan a step"),
      [project = bench_.project(), run = bench_.shown_run()](const Jobs::Report& report, const std::atomic<bool>&) {
        return std::make_shared<const tracing::SeenPlan>(projects::plan_of_run(*project, run, report));
      },
      [this, of = of_](PlanModel::Plan p) {
        if (!planning_ || !of.same(of_)) return;
        planning_ = false;
        model_.set_plan(std::move(p));
        refresh();
      },
      [this, of = of_](const QString& message, const QString& hint) {
        if (!planning_ || !of.same(of_)) return;
        planning_ = false;
        fault_ = message + (hint.isEmpty() ? "" : "\n" + hint);
        if (model_.planned()) bench_.fail(tr("The step was not planned again"), message, hint);
        refresh();
      });
  refresh();
}

namespace {
const bool registered_plan_view = register_view<PlanView, PlanModel>(
    {.id = "plan",
     .title = tr_later("Plan"),
     .icon = "memory",
     .order = 44,
     .places = {{"Profile", Spot::below, 5}},
     .layouts = {"Profile"},
     .fill = "plan.show",
     .link = tr_later("Plan"),
     .shows =
         [](const Selection& s, const Bench& bench) {
           const auto& model = bench.model<PlanModel>();
           return model.planned() && bench.links() && bench.links().op_of(s) != 0;
         },
     .help = {tr_later("What a step comes to under compile = true. Along are the kernels of forward and backward in "
                       "the order in which they run, up is the arena: the memory that the values of a step share. A "
                       "rectangle is a value, from the kernel that computes it to the last that needs it, in the "
                       "colour of the phase that made it. The dashed line is the peak: what lies across it is alive "
                       "at once. Ops that only look at memory in another way cost nothing and are not here."),
              tr_later("A click on a rectangle, on a kernel in the row above it or on a row of the table selects the "
                       "op in every view; before a step is loaded, its layer. The wheel zooms along the kernels, with "
                       "Ctrl along the addresses; dragging moves both, and a double click shows all."),
              tr_later("Left and Right, or Up and Down, go through the kernels; Home and End to the first and the "
                       "last, P to the one at the peak. W A S D zoom and pan along the kernels, with Shift along the "
                       "addresses, F shows all.")}});
}  // namespace

}  // namespace tenon::views
