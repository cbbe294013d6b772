#include "views/timeline/timeline_view.h"

#include <QComboBox>
#include <QContextMenuEvent>
#include <QLineEdit>
#include <QMenu>
#include <QShortcut>
#include <QSplitter>
#include <QTabWidget>
#include <QToolButton>
#include <QVBoxLayout>
#include <utility>

#include "tracing/analyses/time_match.h"
#include "tracing/record/step_record.h"
#include "views/frame/bookmark_list.h"
#include "views/frame/filter_bar.h"
#include "views/frame/rank_box.h"
#include "views/frame/table_list.h"
#include "views/frame/wait_strip.h"
#include "views/shared/format.h"
#include "views/timeline/trace_bookmarks.h"

namespace tenon::views {

namespace {
QString pin_words(const LaneLayout::Band& band) {
  return (band.pinned ? QObject::tr("Unpin %1") : QObject::tr("Pin %1 to the top"))
      .arg(QString::fromStdString(band.full_title));
}
}  // namespace

TimelineView::TimelineView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<TimelineModel>()) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  box->addWidget(make_bar(page));
  auto* split = new QSplitter(Qt::Vertical, page);
  split->addWidget(make_canvas(model_));
  tabs_ = new QTabWidget(split);
  tabs_->setDocumentMode(true);
  for (auto [list, title] : {std::pair{&operators_, tr_later("Operators")}, std::pair{&modules_, tr_later("Modules")},
                             std::pair{&events_, tr_later("Ops in order")}, std::pair{&names_, tr_later("Names")}}) {
    *list = new TableList(tabs_);
    (*list)->on_select = [&bench](const Selection& s) { bench.select(s); };
    tabs_->addTab(*list, tr(title));
  }
  events_->setObjectName("timeline.events");
  names_->setObjectName("timeline.names");
  bookmarks_ =
      new BookmarkList(bench, std::make_unique<TraceBookmarks>(model_), "timeline",
                       tr("Keep what is marked, or the time of the selected event (B in the timeline)"), tabs_);
  tabs_->addTab(bookmarks_, bookmarks_->title());
  connect(bookmarks_, &BookmarkList::counted, this, &TimelineView::refresh_bookmarks);
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
  auto* keep = new QShortcut(QKeySequence("B"), canvas());
  keep->setContext(Qt::WidgetShortcut);
  connect(keep, &QShortcut::activated, this, &TimelineView::bookmark);
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
    if (const bool marked = model_.shows_document() && s.kind == Selection::Kind::range; marked || marked_) {
      marked_ = marked;
      refresh_tables();
    }
    if (s.kind == Selection::Kind::event) return names_->mark(s);
    uint32_t seq = bench_.links().op_of(s);
    if (seq && s.kind != Selection::Kind::module) events_->mark(Selection::op(seq));
    if (s.kind == Selection::Kind::module) modules_->mark(s);
  });
  refresh();
}

ViewBar* TimelineView::make_bar(QWidget* page) {
  auto* bar = new ViewBar(page);
  documents_ = new QComboBox(bar);
  documents_->setObjectName("timeline.documents");
  documents_->setAccessibleName(tr("What the timeline shows"));
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
  search_->setPlaceholderText(tr("Find ops by name, module or attribute"));
  search_->setClearButtonEnabled(true);
  search_->setMinimumWidth(180);
  search_->setMaximumWidth(300);
  search_->setObjectName("timeline.search");
  found_ = new QLabel(bar);
  set_style(found_, "voice", "small");
  bar->add(search_, 1);
  bar->add(found_);
  bar->add(new FilterBar(bench_, FilterBar::Shows::all_but_name, bar));
  bar->add(new RankBox(bench_, "timeline", bar));
  colour_ = new QComboBox(bar);
  colour_->setObjectName("timeline.colour");
  colour_->setAccessibleName(tr("What colours tell"));
  colour_->addItems({tr("Colour by kind"), tr("Colour by name"), tr("Colour by module")});
  connect(colour_, &QComboBox::activated, this,
          [this](int i) { model_.colour_by(static_cast<LaneModel::ColourBy>(i)); });
  bar->add(colour_);
  bar->add(pins_ = make_pins(bar));
  for (auto [button, name, text, tip] :
       {std::tuple{&path_, "timeline.path", tr_later("Critical path"),
                   tr_later("The chain of events that the length of each step is made of")},
        std::tuple{&gaps_, "timeline.gaps", tr_later("Why idle"),
                   tr_later("Where the GPU has nothing to do within a step, and why")}}) {
    *button = new QToolButton(bar);
    (*button)->setObjectName(name);
    (*button)->setText(tr(text));
    (*button)->setToolTip(tr(tip));
    (*button)->setCheckable(true);
    (*button)->setChecked(button == &gaps_);
    connect(*button, &QToolButton::clicked, this, &TimelineView::refresh_story);
    bar->add(*button);
  }
  bar->add_stretch();
  auto* keys = new ElidedLabel(
      tr("W A S D zoom and pan · Shift-drag measure · F fit · N next of the same · B bookmark · P pin"), bar);
  set_style(keys, "voice", "small");
  bar->add(keys);
  return bar;
}

std::vector<Command> TimelineView::commands() {
  const auto trace = [this] { return model_.shows_document(); };
  auto shown = [this, trace](const char* id, const char* title, QToolButton* button) {
    return Command{.id = id,
                   .title = title,
                   .menu = {},
                   .run =
                       [this, button] {
                         bench_.ask("view.timeline");
                         button->setChecked(!button->isChecked());
                         refresh_story();
                       },
                   .enabled = trace,
                   .checked = [button] { return button->isChecked(); }};
  };
  std::vector<Command> all = pin_commands();
  all.insert(all.begin(), {shown("timeline.path", tr_later("Show the critical path over the trace"), path_),
                           shown("timeline.gaps", tr_later("Show why the GPU is idle"), gaps_),
                           {.id = "timeline.bookmark",
                            .title = tr_later("Bookmark this place of the trace"),
                            .menu = {},
                            .run = [this] { bookmark(); },
                            .enabled = trace}});
  return all;
}

void TimelineView::bookmark() {
  if (!model_.shows_document()) return;
  tabs_->setCurrentWidget(bookmarks_);
  bookmarks_->add();
}

void TimelineView::refresh_bookmarks() {
  bookmarks_->refresh();
  tabs_->setTabText(tabs_->indexOf(bookmarks_), bookmarks_->title());
}

const Document* TimelineView::shown() const {
  return model_.shows_beginning() ? bench_.beginning() : bench_.shown_document();
}

void TimelineView::follow_time() {
  if (model_.shows_beginning()) return;
  const Document* d = bench_.shown_document();
  const int now = d ? d->id : Document::kProject, before = std::exchange(seen_, now);
  const auto& both = bench_.together();
  if (now == before || !both || !model_.shows_document()) return;
  const bool to_b = before == both->a && now == both->b;
  if (!to_b && !(before == both->b && now == both->a)) return;
  const TimelineModel::Sight other = model_.sight(before);
  TimelineModel::Sight sight = model_.sight(now);
  sight.lo = other.whole ? model_.axis().full_lo : to_b ? both->times->to_b(other.lo) : both->times->to_a(other.lo);
  sight.hi = other.whole ? model_.axis().full_hi : to_b ? both->times->to_b(other.hi) : both->times->to_a(other.hi);
  model_.set_sight(now, sight);
}

/// What takes time is worked out for who sees it.
void TimelineView::came_into_sight() {
  ask_story();
  refresh_beside();
  refresh_tables();
}

void TimelineView::refresh_found() {
  const QString name = QString::fromStdString(bench_.filter().name);
  if (search_->text() != name) search_->setText(name);
  const int64_t n = bench_.filter() ? model_.found() : 0;
  const QString number = QString::fromStdString(format_grouped(n));
  QString found;
  if (bench_.filter() && model_.shows_document())
    found = n == 1 ? tr("1 event") : tr("%1 events").arg(number);
  else if (bench_.filter())
    found = n == 1 ? tr("1 op") : tr("%1 ops").arg(number);
  found_->setText(found);
  refresh_tables();
}

void TimelineView::refresh_tables() {
  if (model_.empty()) return;
  if (model_.shows_document()) {
    double from = 0, to = 0;
    const bool marked = model_.marked(from, to);
    tabs_->setTabText(tabs_->indexOf(names_),
                      marked ? tr("Names within %1").arg(QString::fromStdString(format_ns(to - from))) : tr("Names"));
    return refresh_names();
  }
  operators_->set_table(model_.operators());
  modules_->set_table(model_.modules());
  events_->set_table(model_.events());
}

/// The step and every trace that is open, to change between them; not there while there is no choice.
void TimelineView::refresh_documents() {
  documents_->clear();
  const auto& record = bench_.links().record();
  documents_->addItem(record ? tr("step %1").arg(QString::fromStdString(format_grouped(record->step))) : tr("the step"),
                      Document::kProject);
  if (!bench_.has_project()) documents_->clear();
  bool traces = false;
  for (const Document& d : bench_.documents())
    if (d.trace) {
      documents_->addItem(QString::fromStdString(d.title), d.id);
      traces = true;
    }
  const Document* of = shown();
  if (of && of->id == Document::kBeginning && documents_->count() > 0) {
    documents_->addItem(QString::fromStdString(of->title), of->id);
    traces = true;
  }
  documents_->setVisible(traces);
  documents_->setCurrentIndex(documents_->findData(of ? of->id : Document::kProject));
}

void TimelineView::refresh() {
  forget_stories();
  refresh_documents();
  refresh_bookmarks();
  follow_time();
  const bool begun = model_.shows_beginning() && bench_.beginning();
  if (begun)
    strip_->wait_for(bench_.jobs, Bench::reading_tag(*bench_.beginning()), tr("the beginning of the trace"), {});
  if (!std::exchange(begun_, begun) && begun_) bench_.ask("view.timeline");
  if (model_.empty() && !bench_.reading().isEmpty())
    return set_waiting(bench_.jobs, &Bench::reads_document, tr("it will be here in a moment."));
  const bool trace = model_.shows_document();
  if (shown() && !trace && model_.empty())
    return set_empty(true, tr("What is shown is no trace and no step: it has no timeline."));
  if (trace && !begun) strip_->stop();
  if (!trace && !step_state(tr("its timeline"))) return;
  set_empty(false);
  search_->setPlaceholderText(trace ? tr("Find events by name") : tr("Find ops by name, module or attribute"));
  for (TableList* list : {operators_, modules_, events_}) tabs_->setTabVisible(tabs_->indexOf(list), !trace);
  tabs_->setTabVisible(tabs_->indexOf(names_), trace);
  tabs_->setTabVisible(tabs_->indexOf(bookmarks_), trace);
  for (QWidget* w : std::initializer_list<QWidget*>{colour_, path_, gaps_, pins_}) w->setVisible(trace);
  refresh_story();
  refresh_beside();
  refresh_found();
}

QToolButton* TimelineView::make_pins(QWidget* bar) {
  auto* button = new QToolButton(bar);
  button->setObjectName("timeline.pins");
  button->setText(tr("Pins"));
  button->setToolTip(tr("Rows that stay at the top while the rest scrolls (P pins the row of the selected event)"));
  button->setPopupMode(QToolButton::InstantPopup);
  auto* menu = new QMenu(button);
  menu->setObjectName("timeline.pinned");
  connect(menu, &QMenu::aboutToShow, this, [this, menu] { fill_pins(menu); });
  button->setMenu(menu);
  return button;
}

void TimelineView::fill_pins(QMenu* menu) {
  menu->clear();
  if (model_.layout().any_pinned()) {
    menu->addAction(tr("Unpin all"), this, [this] { model_.unpin_all(); });
    menu->addSeparator();
  }
  const auto& bands = model_.layout().bands();
  for (size_t b = 0; b < bands.size(); ++b) {
    if (!bands[b].pins()) continue;
    QAction* row = menu->addAction(QString::fromStdString(bands[b].full_title));
    row->setCheckable(true);
    row->setChecked(bands[b].pinned);
    connect(row, &QAction::triggered, this, [this, b] { model_.toggle_pin(b); });
  }
}

/// By the mouse of what it is over, by the key of what is selected.
void TimelineView::contextMenuEvent(QContextMenuEvent* e) {
  const QPoint at = canvas()->mapFromGlobal(e->globalPos());
  const bool by_key = e->reason() == QContextMenuEvent::Keyboard;
  const bool there = model_.shows_document() && (by_key || canvas()->rect().contains(at));
  const int band = !there ? -1 : by_key ? model_.chosen_band() : model_.band_at(static_cast<float>(at.y()));
  if (band < 0) return View::contextMenuEvent(e);
  const auto b = static_cast<size_t>(band);
  const LaneLayout::Band& of = model_.layout().bands()[b];
  auto* menu = new QMenu(this);
  menu->setObjectName("timeline.menu");
  menu->setAttribute(Qt::WA_DeleteOnClose);
  if (of.pins()) menu->addAction(pin_words(of), this, [this, b] { model_.toggle_pin(b); });
  if (model_.layout().any_pinned()) menu->addAction(tr("Unpin all"), this, [this] { model_.unpin_all(); });
  if (of.folds()) menu->addAction(of.folded ? tr("Unfold") : tr("Fold"), this, [this, b] { model_.toggle(b); });
  menu->popup(e->globalPos());
}

std::vector<Command> TimelineView::pin_commands() {
  auto pinned = [this] {
    const int band = model_.chosen_band();
    return band >= 0 && model_.layout().bands()[static_cast<size_t>(band)].pinned;
  };
  return {{.id = "timeline.pin",
           .title = tr_later("Pin the thread of the selected event to the top"),
           .menu = {},
           .run =
               [this] {
                 bench_.ask("view.timeline");
                 model_.toggle_pin(static_cast<size_t>(model_.chosen_band()));
                 emit bench_.state_changed();
               },
           .enabled = [this] { return model_.chosen_band() >= 0; },
           .checked = pinned},
          {.id = "timeline.unpin_all",
           .title = tr_later("Unpin all rows of the timeline"),
           .menu = {},
           .run =
               [this] {
                 model_.unpin_all();
                 emit bench_.state_changed();
               },
           .enabled = [this] { return model_.shows_document() && model_.layout().any_pinned(); }},
          {.id = "timeline.pins",
           .title = tr_later("Choose the rows that stay at the top of the timeline…"),
           .menu = {},
           .run =
               [this] {
                 bench_.ask("view.timeline");
                 pins_->showMenu();
               },
           .enabled = [this] { return model_.shows_document(); }}};
}

namespace {
const bool registered_timeline_view = register_view<TimelineView, TimelineModel>(
    {.id = "timeline",
     .title = tr_later("Timeline"),
     .icon = "timeline",
     .order = 40,
     .places = {{"Profile", Spot::middle, 0, true}, {"Memory", Spot::below, 0}, {"Debug", Spot::below, 1}},
     .layouts = {"Profile", "Memory", "Debug"},
     .fill = "run.replay",
     .link = tr_later("Timeline"),
     .shows =
         [](const Selection& s, const Bench& bench) {
           const Document* d = bench.document(s.document);
           return d ? d->trace != nullptr : bench.links().hold(s);
         },
     .help = {
         tr_later("When everything happened in the step that is loaded, or in a trace: a lane a thread or stream, "
                  "calls above what they called. What is too narrow to be seen is drawn as one block with its number. "
                  "Over a trace stand the whole of it, why the GPU was idle and, on demand, the critical path; under "
                  "its threads its counters. The tables say the same as rows, of a marked stretch where there is one."),
         tr_later("A click selects an event in every view; arrows lead to what it launched and to its forward or "
                  "backward half. Drag to move, wheel to zoom at the pointer, Shift and drag to mark a stretch of "
                  "time, Ctrl and wheel to scroll the lanes, a click on a name to fold it, double click on an event to "
                  "fill the picture with it and elsewhere to show everything."),
         tr_later("W and S zoom, A and D move, F fits the selected event and then everything, / searches, N and "
                  "Shift+N go through what was found, M marks the time of the selected event, B bookmarks it, C folds "
                  "its thread and Shift+C all, P pins its thread: it stays at the top while the rest scrolls, until P "
                  "or its pin puts it back; Pins and the other mouse button do that with every row and counter. Left "
                  "and Right go to its neighbours, Up and Down scroll, Escape drops the marked time.")}});
}  // namespace

}  // namespace tenon::views
