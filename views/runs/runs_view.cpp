#include "views/runs/runs_view.h"

#include <QComboBox>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/error.h"
#include "views/frame/table_list.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
QComboBox* add_field_list(QWidget* parent, const char* name, const QString& title) {
  auto* list = new QComboBox(parent);
  list->setObjectName(name);
  list->setAccessibleName(title);
  list->setToolTip(title);
  list->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  list->setMinimumContentsLength(8);
  return list;
}

/// The fields as a list's choices, `first` before `then`; what was chosen stays chosen while it is there.
void offer(QComboBox* list, const std::vector<RunField>& first, const std::vector<RunField>& then,
           const QString& nothing) {
  QStringList texts;
  if (!nothing.isEmpty()) texts << nothing;
  for (const auto& fields : {first, then})
    for (const RunField& f : fields) texts << QString::fromStdString(f.text());
  QStringList old;
  for (int i = 0; i < list->count(); ++i) old << list->itemText(i);
  if (texts == old) return;
  const QSignalBlocker quiet(list);
  const QString was = list->currentText();
  list->clear();
  for (const QString& t : texts) list->addItem(t, t == nothing ? QVariant() : QVariant(t));
  list->setCurrentIndex(std::max(0, list->findText(was)));
}

}  // namespace

RunsView::RunsView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  filter_ = new QLineEdit(bar);
  filter_->setObjectName("runs.filter");
  filter_->setAccessibleName(tr("Filter of runs"));
  filter_->setPlaceholderText(tr("Filter: lr > 0.001 and best.accuracy >= 0.9 and name ~ cnn"));
  filter_->setClearButtonEnabled(true);
  filter_->setMaximumWidth(460);
  bar->add(filter_, 2);
  found_ = new ElidedLabel({}, bar);
  found_->setObjectName("runs.found");
  bar->add(found_, 1);
  group_ = add_field_list(bar, "runs.group", tr("Group runs by"));
  connect(group_, &QComboBox::activated, this, [this] { fill(); });
  bar->add(group_);
  auto* chart = new QToolButton(bar);
  chart->setObjectName("runs.chart");
  chart->setText(tr("Chart"));
  chart->setCheckable(true);
  chart->setToolTip(tr("Every run a point: one thing that is known of the runs against another"));
  bar->add(chart);
  auto* clear = new QToolButton(bar);
  clear->setText(tr("Compare none"));
  clear->setToolTip(tr("Takes the picked runs' curves out of Training"));
  clear->setEnabled(false);
  connect(clear, &QToolButton::clicked, this, [this] { bench_.pick({}); });
  connect(&bench, &Bench::picked_changed, clear, [this, clear] { clear->setEnabled(!bench_.picked().empty()); });
  bar->add(clear);
  box->addWidget(bar);
  auto* split = new QSplitter(Qt::Vertical, page);
  list_ = new TableList(split);
  list_->setObjectName("runs.table");
  list_->setAccessibleName(tr("Runs"));
  list_->on_select = [this](const Selection& s) { bench_.select(s); };
  list_->on_pick = [this](const Selection& s, bool on) {
    std::vector<int64_t> runs = bench_.picked();
    std::erase(runs, s.id);
    if (on) runs.push_back(s.id);
    bench_.pick(std::move(runs));
  };
  list_->row_commands = {"run.go_on",    "run.continue", "run.branch", "run.compare",
                         "run.baseline", "run.describe", "run.delete"};
  split->addWidget(list_);
  split->addWidget(chart_page_ = build_chart());
  chart_page_->hide();
  split->setSizes({260, 300});
  box->addWidget(split, 1);
  connect(chart, &QToolButton::toggled, this, [this](bool on) {
    chart_page_->setVisible(on);
    fill_chart();
  });
  set_content(page);
  later_.setSingleShot(true);
  later_.setInterval(250);  // a run that trains changes its row ten times a second: the table follows in peace
  connect(&later_, &QTimer::timeout, this, &RunsView::fill);
  connect(filter_, &QLineEdit::textChanged, this, [this](const QString& text) {
    model_.set_filter(text.toStdString());
    fill();
  });
  connect(&bench, &Bench::project_changed, this, &RunsView::refresh);
  connect(&bench, &Bench::run_changed, this, &RunsView::refresh);
  connect(&bench, &Bench::status_changed, this, [this] {
    for (const auto& s : bench_.statuses()) model_.set_status(s);
    if (!later_.isActive()) later_.start();
  });
  connect(&bench, &Bench::picked_changed, this, &RunsView::fill);
  connect(&bench, &Bench::baseline_changed, this, &RunsView::fill);
  connect(&bench, &Bench::selection_changed, this, [this](const Selection& s) {
    list_->mark(s);
    chart_.set_selected(s.kind == Selection::Kind::run ? s.id : bench_.shown_run());
  });
  refresh();
}

/// Of the words of a list; nothing where it stands on "nothing", or its field is gone.
std::optional<RunField> RunsView::chosen(const QComboBox* list) const {
  const QString words = list->currentData().toString();
  if (words.isEmpty()) return {};
  try {
    return field_named(model_.fields(), words.toStdString());
  } catch (const Error&) {
    return {};
  }
}

QWidget* RunsView::build_chart() {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  up_ = add_field_list(bar, "runs.up", tr("Up the chart"));
  bar->add(up_);
  bar->add_label(tr("against"));
  along_ = add_field_list(bar, "runs.along", tr("Along the chart"));
  bar->add(along_);
  bar->add_stretch();
  for (QComboBox* list : {up_, along_}) connect(list, &QComboBox::activated, this, [this] { fill_chart(); });
  connect(along_, &QComboBox::activated, this, [this] { along_chosen_ = true; });
  all_keys_ = new QToolButton(bar);
  all_keys_->setObjectName("runs.all_keys");
  all_keys_->setText(tr("All keys"));
  all_keys_->setCheckable(true);
  all_keys_->setToolTip(tr("Every run a line through all keys in which the runs differ, to what came of it"));
  connect(all_keys_, &QToolButton::toggled, this, [this](bool on) {
    along_->setEnabled(!on);
    fill_chart();
  });
  bar->add(all_keys_);
  box->addWidget(bar);
  SceneCanvas* canvas = make_canvas(chart_);
  canvas->setMinimumHeight(120);
  box->addWidget(canvas, 1);
  chart_.on_select = [this](const Selection& s) { bench_.select(s); };
  return page;
}

std::vector<Command> RunsView::commands() {
  return {{.id = "run.compare",
           .title = tr_later("Compare this run's curves"),
           .menu = "Run",
           .run =
               [this] {
                 std::vector<int64_t> runs = bench_.picked();
                 if (std::erase(runs, bench_.shown_run()) == 0) runs.push_back(bench_.shown_run());
                 bench_.pick(std::move(runs));
               },
           .enabled = [this] { return bench_.shown_run() != 0; },
           .checked =
               [this] {
                 const auto& runs = bench_.picked();
                 return std::find(runs.begin(), runs.end(), bench_.shown_run()) != runs.end();
               },
           .section = run_menu::curves},
          {.id = "run.delete_ticked",
           .title = tr_later("Delete the ticked runs"),
           .menu = "Run",
           .run = [this] { bench_.delete_runs(bench_.picked()); },
           .enabled = [this] { return may_write() && !bench_.picked().empty(); },
           .text =
               [this] {
                 const size_t n = bench_.picked().size();
                 return n == 1 ? tr("Delete the ticked run") : tr("Delete the %1 ticked runs").arg(n);
               },
           .section = run_menu::run},
          {.id = "run.delete_listed",
           .title = tr_later("Delete the runs that the filter lists"),
           .menu = "Run",
           .run = [this] { bench_.delete_runs(listed()); },
           .enabled = [this] { return may_write() && !listed().empty(); },
           .text =
               [this] {
                 const size_t n = listed().size();
                 return n == 1 ? tr("Delete the run that the filter lists")
                               : tr("Delete the %1 runs that the filter lists").arg(n);
               },
           .section = run_menu::run},
          {.id = "run.filter",
           .title = tr_later("Filter runs…"),
           .menu = "Run",
           .icon = "search",
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 filter_->setFocus();
               },
           .section = run_menu::curves}};
}

bool RunsView::may_write() const { return bench_.has_project() && !bench_.project()->read_only(); }

std::vector<int64_t> RunsView::listed() const {
  std::vector<int64_t> runs;
  if (filter_->text().trimmed().isEmpty() || !model_.why().empty()) return runs;
  for (const auto& row : model_.shown()) runs.push_back(row->info.id);
  return runs;
}

void RunsView::refresh() {
  if (!bench_.has_project()) {
    model_.set_rows({});
    return set_empty(true, tr("Open a project to see its runs beside each other."));
  }
  if (bench_.contents().runs.empty()) {
    model_.set_rows({});
    return set_empty(
        true, tr("Nothing was trained yet. Every run will be a row here, with what it was told and its results."),
        bench_.training() ? QString() : tr("Train"), [this] { bench_.train(); });
  }
  set_empty(false);
  read();
}

/// What came of runs is read away from the UI thread; of those that did nothing since, it is known.
void RunsView::read() {
  auto project = bench_.project();
  RunRows rows = take_over(bench_.contents().runs, model_.rows());
  std::vector<projects::RunInfo> missing;
  for (size_t i = 0; i < rows.size(); ++i)
    if (!rows[i]) missing.push_back(bench_.contents().runs[i]);
  bench_.files.start(
      "runs", tr("Read the runs"),
      [project, missing = std::move(missing)](const Jobs::Report&, const std::atomic<bool>&) mutable {
        return read_runs(*project, std::move(missing));
      },
      [this, project, rows = std::move(rows)](RunRows fresh) mutable {
        if (project != bench_.project()) return;  // another one was opened meanwhile
        auto next = fresh.begin();
        for (auto& row : rows)
          if (!row) row = std::move(*next++);
        model_.set_rows(std::move(rows));
        offer_fields();
        fill();
      },
      {}, true);
}

void RunsView::fill() {
  model_.set_group(chosen(group_));
  model_.set_picked(bench_.picked());
  model_.set_baseline(bench_.baseline());
  list_->set_table(model_.table());
  list_->mark(bench_.bus.current());
  set_style(filter_, "bad", model_.why().empty() ? "false" : "true");
  fill_chart();
  const size_t rows = list_->table().rows.size(), all = model_.rows().size();
  const size_t shown =
      model_.group() || bench_.baseline() ? model_.shown().size() : rows;  // the baseline always stands
  const auto said = [&]() -> QString {
    if (!model_.why().empty()) return QString::fromStdString(model_.why());
    if (model_.group())
      return rows == 1 ? tr("%1 of %2 runs in 1 group").arg(shown).arg(all)
                       : tr("%1 of %2 runs in %3 groups").arg(shown).arg(all).arg(rows);
    if (shown != all) return tr("%1 of %2 runs").arg(shown).arg(all);
    return (all == 1 ? tr("1 run") : tr("%1 runs").arg(all)) + " · " +
           tr("tick runs to compare their curves in Training");
  };
  set_style(found_, "voice", model_.why().empty() ? "small" : "bad");
  found_->set_text(said());
}

/// The fields that the lists offer, of all runs.
void RunsView::offer_fields() {
  const std::vector<RunField> told = told_fields(model_.rows()), came = result_fields(model_.rows());
  offer(group_, told, {}, tr("Every run a row"));
  offer(along_, told, came, {});
  // Until someone chooses: runs that come later differ in other keys than the first ones, which differ in none.
  if (const auto main = main_field(model_.rows()); main && !along_chosen_)
    along_->setCurrentIndex(along_->findText(QString::fromStdString(main->text())));
  offer(up_, came, told, {});
}

void RunsView::fill_chart() {
  if (!chart_page_->isVisibleTo(this)) return;
  const auto x = chosen(along_), y = chosen(up_);
  if (!x || !y) return;
  constexpr size_t kMostAxes = 9;  // more have no room for their names
  std::vector<RunField> axes;
  if (all_keys_->isChecked()) axes = varied_fields(model_.rows());
  if (axes.size() > kMostAxes) axes.resize(kMostAxes);
  chart_.set_axes(axes);
  chart_.set_fields(*x, *y);
  chart_.set_group(model_.group());
  chart_.set_picked(bench_.picked());
  chart_.set_selected(bench_.shown_run());
  chart_.set_rows(model_.shown());
}

namespace {
const bool registered_runs_view = register_view<RunsView>(
    {.id = "runs",
     .title = tr_later("Runs"),
     .icon = "table",
     .order = 30,
     .layouts = {"Build", "Train"},
     .link = tr_later("Runs"),
     .shows = [](const Selection& s,
                 const Bench& bench) { return s.kind == Selection::Kind::run && bench.contents().run(s.id); },
     .help = {
         tr_later(
             "Every run of the project: what it was told where the runs differ, and the last and best of its metrics."),
         tr_later(
             "A click shows a run in every view, its box compares its curves in Training, a click on a column's head "
             "sorts. "
             "The field takes words such as lr > 0.001 and best.accuracy >= 0.9."),
         tr_later("Up and Down choose a run, Space ticks it, Ctrl+C copies its row.")}});
}  // namespace

}  // namespace tenon::views
