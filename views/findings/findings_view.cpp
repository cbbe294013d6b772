#include "views/findings/findings_view.h"

#include <QComboBox>
#include <QGridLayout>
#include <QListWidget>
#include <QSplitter>
#include <QTabWidget>
#include <QVBoxLayout>

#include "tracing/analyses/trace_analysis.h"
#include "tracing/record/step_record.h"
#include "views/frame/filter_bar.h"
#include "views/shared/format.h"

namespace tenon::views {

using tracing::TraceAnalysis;

FindingsView::FindingsView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  build();
  connect(analyses_, &QListWidget::currentRowChanged, this, [this] { ask(); });
  connect(steps_, &QComboBox::activated, this, [this] { ask(); });
  connect(&bench, &Bench::step_changed, this, &FindingsView::refresh);
  connect(&bench, &Bench::documents_changed, this, &FindingsView::refresh);
  connect(&bench, &Bench::project_changed, this, &FindingsView::refresh);
  connect(&bench.jobs, &Jobs::changed, this, [this] {
    if (!trace_) refresh();
  });
  connect(&bench, &Bench::filter_changed, this, [this] {
    for (int i = 0; i < tabs_->count(); ++i)
      static_cast<TableList*>(tabs_->widget(i))->set_filter(QString::fromStdString(bench_.filter().name));
  });
  connect(&bench, &Bench::selection_changed, this, [this](const Selection& s) {
    for (int i = 0; i < tabs_->count(); ++i) static_cast<TableList*>(tabs_->widget(i))->mark(s);
  });
  refresh();
}

void FindingsView::build() {
  auto* split = new QSplitter(Qt::Horizontal, this);
  analyses_ = new QListWidget(split);
  analyses_->setObjectName("findings.analyses");
  analyses_->setAccessibleName("Analyses");
  set_style(analyses_, "side", "true");
  for (const TraceAnalysis& a : tracing::trace_analyses()) {
    if (a.min_traces > 1) continue;
    auto* item = new QListWidgetItem(QString::fromStdString(a.name), analyses_);
    item->setToolTip(QString::fromStdString(a.help));
    if (a.name == "why") analyses_->setCurrentItem(item);
  }
  auto* page = new QWidget(split);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  subject_ = new ElidedLabel({}, bar);
  set_style(subject_, "voice", "secondary");
  bar->add(subject_, 1);
  steps_ = new QComboBox(bar);
  steps_->setObjectName("findings.steps");
  steps_->setAccessibleName("Steps that are looked at");
  bar->add(steps_);
  bar->add(new FilterBar(bench_, FilterBar::Shows::name, bar));
  box->addWidget(bar);
  sentence_ = new QLabel(page);
  sentence_->setObjectName("findings.sentence");
  sentence_->setWordWrap(true);
  sentence_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  sentence_->setContentsMargins(14, 10, 14, 6);
  box->addWidget(sentence_);
  auto* figures = new QWidget(page);
  figures_ = new QGridLayout(figures);
  figures_->setContentsMargins(14, 0, 14, 8);
  figures_->setHorizontalSpacing(28);
  figures_->setVerticalSpacing(0);
  box->addWidget(figures);
  tabs_ = new QTabWidget(page);
  tabs_->setDocumentMode(true);
  tabs_->setObjectName("findings.tables");
  box->addWidget(tabs_, 1);
  none_ = new QLabel(page);
  box->addWidget(none_, 1);  // takes the room where there are no tables
  split->addWidget(analyses_);
  split->addWidget(page);
  split->setStretchFactor(1, 1);
  split->setSizes({130, 700});
  split->setChildrenCollapsible(false);
  set_content(split);
}

void FindingsView::choose(const QString& analysis) {
  const auto found = analyses_->findItems(analysis, Qt::MatchExactly);
  if (!found.isEmpty()) analyses_->setCurrentItem(found[0]);
}

void FindingsView::showEvent(QShowEvent* e) {
  View::showEvent(e);
  ask();
}

FindingsView::Asked FindingsView::asked() const {
  const Document* d = bench_.shown_document();
  const QListWidgetItem* item = analyses_->currentItem();
  return {d ? d->id : Document::kProject, item ? item->text().toStdString() : std::string(),
          steps_->currentIndex() < 0 ? int64_t{-1} : steps_->currentData().toLongLong()};
}

void FindingsView::refresh() {
  // Pages of what is closed, or of the step before, are of no use.
  std::erase_if(pages_, [this](const auto& p) {
    return p.first.document == Document::kProject || !bench_.document(p.first.document);
  });
  const auto trace = bench_.shown_trace();
  const bool other = trace != trace_;
  trace_ = trace;
  const Document* d = bench_.shown_document();
  if (!d && !trace_ && !bench_.reading().isEmpty())
    return set_waiting(bench_.jobs, &Bench::reads_document, "what it says will be here in a moment.");
  if (!d && !step_state("what its time says")) return;
  set_empty(!trace_, "Nothing is known of the times of what is shown.");
  if (!trace_ || !other) return;
  const auto& record = bench_.links().record();
  subject_->set_text(d ? QString::fromStdString(d->title)
                       : "step " + QString::fromStdString(format_grouped(record ? record->step : 0)));
  refresh_steps();
  show_page(nullptr);
  ask();
}

void FindingsView::refresh_steps() {
  steps_->clear();
  steps_->addItem("all steps", qlonglong{-1});
  for (const tracing::TraceStep& s : tracing::trace_steps(*trace_))
    if (s.number >= 0) steps_->addItem(QString("step %1").arg(s.number), qlonglong{s.number});
  steps_->setVisible(steps_->count() > 2);
}

void FindingsView::ask() {
  if (!trace_ || !isVisible()) return;
  const Asked what = asked();
  const TraceAnalysis* analysis = tracing::trace_analyses().find(what.analysis);
  if (!analysis) return;
  if (const auto known = pages_.find(what); known != pages_.end()) return show_page(known->second);
  show_page(nullptr);
  sentence_->setText("Looking at " + QString::fromStdString(what.analysis) + "…");
  Subject subject{what.document, trace_->begin()};
  if (what.document == Document::kProject) subject = {what.document, 0, bench_.links().record()};
  bench_.jobs.start(
      "finding", "Analyse: " + QString::fromStdString(what.analysis),
      [trace = trace_, analysis, subject, step = what.step](const Jobs::Report&, const std::atomic<bool>&) {
        return std::make_shared<const FindingPage>(make_page(analysis->run({{trace}, 200, step}), subject));
      },
      [this, trace = trace_, what](std::shared_ptr<const FindingPage> page) {
        if (trace != trace_) return;  // another one is shown by now
        pages_[what] = page;
        if (what == asked()) show_page(std::move(page));
      },
      [this, trace = trace_, what](const QString& message, const QString& hint) {
        if (trace != trace_ || what != asked()) return;
        sentence_->setText(message + (hint.isEmpty() ? "" : " " + hint));
      },
      true);
}

void FindingsView::show_page(std::shared_ptr<const FindingPage> page) {
  if (page && page == page_) return;
  page_ = std::move(page);
  sentence_->setText(page_ ? QString::fromStdString(page_->sentence) : QString());
  show_figures();
  while (tabs_->count() > 0) {
    QWidget* table = tabs_->widget(0);
    tabs_->removeTab(0);
    discard(table);
  }
  for (const FindingPage::Part& part : page_ ? page_->tables : std::vector<FindingPage::Part>()) {
    auto* list = new TableList(tabs_);
    list->setObjectName("findings." + QString::fromStdString(part.title));
    list->setAccessibleName(QString::fromStdString(part.title));
    list->on_select = [this](const Selection& s) { bench_.select(s); };
    list->set_theme(theme_);
    list->set_table(part.table);
    list->set_filter(QString::fromStdString(bench_.filter().name));
    list->mark(bench_.bus.current());
    tabs_->addTab(list, QString::fromStdString(part.title));
  }
  tabs_->setVisible(tabs_->count() > 0);
  none_->setVisible(tabs_->count() == 0);
}

void FindingsView::show_figures() {
  while (QLayoutItem* item = figures_->takeAt(0)) {
    discard(item->widget());
    delete item;
  }
  if (!page_) return;
  constexpr int kColumns = 5;
  figures_->setColumnStretch(kColumns, 1);
  int n = 0;
  for (const auto& [name, value] : page_->figures) {
    const int row = n / kColumns * 2, column = n % kColumns;
    ++n;
    auto* head = new ElidedLabel(QString::fromStdString(name), figures_->parentWidget());
    set_style(head, "voice", "small");
    auto* figure = new ElidedLabel(QString::fromStdString(value), figures_->parentWidget());
    figures_->addWidget(head, row, column);
    figures_->addWidget(figure, row + 1, column);
  }
}

namespace {
const bool registered_findings_view = register_view<FindingsView>(
    {.id = "findings",
     .title = "Findings",
     .icon = "findings",
     .order = 45,
     .places = {{"Profile", Spot::below, 1}},
     .fill = "run.replay",
     .link = "Findings",
     .shows = [](const Selection& s, const Bench& bench) { return bench.document(s.document) != nullptr; },
     .help = {"What the analyses say of a trace, or of the recorded step: each is a page with a sentence, figures, and "
              "tables "
              "behind them.",
              "Choose an analysis on the left. A click on a row selects its event in the Timeline; a click on a "
              "column's head "
              "sorts.",
              "Up and Down go through the analyses or the rows of a table, Ctrl+C copies the row."}});
}  // namespace

}  // namespace tenon::views
