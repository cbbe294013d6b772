#include "views/overview/overview_view.h"

#include <QSplitter>
#include <QStackedWidget>
#include <QTabWidget>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "core/give_way.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/record/step_record.h"
#include "views/frame/figure_row.h"
#include "views/frame/rank_box.h"
#include "views/frame/table_list.h"
#include "views/shared/format.h"

namespace tenon::views {

namespace {
constexpr const char* kOverviewJob = "overview";
constexpr int kLeastBars = 196, kLeastLists = 176;
constexpr const char* kListed[] = {tr_later("Ranks"), tr_later("Kernels"), tr_later("Ops"),
                                   tr_later("Parts"), tr_later("Steps"),   tr_later("Configuration")};
}  // namespace

OverviewView::OverviewView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<OverviewModel>()) {
  build();
  model_.on_open = [this] { open_timeline(); };
  connect(cause_, &QToolButton::clicked, this, &OverviewView::show_cause);
  connect(&bench, &Bench::step_changed, this, &OverviewView::refresh);
  connect(&bench, &Bench::documents_changed, this, &OverviewView::refresh);
  connect(&bench, &Bench::project_changed, this, &OverviewView::refresh);
  connect(&bench.jobs, &Jobs::changed, this, [this] {
    if (asked_ && !bench_.jobs.has(kOverviewJob)) stopped();
    if (!trace_) refresh();
  });
  connect(&bench, &Bench::selection_changed, this, [this](const Selection& s) {
    for (TableList* list : findChildren<TableList*>()) list->mark(s);
    tell_advice();
  });
  refresh();
}

void OverviewView::build() {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  box->addWidget(build_head(page));
  auto* split = new QSplitter(Qt::Vertical, page);
  SceneCanvas* bars = make_canvas(model_);
  bars->setMinimumHeight(kLeastBars);
  split->addWidget(bars);
  QWidget* lists = build_lists(split);
  lists->setMinimumHeight(kLeastLists);
  split->addWidget(lists);
  split->setStretchFactor(0, 1);
  split->setStretchFactor(1, 1);
  split->setSizes({260, 240});
  // The lists take what room there is: how long they are says nothing of how high the page has to be.
  split->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored);
  split->setMinimumHeight(kLeastBars + kLeastLists + 8);
  split->setChildrenCollapsible(false);
  box->addWidget(split, 1);
  set_content(page);
}

QWidget* OverviewView::build_head(QWidget* parent) {
  auto* head = new QWidget(parent);
  auto* box = new QVBoxLayout(head);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(head);
  subject_ = new ElidedLabel({}, bar);
  subject_->setObjectName("overview.subject");
  set_style(subject_, "voice", "secondary");
  bar->add(subject_, 1);
  bar->add(new RankBox(bench_, "overview", bar));
  cause_ = new QToolButton(bar);
  cause_->setObjectName("overview.cause");
  cause_->setText(tr("Show the cause in the Timeline"));
  cause_->setToolTip(tr("Selects the longest piece of what bounds the steps, and shows it in the Timeline"));
  bar->add(cause_);
  box->addWidget(bar);
  sentence_ = new QLabel(head);
  sentence_->setObjectName("overview.sentence");
  sentence_->setWordWrap(true);
  sentence_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  sentence_->setContentsMargins(14, 10, 14, 6);
  box->addWidget(sentence_);
  figures_ = new FigureRow(head);
  box->addWidget(figures_);
  return head;
}

TableList* OverviewView::make_list(const char* title, QWidget* parent) {
  auto* list = new TableList(parent);
  list->setObjectName(QString("overview.") + title);
  list->setAccessibleName(tr(title));
  list->on_select = [this](const Selection& s) {
    if (s) bench_.select(s);
    tell_advice();
  };
  connect(list, &QTableView::activated, this, [this, list](const QModelIndex& at) {
    if (const Table shown = list->shown(); at.isValid() && shown.rows[static_cast<size_t>(at.row())].selection)
      open_timeline();
  });
  return list;
}

/// What to try on the left with the words of the chosen row under it, everything else on the right.
QWidget* OverviewView::build_lists(QWidget* parent) {
  auto* split = new QSplitter(Qt::Horizontal, parent);
  auto* left = new QTabWidget(split);
  left->setDocumentMode(true);
  advised_ = new QStackedWidget(left);
  none_ = new QLabel(advised_);
  none_->setWordWrap(true);
  none_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  none_->setContentsMargins(14, 12, 14, 8);
  none_->setText(tr(kNoAdvice));
  advised_->addWidget(none_);
  auto* some = new QWidget(advised_);
  auto* box = new QVBoxLayout(some);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  advice_ = make_list(tr_later("Recommendations"), some);
  box->addWidget(advice_, 1);
  told_ = new QLabel(some);
  told_->setObjectName("overview.told");
  told_->setWordWrap(true);
  told_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  told_->setContentsMargins(14, 6, 14, 8);
  box->addWidget(told_);
  advised_->addWidget(some);
  left->addTab(advised_, tr("Recommendations"));
  tabs_ = new QTabWidget(split);
  tabs_->setObjectName("overview.tables");
  tabs_->setDocumentMode(true);
  for (const char* title : kListed) tabs_->addTab(make_list(title, tabs_), tr(title));
  split->addWidget(left);
  split->addWidget(tabs_);
  split->setStretchFactor(0, 1);
  split->setStretchFactor(1, 1);
  split->setSizes({420, 480});
  split->setChildrenCollapsible(false);
  return split;
}

std::vector<Command> OverviewView::commands() {
  return {{.id = "overview.cause",
           .title = tr_later("Show what bounds the steps"),
           .run = [this] { show_cause(); },
           .enabled = [this] { return model_.page() && static_cast<bool>(model_.page()->cause); }}};
}

void OverviewView::show_cause() {
  if (!model_.page() || !model_.page()->cause) return;
  bench_.select(model_.page()->cause);
  open_timeline();
}

/// In a low dock the list has the room, and a row's tooltip the words.
void OverviewView::resizeEvent(QResizeEvent* e) {
  View::resizeEvent(e);
  constexpr int kRoomForWords = 560;
  told_->setVisible(height() >= kRoomForWords);
}

void OverviewView::refresh() {
  std::erase_if(pages_, [this](const auto& p) {
    const Document* d = bench_.document(p.first);
    return p.first == Document::kProject ? !bench_.links() || !p.second.first : !d;
  });
  const Document* d = bench_.shown_document();
  const auto now = bench_.shown_part().trace;
  const bool other = now != trace_;
  trace_ = now;
  if (!trace_) show_page(nullptr);
  if (!d && !trace_ && !bench_.reading().isEmpty())
    return set_waiting(bench_.jobs, &Bench::reads_document, tr("its overview will be here in a moment."));
  if (!d && !step_state(tr("where its time goes"))) return;
  if (d && !trace_) return show_other(*d);
  if (other) show_page(nullptr);
  ask();
}

/// A snapshot and a model file have views of their own.
void OverviewView::show_other(const Document& d) {
  for (const ViewDef& def : view_defs())
    if (def.opens == d.kind)
      return set_empty(
          true, tr("What is shown is a %1: the view %2 tells what is in it.").arg(tr(name(d.kind)), tr(def.title)),
          tr("Show %1").arg(tr(def.title)), [this, id = def.id] { bench_.ask(QString("view.") + id); });
  set_empty(true, tr("What is shown is no trace."));
}

void OverviewView::ask() {
  if (!trace_ || !in_sight() || asked_ == trace_) return;
  const Document* d = bench_.shown_document();
  const int document = d ? d->id : Document::kProject;
  if (const auto known = pages_.find(document); known != pages_.end() && known->second.first == trace_)
    return show_page(known->second.second);
  const auto same_job = [](const Jobs::State& job) { return job.tag == kOverviewJob; };
  asked_ = trace_;
  Subject subject{document, 0, bench_.links().record(), "overview"};
  tracing::TraceRequest all;
  if (d) {
    subject = subject_of(*d, d->rank, "overview");
    for (const traces::TracePart& rank : d->ranks) all.traces.push_back(rank.trace);
  }
  bench_.jobs.start(
      kOverviewJob, tr("Overview"),
      [trace = trace_, subject, all](const Jobs::Report&, const std::atomic<bool>&) {
        return giving_way([&] {
          const Page page = read_overview(trace, subject);
          return all.traces.empty() ? page : with_ranks(*page, tracing::trace_analyses().at("ranks").run(all));
        });
      },
      [this, trace = trace_, document](Page page) {
        if (asked_ == trace) asked_ = nullptr;
        if (trace != trace_) return;  // another one is shown by now
        pages_[document] = {trace, page};
        show_page(std::move(page));
      },
      [this, trace = trace_](const QString& message, const QString& hint) {
        if (asked_ == trace) asked_ = nullptr;
        if (trace == trace_) set_empty(true, message + (hint.isEmpty() ? "" : " " + hint));
      },
      true);
  set_waiting(bench_.jobs, same_job, tr("it will be here in a moment."), [this] { stopped(); });
}

/// The job was cancelled, here or among the jobs.
void OverviewView::stopped() {
  asked_ = nullptr;
  if (trace_ && !model_.page())
    set_empty(true, tr("The overview was not worked out."), tr("Work it out"), [this] { ask(); });
}

void OverviewView::show_page(Page page) {
  if (page && page == model_.page() && !empty()) return;
  model_.set_page(page);
  if (!page) return;
  if (!page->overview) return set_empty(true, QString::fromStdString(page->page.sentence));
  set_empty(false);
  const Document* d = bench_.shown_document();
  const auto& record = bench_.links().record();
  subject_->set_text(d ? QString::fromStdString(d->part_title())
                       : tr("step %1").arg(QString::fromStdString(format_grouped(record ? record->step : 0))));
  cause_->setEnabled(static_cast<bool>(page->cause));
  sentence_->setText(QString::fromStdString(page->page.sentence));
  figures_->set_figures(page->page.figures);
  const Table* advice = page->table("Recommendations");
  advised_->setCurrentIndex(advice && !advice->rows.empty() ? 1 : 0);
  if (advice) {
    Table shown = *advice;
    shown.columns.pop_back();  // what was seen is told in whole under the list
    for (Table::Row& r : shown.rows) r.cells.pop_back();
    advice_->set_table(std::move(shown));
  }
  for (int i = 0; i < tabs_->count(); ++i) {
    const Table* t = page->table(kListed[i]);
    static_cast<TableList*>(tabs_->widget(i))->set_table(t ? *t : Table());
    tabs_->setTabVisible(i, t && !t->rows.empty());
  }
  for (TableList* list : findChildren<TableList*>()) list->mark(bench_.bus.current());
  tell_advice();
  emit bench_.state_changed();  // there is a cause to show
}

void OverviewView::tell_advice() {
  const auto& page = model_.page();
  if (!page || !page->overview || page->overview->advice.empty()) return told_->clear();
  const auto& all = page->overview->advice;
  const Table shown = advice_->shown();
  size_t at = 0;
  if (const int row = advice_->currentIndex().row(); row >= 0 && row < static_cast<int>(shown.rows.size()))
    for (size_t i = 0; i < all.size(); ++i)
      if (shown.rows[static_cast<size_t>(row)].cells[0].text == all[i].about) at = i;
  const auto text = [](const std::string& s) { return QString::fromStdString(s); };
  told_->setText(tr("%1: %2; try this: %3.").arg(text(all[at].about), text(all[at].seen), text(all[at].try_this)));
}

namespace {
const bool registered_overview_view = register_view<OverviewView, OverviewModel>(
    {.id = "overview",
     .title = tr_later("Overview"),
     .icon = "overview",
     .order = 39,
     .layouts = {"Profile"},
     .fill = "run.replay",
     .link = tr_later("Overview"),
     .opens = Document::Kind::trace,
     .shows =
         [](const Selection& s, const Bench& bench) {
           const Document* d = bench.document(s.document);
           return d && d->trace && s.kind == Selection::Kind::document;
         },
     .help = {
         tr_later("A trace, or the step that is loaded, at one glance: what bounds its steps, the time of every step "
                  "by part, how well the GPU is filled, what to try and from which figure on that is said, the largest "
                  "kernels and ops, and the machine it was taken on. Every moment of a step counts once, so the parts "
                  "add up to it."),
         tr_later(
             "A click on a bar selects the step, a double click shows it in the Timeline; a click on a part selects "
             "the step with most of it. The wheel zooms over the steps. A click on a row selects what it is about, a "
             "double click shows that in the Timeline, as the button at the top does with what bounds the steps."),
         tr_later("Left and Right go from bar to bar, Home and End to the ends, Enter shows the step in the Timeline; "
                  "W and S zoom, A and D move, F shows every step. In a list Up and Down choose a row and Enter shows "
                  "it in the Timeline.")}});
}  // namespace

}  // namespace tenon::views
