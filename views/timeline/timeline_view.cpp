#include "views/timeline/timeline_view.h"

#include <QComboBox>
#include <QLineEdit>
#include <QShortcut>
#include <QSplitter>
#include <QTabWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include "tracing/record/step_record.h"
#include "views/frame/filter_bar.h"
#include "views/shared/format.h"

namespace tenon::views {

TimelineView::TimelineView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<TimelineModel>()) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  documents_ = new QComboBox(bar);
  documents_->setObjectName("timeline.documents");
  documents_->setAccessibleName("What the timeline shows");
  documents_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  connect(documents_, &QComboBox::activated, this, [this](int i) {
    const int id = documents_->itemData(i).toInt();
    const auto& record = bench_.links().record();
    if (id != Document::kProject)
      bench_.select(Selection::of_document(id, "timeline"));
    else if (record)
      bench_.select(Selection::step(record->step, "timeline"));
    else if (bench_.shown_run())
      bench_.select(Selection::run(bench_.shown_run(), "timeline"));
    refresh_documents();
  });
  bar->add(documents_);
  search_ = new QLineEdit(bar);
  search_->setPlaceholderText("Find ops by name, module or attribute");
  search_->setClearButtonEnabled(true);
  search_->setMinimumWidth(180);
  search_->setMaximumWidth(300);
  search_->setObjectName("timeline.search");
  found_ = new QLabel(bar);
  set_style(found_, "voice", "small");
  bar->add(search_, 1);
  bar->add(found_);
  bar->add(new FilterBar(bench, FilterBar::Shows::all_but_name, bar));
  bar->add_stretch();
  auto* keys = new ElidedLabel("W A S D zoom and pan · Shift-drag measure · F fit · N next of the same", bar);
  set_style(keys, "voice", "small");
  bar->add(keys);
  box->addWidget(bar);
  auto* split = new QSplitter(Qt::Vertical, page);
  split->addWidget(make_canvas(model_));
  tabs_ = new QTabWidget(split);
  tabs_->setDocumentMode(true);
  for (auto [list, title] : {std::pair{&operators_, "Operators"}, std::pair{&modules_, "Modules"},
                             std::pair{&events_, "Ops in order"}, std::pair{&names_, "Names"}}) {
    *list = new TableList(tabs_);
    (*list)->on_select = [&bench](const Selection& s) { bench.select(s); };
    tabs_->addTab(*list, title);
  }
  events_->setObjectName("timeline.events");
  names_->setObjectName("timeline.names");
  split->addWidget(tabs_);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  split->setSizes({330, 190});
  split->setChildrenCollapsible(true);
  box->addWidget(split, 1);
  set_content(page);

  connect(search_, &QLineEdit::textEdited, this, [this](const QString& text) {
    Filter f = bench_.filter();
    f.name = text.toStdString();
    bench_.set_filter(f, true);
  });
  connect(&bench, &Bench::filter_changed, this, &TimelineView::refresh_found);
  connect(search_, &QLineEdit::returnPressed, this, [this] { model_.next_match(1); });
  auto* slash = new QShortcut(QKeySequence("/"), canvas());
  slash->setContext(Qt::WidgetShortcut);
  connect(slash, &QShortcut::activated, search_, [this] { search_->setFocus(); });
  connect(&bench, &Bench::step_changed, this, &TimelineView::refresh);
  connect(&bench, &Bench::status_changed, this, [this] {
    if (model_.empty()) refresh();
  });
  connect(&bench, &Bench::documents_changed, this, &TimelineView::refresh);
  connect(&bench.jobs, &Jobs::changed, this, [this] {
    if (model_.empty()) refresh();
  });
  connect(&bench, &Bench::project_changed, this, &TimelineView::refresh);
  connect(&bench, &Bench::selection_changed, this, [this](const Selection& s) {
    if (s.kind == Selection::Kind::event) return names_->mark(s);
    uint32_t seq = bench_.links().op_of(s);
    if (seq && s.kind != Selection::Kind::module) events_->mark(Selection::op(seq));
    if (s.kind == Selection::Kind::module) modules_->mark(s);
  });
  refresh();
}

std::vector<Command> TimelineView::commands() {
  return {{.id = "file.close_trace",
           .title = "Close the trace",
           .menu = "File",
           .run = [this] { bench_.close_document(bench_.shown_document()->id); },
           .enabled = [this] { return bench_.shown_document() != nullptr; },
           .section = 3}};
}

void TimelineView::refresh_found() {
  const QString name = QString::fromStdString(bench_.filter().name);
  if (search_->text() != name) search_->setText(name);
  const int64_t n = bench_.filter() ? model_.found() : 0;
  const QString what = model_.shows_document() ? "event" : "op";
  found_->setText(bench_.filter()
                      ? QString("%1 %2%3").arg(QString::fromStdString(format_grouped(n)), what, n == 1 ? "" : "s")
                      : QString());
  refresh_tables();
}

void TimelineView::refresh_tables() {
  if (model_.empty()) return;
  if (model_.shows_document()) return names_->set_table(model_.names());
  operators_->set_table(model_.operators());
  modules_->set_table(model_.modules());
  events_->set_table(model_.events());
}

/// The step and every trace that is open, to change between them; not there while there is no choice.
void TimelineView::refresh_documents() {
  documents_->setVisible(!bench_.documents().empty());
  documents_->clear();
  const auto& record = bench_.links().record();
  documents_->addItem(
      record ? QString("step %1").arg(QString::fromStdString(format_grouped(record->step))) : "the step",
      Document::kProject);
  if (!bench_.has_project()) documents_->clear();
  for (const Document& d : bench_.documents()) documents_->addItem(QString::fromStdString(d.title), d.id);
  const Document* shown = bench_.shown_document();
  documents_->setCurrentIndex(documents_->findData(shown ? shown->id : Document::kProject));
}

void TimelineView::refresh() {
  refresh_documents();
  if (model_.empty() && !bench_.reading().isEmpty())
    return set_waiting(bench_.jobs, &Bench::reads_document, "it will be here in a moment.");
  const bool trace = model_.shows_document();
  if (!trace && !step_state("its timeline")) return;
  set_empty(false);
  search_->setPlaceholderText(trace ? "Find events by name" : "Find ops by name, module or attribute");
  for (TableList* list : {operators_, modules_, events_}) tabs_->setTabVisible(tabs_->indexOf(list), !trace);
  tabs_->setTabVisible(tabs_->indexOf(names_), trace);
  refresh_found();
}

namespace {
const bool registered_timeline_view = register_view<TimelineView, TimelineModel>(
    {.id = "timeline",
     .title = "Timeline",
     .icon = "timeline",
     .order = 40,
     .places = {{"Profile", Spot::middle, 0, true}, {"Memory", Spot::below, 0}, {"Debug", Spot::below, 1}},
     .fill = "run.replay",
     .link = "Timeline",
     .shows = [](const Selection& s,
                 const Bench& bench) { return bench.document(s.document) || bench.links().hold(s); },
     .help = {
         "When everything happened in the step that is loaded, or in a trace: a lane a thread or stream, calls above "
         "what "
         "they called. What is too narrow to be seen is drawn as one block with its number. The tables under it say "
         "the "
         "same as rows.",
         "A click selects an event in every view. Drag to move, wheel to zoom at the pointer, Shift and drag to select "
         "a "
         "stretch of time, Ctrl and wheel to scroll the lanes, double click on an event to fill the picture with it "
         "and "
         "elsewhere to show everything.",
         "W and S zoom, A and D move, F fits the selected event and then everything, / searches, N and Shift+N go "
         "through "
         "what was found, M marks the time of the selected event, Left and Right go to its neighbours, Up and Down "
         "scroll, Escape drops the marked time."}});
}  // namespace

}  // namespace tenon::views
