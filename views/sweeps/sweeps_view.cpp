#include "views/sweeps/sweeps_view.h"

#include <QComboBox>
#include <QKeyEvent>
#include <QLineEdit>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QSplitter>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <utility>

#include "projects/sweep.h"
#include "views/frame/table_list.h"
#include "views/shared/language.h"

namespace tenon::views {

SweepsView::SweepsView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<SweepsModel>()) {
  auto* split = new QSplitter(Qt::Horizontal, this);
  auto* scroll = new QScrollArea(split);
  scroll->setObjectName("sweeps.form");
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  form_ = new SweepForm(scroll);
  form_->on_begin = [this](const std::string& name, const SweepDraft& draft) {
    chosen_ = 0;
    bench_.begin_sweep(name, draft.keys(), draft.attrs());
  };
  scroll->setWidget(form_);
  scroll->setMinimumWidth(120);
  split->addWidget(scroll);
  split->addWidget(build_results());
  split->setStretchFactor(1, 1);
  split->setSizes({360, 900});
  set_content(split);
  later_.setSingleShot(true);
  later_.setInterval(250);  // a trial that trains changes its row ten times a second: the table follows in peace
  connect(&later_, &QTimer::timeout, this, &SweepsView::fill);
  connect(&bench, &Bench::project_changed, this, &SweepsView::refresh);
  connect(&bench, &Bench::recipe_changed, this, [this] {
    if (bench_.has_project()) form_->set_recipe(bench_.recipe());
  });
  connect(&bench, &Bench::state_changed, this, &SweepsView::refresh_state);
  connect(&bench, &Bench::status_changed, this, [this] {
    model_.set_statuses(bench_.statuses());
    if (!later_.isActive()) later_.start();
  });
  connect(&bench, &Bench::selection_changed, this, [this](const Selection& s) {
    follow(s);
    list_->mark(s);
  });
  refresh();
}

QWidget* SweepsView::build_results() {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  which_ = new QComboBox(bar);
  which_->setObjectName("sweeps.which");
  which_->setAccessibleName(tr("Sweep that is shown"));
  which_->setMinimumWidth(120);
  connect(which_, &QComboBox::activated, this, [this](int i) {
    chosen_ = which_->itemData(i).toLongLong();
    refresh();
  });
  bar->add(which_);
  name_ = new QLineEdit(bar);
  name_->setObjectName("sweeps.name");
  name_->setAccessibleName(tr("New name of the sweep"));
  name_->setMinimumWidth(160);
  name_->hide();
  name_->installEventFilter(this);
  connect(name_, &QLineEdit::editingFinished, this, [this] { end_rename(true); });
  bar->add(name_);
  said_ = new ElidedLabel({}, bar);
  said_->setObjectName("sweeps.said");
  set_style(said_, "voice", "small");
  bar->add(said_, 1);
  go_ = new QToolButton(bar);
  go_->setObjectName("sweeps.go");
  connect(go_, &QToolButton::clicked, this, &SweepsView::toggle);
  bar->add(go_);
  box->addWidget(bar);
  results_ = new QStackedWidget(page);
  none_ = new EmptyState(results_);
  none_->set(
      tr("No sweep was begun yet. Say on the left which keys to search and start it: every trial will be a row "
         "here, an ordinary run of the project."));
  results_->addWidget(none_);
  auto* split = new QSplitter(Qt::Vertical, results_);
  split->addWidget(make_canvas(model_));
  list_ = new TableList(split);
  list_->setObjectName("sweeps.table");
  list_->setAccessibleName(tr("Trials of the sweep"));
  list_->row_commands = {"run.sweep_resume", "run.sweep_rename", "run.sweep_delete"};
  list_->on_select = [this](const Selection& s) { bench_.select(s); };
  split->addWidget(list_);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  split->setSizes({460, 260});
  results_->addWidget(split);
  box->addWidget(results_, 1);
  return page;
}

bool SweepsView::free() const {
  return bench_.has_project() && !bench_.project()->read_only() && !bench_.training() && !bench_.sweeping() &&
         !bench_.files.has("train");
}

bool SweepsView::edits() const {
  return bench_.has_project() && !bench_.project()->read_only() && bench_.contents().sweep(model_.id());
}

void SweepsView::begin_rename() {
  if (!edits()) return;
  bench_.ask(QString("view.") + def().id);
  renamed_ = model_.id();
  name_->setText(QString::fromStdString(model_.sweep()->name));
  which_->hide();
  name_->show();
  name_->setFocus();
  name_->selectAll();
}

void SweepsView::end_rename(bool keeps) {
  const int64_t sweep = std::exchange(renamed_, 0);
  if (!sweep) return;
  name_->hide();
  which_->show();
  const std::string name = name_->text().trimmed().toStdString();
  if (keeps && edits() && sweep == model_.id() && !name.empty()) bench_.rename_sweep(sweep, name);
}

bool SweepsView::eventFilter(QObject* of, QEvent* e) {
  if (of == name_ && e->type() == QEvent::KeyPress && static_cast<QKeyEvent*>(e)->key() == Qt::Key_Escape) {
    end_rename(false);
    return true;
  }
  return View::eventFilter(of, e);
}

void SweepsView::toggle() {
  if (bench_.sweeping())
    bench_.stop_sweep();
  else if (free() && !model_.empty() && !model_.is_over())
    bench_.resume_sweep(model_.id());
}

std::vector<Command> SweepsView::commands() {
  return {{.id = "run.sweep",
           .title = tr_later("Sweep over the recipe…"),
           .menu = "Run",
           .icon = "sweep",
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 form_->focus_keys();
               },
           .enabled = [this] { return bench_.has_project(); },
           .section = run_menu::sweep},
          {.id = "run.sweep_resume",
           .title = tr_later("Resume the sweep"),
           .menu = "Run",
           .run = [this] { toggle(); },
           .enabled = [this] { return free() && model_.plan() && !model_.is_over(); },
           .section = run_menu::sweep},
          {.id = "run.sweep_stop",
           .title = tr_later("Stop the sweep"),
           .menu = "Run",
           .run = [this] { bench_.stop_sweep(); },
           .enabled = [this] { return bench_.sweeping() != 0; },
           .section = run_menu::sweep},
          {.id = "run.sweep_rename",
           .title = tr_later("Rename the sweep…"),
           .menu = "Run",
           .run = [this] { begin_rename(); },
           .enabled = [this] { return edits(); },
           .section = run_menu::sweep},
          {.id = "run.sweep_delete",
           .title = tr_later("Delete the sweep"),
           .menu = "Run",
           .run = [this] { bench_.delete_sweep(model_.id()); },
           .enabled = [this] { return edits() && bench_.sweeping() != model_.id(); },
           .text =
               [this] {
                 return edits() ? tr("Delete %1").arg(QString::fromStdString(model_.sweep()->name))
                                : tr("Delete the sweep");
               },
           .section = run_menu::sweep}};
}

/// A run that was chosen elsewhere brings its sweep here.
void SweepsView::follow(const Selection& s) {
  if (s.kind != Selection::Kind::run || s.source == "sweeps" || bench_.sweeping()) return;
  for (const auto& sweep : bench_.contents().sweeps)
    for (const auto& t : sweep.trials)
      if (t.run == s.id && sweep.id != model_.id()) {
        chosen_ = sweep.id;
        return refresh();
      }
}

void SweepsView::refresh() {
  if (!bench_.has_project()) {
    end_rename(false);
    model_.set_sweep(nullptr, {});
    of_.reset();
    return set_empty(true, tr("Open a project to search for the best values of its recipe."));
  }
  set_empty(false);
  if (of_.lock() != bench_.project()) {
    end_rename(false);
    of_ = bench_.project();
    chosen_ = 0;
    form_->reset(bench_.recipe());
  }
  const auto& sweeps = bench_.contents().sweeps;
  const projects::SweepInfo* shown = bench_.contents().sweep(bench_.sweeping() ? bench_.sweeping() : chosen_);
  if (!shown && !sweeps.empty()) shown = &sweeps.back();
  if (!shown || shown->id != renamed_) end_rename(false);
  {
    const QSignalBlocker quiet(which_);
    which_->clear();
    for (auto s = sweeps.rbegin(); s != sweeps.rend(); ++s)
      which_->addItem(QString::fromStdString(s->name), qlonglong(s->id));
    which_->setCurrentIndex(shown ? which_->findData(qlonglong(shown->id)) : -1);
    which_->setEnabled(which_->count() > 0 && !bench_.sweeping());
    which_->setPlaceholderText(tr("no sweep yet"));
  }
  model_.set_statuses(bench_.statuses());
  model_.set_sweep(shown, bench_.contents().runs);
  model_.set_selection(bench_.bus.current());
  results_->setCurrentIndex(shown ? 1 : 0);
  fill();
  refresh_state();
  read_importance();
}

void SweepsView::refresh_state() {
  if (!bench_.has_project()) return;
  const bool sweeps = bench_.sweeping() != 0, read_only = bench_.project()->read_only();
  form_->set_ready(free(), read_only ? tr("This project is read-only: trials could not be kept.")
                           : sweeps  ? tr("A sweep is at work: stop it to start another.")
                                     : tr("A run trains: a sweep can start when it has ended."));
  form_->setEnabled(!read_only);
  which_->setEnabled(which_->count() > 0 && !sweeps);
  const bool resumes = model_.plan() && !model_.is_over();
  go_->setVisible(sweeps || resumes);
  go_->setText(sweeps ? tr("Stop the sweep") : tr("Resume the sweep"));
  go_->setEnabled(sweeps || free());
}

void SweepsView::fill() {
  said_->set_text(model_.empty() ? QString() : QString::fromStdString(model_.said()));
  set_style(said_, "voice", model_.fault().empty() ? "small" : "bad");
  list_->set_table(model_.table());
  list_->mark(bench_.bus.current());
}

/// A forest over hundreds of trials takes longer than a frame.
void SweepsView::read_importance() {
  if (!model_.plan()) return;
  bench_.files.start(
      "importance", tr("Importance of keys"),
      [sweep = *model_.sweep(), plan = *model_.plan()](const Jobs::Report&, const std::atomic<bool>&) {
        return std::pair(sweep.id, projects::importance_of(sweep, plan));
      },
      [this, project = bench_.project()](std::pair<int64_t, projects::Importance> found) {
        if (project == bench_.project() && found.first == model_.id()) model_.set_importance(std::move(found.second));
      },
      {}, true);
}

namespace {
const bool registered_sweeps_view = register_view<SweepsView, SweepsModel>({
    .id = "sweeps",
    .title = tr_later("Sweeps"),
    .icon = "sweep",
    .order = 32,
    .layouts = {"Train"},
    .link = tr_later("Sweeps"),
    .shows =
        [](const Selection& s, const Bench& bench) {
          if (s.kind != Selection::Kind::run) return false;
          for (const auto& sweep : bench.contents().sweeps)
            for (const auto& t : sweep.trials)
              if (t.run == s.id) return true;
          return false;
        },
    .help =
        {tr_later("Searches over keys of the recipe: which are tried, every trial with what it came to, the best so "
                  "far, and "
                  "how much each key matters."),
         tr_later(
             "The form says what is searched and begins it; a click on a trial shows its run in every view; a line of "
             "the picture is a trial."),
         tr_later("Up and Down choose a trial, Ctrl+C copies its row.")},
});
}  // namespace

}  // namespace tenon::views
