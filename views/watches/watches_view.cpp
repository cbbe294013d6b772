#include "views/watches/watches_view.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/error.h"
#include "views/frame/ask_bar.h"
#include "views/frame/watch_line_view.h"
#include "views/shared/format.h"
#include "views/watches/watches_table.h"

namespace tenon::views {

WatchesView::WatchesView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  said_ = new ElidedLabel({}, bar);
  said_->setObjectName("watches.said");
  bar->add(said_, 1);
  bar->add_button("watches.edit", tr("Edit…"), tr("The watches of the next run, in Recipe"),
                  [this] { bench_.ask("view.recipe"); });
  box->addWidget(bar);
  list_ = new TableList(page);
  list_->setObjectName("watches.table");
  list_->setAccessibleName(tr("What the watches of the run saw"));
  list_->say_when_empty(
      tr("A watch looks at every step for what you name, such as max_abs(grad(*)) > 1e3, and marks, "
         "counts, or holds the run."));
  list_->on_select = [this](const Selection& s) {
    if (s.kind != Selection::Kind::none) bench_.select(s);
  };
  box->addWidget(list_, 1);
  box->addWidget(make_find(page));
  set_content(page);
  later_.setSingleShot(true);
  later_.setInterval(1000);
  connect(&later_, &QTimer::timeout, this, &WatchesView::read);
  connect(&bench, &Bench::project_changed, this, &WatchesView::read);
  connect(&bench, &Bench::run_changed, this, &WatchesView::read);
  connect(&bench, &Bench::watch_hits_changed, this, &WatchesView::follow);
  connect(&bench, &Bench::state_changed, this, &WatchesView::say_plan);
  set_empty(true, tr("Open a project to see what the watches of its runs saw."));
}

QWidget* WatchesView::make_find(QWidget* parent) {
  condition_ = new WatchLine(parent);
  condition_->setObjectName("watches.condition");
  condition_->setPlaceholderText("max_abs(grad(*)) > 10");
  condition_->setAccessibleName(tr("Condition to look for"));
  connect(condition_, &QLineEdit::textChanged, this, &WatchesView::say_plan);
  connect(condition_, &QLineEdit::returnPressed, this, &WatchesView::find);
  auto* bar = new AskBar("watches", tr("First step at which"), condition_, parent);
  halving_ = bar->add_button(
      "watches.halving", tr("By halves"),
      tr("Between checkpoints, by halves: quick, and right where a condition that holds goes on holding"));
  halving_->setCheckable(true);
  connect(halving_, &QToolButton::toggled, this, &WatchesView::say_plan);
  find_ =
      bar->add_button("watches.find", tr("Find"),
                      tr("Looks in the shown run, watched or not; steps are replayed bit for bit"), [this] { find(); });
  go_ = bar->add_button("watches.go", tr("Go to it"), tr("Every view follows to the step"),
                        [this] { bench_.select(Selection::step(found_, "watches")); });
  set_style(go_, "primary", "true");
  go_->hide();
  answer_ = bar->answer();
  return bar;
}

std::vector<Command> WatchesView::commands() {
  return {{.id = "watches.find",
           .title = tr_later("Find the first step of a condition…"),
           .menu = "Run",
           .icon = "step",
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 condition_->setFocus();
                 condition_->selectAll();
               },
           .enabled = [this] { return can_find(); }}};
}

void WatchesView::follow() {
  if (in_sight() && !later_.isActive()) later_.start();
}

void WatchesView::read() {
  std::vector<std::string> layers;
  for (const LayerSpec& l : bench_.contents().model.layers) layers.push_back(l.name);
  condition_->set_layers(std::move(layers));
  say_plan();
  if (!bench_.has_project()) return set_empty(true, tr("Open a project to see what the watches of its runs saw."));
  if (!bench_.shown())
    return set_empty(true,
                     tr("Nothing was trained yet. A watch looks at gradients, weights, activations or metrics while a "
                        "run trains, and marks, keeps or holds the step at which its condition begins to hold."),
                     tr("Add a watch"), [this] { bench_.ask("view.recipe"); });
  set_empty(false);
  if (!in_sight()) return;
  bench_.files.start(
      "watches", tr("Read what watches saw"),
      [project = bench_.project(), run = *bench_.shown()](const Jobs::Report&, const std::atomic<bool>&) {
        return projects::watch_summaries(*project, run);
      },
      [this, run = bench_.shown_run()](const Summaries& all) {
        if (run == bench_.shown_run()) show(all);
      },
      {}, true);
}

void WatchesView::show(const Summaries& all) {
  said_->set_text(all.empty()
                      ? tr("%1 has no watches: Recipe adds them to the next run, or to this one while it trains")
                            .arg(QString::fromStdString(bench_.shown() ? bench_.shown()->name : ""))
                      : QString::fromStdString(watches_text(all)));
  list_->set_table(watches_table(all));
}

/// What a search would look for now; empty where there is no run.
QString WatchesView::asked() const {
  if (!bench_.shown_run()) return {};
  return QString("%1\n%2 %3 %4")
      .arg(bench_.file())
      .arg(bench_.shown_run())
      .arg(halving_->isChecked())
      .arg(condition_->text().trimmed());
}

/// What the search would take, before it is begun; why it cannot.
void WatchesView::say_plan() {
  if (bench_.jobs.has("find condition") || (!told_of_.isEmpty() && asked() == told_of_)) return;
  told_of_.clear();
  QString text;
  bool bad = false, fits = false;
  if (const QString typed = condition_->text().trimmed(); !typed.isEmpty() && can_find()) try {
      const Watch w = parse_condition(typed.toStdString());
      std::vector<projects::CheckpointInfo> checkpoints;
      for (size_t i = 0; i < bench_.contents().runs.size(); ++i)
        if (bench_.contents().runs[i].id == bench_.shown_run()) checkpoints = bench_.contents().checkpoints[i];
      text = QString::fromStdString(
          plan_text(projects::plan_find(*bench_.shown(), checkpoints, w, halving_->isChecked())));
      fits = true;
    } catch (const Error& e) {
      text = QString::fromStdString(e.message() + (e.hint().empty() ? "" : "; " + e.hint()));
      bad = true;
    }
  answer_->set_text(text);
  set_style(answer_, "voice", bad ? "small-bad" : "small");
  find_->setEnabled(fits);
  go_->hide();
}

void WatchesView::find() {
  if (!find_->isEnabled() || bench_.jobs.has("find condition")) return;
  const bool halving = halving_->isChecked();
  told_of_.clear();
  bench_.jobs.start(
      "find condition", tr("Find the first step"),
      [project = bench_.project(), run = bench_.shown_run(), text = condition_->text().toStdString(), halving](
          const Jobs::Report& report, const std::atomic<bool>&) {
        return projects::find_first(*project, run, parse_condition(text), halving, report);
      },
      [this, run = bench_.shown_run(), project = bench_.project(), halving](const projects::FoundStep& found) {
        if (project == bench_.project() && run == bench_.shown_run()) told(found, halving);
      },
      [this](const QString& message, const QString& hint) {
        say_plan();
        bench_.fail(tr("The step could not be looked for"), message, hint);
      });
  find_->setEnabled(false);
  answer_->set_text(tr("Looking…"));
}

void WatchesView::told(const projects::FoundStep& found, bool bisected) {
  say_plan();
  find_->setEnabled(true);
  told_of_ = asked();
  found_ = found.found ? found.hit.step : 0;
  answer_->set_text(QString::fromStdString(found_text(found, bisected && found.replayed > 0)));
  set_style(answer_, "voice", found.found ? "news" : "small");
  if (!found.found) return;
  go_->setText(tr("Go to step %1").arg(QString::fromStdString(format_grouped(found_))));
  go_->show();
}

namespace {
const bool registered_watches_view = register_view<WatchesView>(
    {.id = "watches",
     .title = tr_later("Watches"),
     .icon = "check",
     .order = 67,
     .layouts = {"Debug"},
     .shows = nullptr,
     .help = {
         tr_later("What the watches of the shown run saw: the steps at which each held, the first of them with what "
                  "was seen there, and the share of the time of a step that looking takes. Below, the first step "
                  "of any condition, in a run that was watched or not."),
         tr_later("A row leads to the first step at which its watch held. Find says before what it has to replay; "
                  "By halves is quick where a condition that holds goes on holding."),
         tr_later("Up and Down choose a row. In the line of the condition Ctrl+Space lists what may stand there, "
                  "Enter looks for it.")}});
}  // namespace

}  // namespace tenon::views
