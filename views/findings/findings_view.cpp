#include "views/findings/findings_view.h"

#include <QComboBox>
#include <QListWidget>
#include <QSignalBlocker>
#include <QSplitter>
#include <QVBoxLayout>

#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/record/step_record.h"
#include "views/frame/filter_bar.h"
#include "views/frame/rank_box.h"
#include "views/shared/format.h"

namespace tenon::views {

using tracing::SnapshotAnalysis;
using tracing::TraceAnalysis;

FindingsView::FindingsView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  build();
  connect(analyses_, &QListWidget::currentRowChanged, this, [this](int row) {
    if (row >= 0) ask();
  });
  connect(steps_, &QComboBox::activated, this, [this] { ask(); });
  connect(&bench, &Bench::step_changed, this, &FindingsView::refresh);
  connect(&bench, &Bench::documents_changed, this, &FindingsView::refresh);
  connect(&bench, &Bench::project_changed, this, &FindingsView::refresh);
  connect(&bench.jobs, &Jobs::changed, this, [this] {
    if (!source_) refresh();
  });
  connect(&bench, &Bench::filter_changed, this,
          [this] { pane_->set_filter(QString::fromStdString(bench_.filter().name)); });
  connect(&bench, &Bench::selection_changed, this, [this](const Selection& s) { pane_->mark(s); });
  refresh();
}

void FindingsView::build() {
  auto* split = new QSplitter(Qt::Horizontal, this);
  analyses_ = new QListWidget(split);
  analyses_->setObjectName("findings.analyses");
  analyses_->setAccessibleName(tr("Analyses"));
  set_style(analyses_, "side", "true");
  auto* page = new QWidget(split);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  subject_ = new ElidedLabel({}, bar);
  set_style(subject_, "voice", "secondary");
  bar->add(subject_, 1);
  bar->add(new RankBox(bench_, "findings", bar));
  steps_ = new QComboBox(bar);
  steps_->setObjectName("findings.steps");
  steps_->setAccessibleName(tr("Steps that are looked at"));
  bar->add(steps_);
  bar->add(new FilterBar(bench_, FilterBar::Shows::name, bar));
  box->addWidget(bar);
  what_if_ = new WhatIfForm(page);
  what_if_->hide();
  what_if_->on_change = [this] {
    what_ifs_[form_of_] = what_if_->asked();
    ask();
  };
  box->addWidget(what_if_, 1);
  pane_ = new FindingPane("findings", page);
  pane_->on_select = [this](const Selection& chosen) { bench_.select(chosen); };
  box->addWidget(pane_, 1);
  split->addWidget(analyses_);
  split->addWidget(page);
  split->setStretchFactor(1, 1);
  split->setSizes({130, 700});
  split->setChildrenCollapsible(false);
  set_content(split);
}

void FindingsView::list_analyses(bool of_snapshot, bool of_ranks) {
  if (listed_ == std::pair(of_snapshot, of_ranks)) return;
  const bool same_kind = listed_ && listed_->first == of_snapshot;
  const QListWidgetItem* chosen = analyses_->currentItem();
  const QString before = same_kind && chosen ? chosen->text() : QString();
  listed_ = {of_snapshot, of_ranks};
  const QSignalBlocker quiet(analyses_);
  analyses_->clear();
  auto add = [this](const std::string& name, const std::string& help, bool first) {
    auto* item = new QListWidgetItem(QString::fromStdString(name), analyses_);
    item->setToolTip(QString::fromStdString(help));
    if (first) analyses_->setCurrentItem(item);
  };
  if (of_snapshot) {
    for (const SnapshotAnalysis& a : tracing::snapshot_analyses())
      if (a.min_files == 1) add(a.name, a.help, a.name == "peak");
  } else {
    for (const TraceAnalysis& a : tracing::trace_analyses())
      if (a.min_traces == 1 || (of_ranks && a.max_traces > 2)) add(a.name, a.help, a.name == "why");
  }
  choose(before);
}

void FindingsView::choose(const QString& analysis) {
  const auto found = analyses_->findItems(analysis, Qt::MatchExactly);
  if (!found.isEmpty()) analyses_->setCurrentItem(found[0]);
}

FindingsView::Asked FindingsView::asked() const {
  const Document* d = bench_.shown_document();
  const QListWidgetItem* item = analyses_->currentItem();
  return {d ? d->id : Document::kProject, d ? d->rank : 0, item ? item->text().toStdString() : std::string(),
          steps_->currentIndex() < 0 ? int64_t{-1} : steps_->currentData().toLongLong(),
          what_if_->isVisibleTo(this) ? what_if_->asked() : WhatIfAsked()};
}

/// The form stands over the page that it is of.
void FindingsView::follow_form() {
  const QListWidgetItem* item = analyses_->currentItem();
  const bool shown = source_.snapshot && item && item->text() == "what-if";
  const Document* d = bench_.shown_document();
  if (shown && d && form_of_ != d->id) {
    form_of_ = d->id;
    what_if_->begin(what_ifs_[d->id], snapshot::AllocatorSettings::of(*source_.snapshot));
  }
  what_if_->setVisible(shown);
}

FindingsView::Source FindingsView::shown() const {
  const Document* d = bench_.shown_document();
  return {bench_.shown_part().trace, d ? d->snapshot : nullptr};
}

void FindingsView::refresh() {
  // Pages of what is closed, or of the step before, are of no use.
  std::erase_if(pages_, [this](const auto& p) {
    return p.first.document == Document::kProject || !bench_.document(p.first.document);
  });
  std::erase_if(what_ifs_, [this](const auto& w) { return !bench_.document(w.first); });
  const Source now = shown();
  const bool other = now != source_;
  source_ = now;
  const Document* d = bench_.shown_document();
  if (!d && !source_ && !bench_.reading().isEmpty())
    return set_waiting(bench_.jobs, &Bench::reads_document, tr("what it says will be here in a moment."));
  if (!d && !step_state(tr("what its time says"))) return;
  set_empty(!source_, tr("What is shown is neither a trace nor a memory snapshot: there is nothing to analyse."));
  if (!source_ || !other) return;
  list_analyses(source_.snapshot != nullptr, d && !d->ranks.empty());
  const auto& record = bench_.links().record();
  subject_->set_text(d ? QString::fromStdString(d->part_title())
                       : tr("step %1").arg(QString::fromStdString(format_grouped(record ? record->step : 0))));
  refresh_steps();
  pane_->set_page(nullptr);
  ask();
}

void FindingsView::refresh_steps() {
  steps_->clear();
  steps_->addItem(tr("all steps"), qlonglong{-1});
  steps_->hide();
  if (!source_.trace) return;
  bench_.jobs.start(
      "finding steps", tr("List the steps"),
      [trace = source_.trace](const Jobs::Report&, const std::atomic<bool>&) { return tracing::trace_steps(*trace); },
      [this, trace = source_.trace](const std::vector<tracing::TraceStep>& steps) {
        if (trace != source_.trace) return;
        for (const tracing::TraceStep& s : steps)
          if (s.number >= 0) steps_->addItem(tr("step %1").arg(s.number), qlonglong{s.number});
        steps_->setVisible(steps_->count() > 2);
      },
      {}, true);
}

void FindingsView::ask() {
  if (!source_) return;
  follow_form();
  if (!in_sight()) return;
  const Asked what = asked();
  const TraceAnalysis* of_trace = source_.trace ? tracing::trace_analyses().find(what.analysis) : nullptr;
  const SnapshotAnalysis* of_snapshot = source_.snapshot ? tracing::snapshot_analyses().find(what.analysis) : nullptr;
  if (!of_trace && !of_snapshot) return;
  if (const auto known = pages_.find(what); known != pages_.end()) return show_answer(known->second);
  pane_->set_page(nullptr);
  pane_->say(tr("Looking at %1…").arg(QString::fromStdString(what.analysis)));
  Subject subject{what.document, 0, bench_.links().record()};
  tracing::TraceRequest request{.traces = {source_.trace}, .step = what.step};
  if (const Document* d = bench_.shown_document()) {
    subject = subject_of(*d, what.rank);
    if (of_trace && of_trace->min_traces > 1) {
      request.traces.clear();
      for (const traces::TracePart& rank : d->ranks) request.traces.push_back(rank.trace);
    }
  }
  bench_.jobs.start(
      "finding", tr("Analyse: %1").arg(QString::fromStdString(what.analysis)),
      [source = source_, what, subject, request](const Jobs::Report&, const std::atomic<bool>&) {
        return answer_of(source, what, subject, request);
      },
      [this, source = source_, what](const Answer& answer) {
        if (source != source_) return;  // another one is shown by now
        pages_[what] = answer;
        if (what == asked()) show_answer(answer);
      },
      [this, source = source_, what](const QString& message, const QString& hint) {
        if (source != source_ || what != asked()) return;
        pane_->say(message + (hint.isEmpty() ? "" : " " + hint));
      },
      true);
}

FindingsView::Answer FindingsView::answer_of(const Source& source, const Asked& what, const Subject& subject,
                                             tracing::TraceRequest traces) {
  constexpr size_t kRows = 200;
  Answer answer;
  const auto told = [&](const tracing::Finding& f) {
    answer.page = std::make_shared<const FindingPage>(make_page(f, subject));
  };
  if (source.trace) {
    traces.top = kRows;
    told(tracing::trace_analyses().at(what.analysis).run(traces));
    return answer;
  }
  tracing::SnapshotRequest request{.snapshots = {source.snapshot}, .top = kRows};
  request.settings = what.what_if.settings;
  request.limit = what.what_if.limit();
  // The curves are of the same replays as the page.
  auto tried = what.analysis == "what-if" ? tracing::what_if(request) : std::nullopt;
  if (tried) {
    answer.what_if = std::make_shared<const tracing::WhatIf>(std::move(*tried));
    told(tracing::finding_of(*answer.what_if));
  } else {
    told(tracing::snapshot_analyses().at(what.analysis).run(request));
  }
  return answer;
}

void FindingsView::show_answer(const Answer& answer) {
  what_if_->show_curves(answer.what_if);
  pane_->set_page(answer.page);
}

void FindingsView::set_theme(ThemeName theme) {
  View::set_theme(theme);
  what_if_->set_theme(theme);
  pane_->set_theme(theme);
}

namespace {
const bool registered_findings_view = register_view<FindingsView>(
    {.id = "findings",
     .title = tr_later("Findings"),
     .icon = "findings",
     .order = 45,
     .places = {{"Profile", Spot::below, 1}},
     .layouts = {"Profile", "Memory"},
     .fill = "run.replay",
     .link = tr_later("Findings"),
     .shows =
         [](const Selection& s, const Bench& bench) {
           const Document* d = bench.document(s.document);
           return d && (d->trace || d->snapshot);
         },
     .help = {tr_later("What the analyses say of a trace, of a memory snapshot, or of the recorded step: each is a "
                       "page with a sentence, figures, and tables behind them."),
              tr_later("Choose an analysis on the left. A click on a row selects its event in the Timeline, or its "
                       "line of code in Memory; a click on a column's head sorts. On the page what-if of a snapshot "
                       "settings of the allocator are typed as PyTorch takes them, or in fields; Try it adds them to "
                       "the table and the curves, a click on a name over the curves lets one stand out."),
              tr_later("Up and Down go through the analyses or the rows of a table, Ctrl+C copies the row.")}});
}  // namespace

}  // namespace tenon::views
