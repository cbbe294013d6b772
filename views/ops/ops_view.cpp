#include "views/ops/ops_view.h"

#include <QComboBox>
#include <QCompleter>
#include <QLineEdit>
#include <QToolButton>
#include <QVBoxLayout>

#include "engine/op/op.h"
#include "tracing/ops/op_definition.h"
#include "tracing/ops/op_story.h"
#include "tracing/record/step_record.h"
#include "views/frame/code_editor.h"
#include "views/frame/finding_pane.h"

namespace tenon::views {

namespace {
const QString kOpJob = "op";
}

OpsView::OpsView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  set_content(build());
  set_empty(false);  // the definitions are always there
  connect(&bench, &Bench::selection_changed, this, &OpsView::follow);
  connect(&bench, &Bench::step_changed, this, &OpsView::refresh);
  refresh();
}

QWidget* OpsView::build() {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  names_ = new QComboBox(bar);
  names_->setObjectName("ops.name");
  names_->setAccessibleName(tr("Op"));
  names_->setToolTip(tr("An op by its name; an op that is selected in the step comes here by itself"));
  names_->setEditable(true);
  names_->setInsertPolicy(QComboBox::NoInsert);
  for (const OpDef& op : all_ops()) names_->addItem(op.info.name);
  names_->completer()->setFilterMode(Qt::MatchContains);
  names_->completer()->setCompletionMode(QCompleter::PopupCompletion);
  connect(names_, &QComboBox::activated, this, [this](int row) { choose(names_->itemText(row).toStdString()); });
  bar->add(names_);
  const auto add = [&](Page which, const char* name, const QString& text, const QString& tip) {
    pages_[static_cast<size_t>(which)] = bar->add_page(name, text, tip, [this, which] { turn_to(which); });
  };
  add(Page::story, "ops.story", tr("One call"),
      tr("The call that is selected, from its inputs over its kernel to the ops of its gradient, with its values"));
  add(Page::calls, "ops.calls", tr("Calls"), tr("Every call of the op in the step, with what each one achieved"));
  add(Page::definition, "ops.definition", tr("Definition"),
      tr("What it takes, its gradient and decomposition as the ops that they run, autocast, ONNX, kernels"));
  add(Page::source, "ops.source", tr("Source"), tr("The text of its definition"));
  bar->add_stretch();
  box->addWidget(bar);
  both_ = new QStackedWidget(page);
  pane_ = new FindingPane("ops", both_);
  pane_->on_select = [this](const Selection& s) { bench_.select(s); };
  source_ = new CodeEditor(both_);
  source_->setObjectName("ops.text");
  source_->setAccessibleName(tr("Source"));
  source_->setReadOnly(true);
  both_->addWidget(pane_);
  both_->addWidget(source_);
  box->addWidget(both_, 1);
  return page;
}

void OpsView::set_theme(ThemeName theme) {
  View::set_theme(theme);
  pane_->set_theme(theme);
  source_->set_theme(theme);
}

/// What is selected is looked into, unless it was chosen here: the list of calls stays while one walks along it.
void OpsView::follow(const Selection& s) {
  pane_->mark(s);
  const auto& links = bench_.links();
  const uint32_t seq = links ? links.op_of(s) : 0;
  if (seq == 0 || seq > links.record()->ops.size()) return;
  const std::string& name = links.record()->ops[seq - 1].name;
  if (seq == call_ && name == op_) return;
  const bool from_calls = s.source == def().id && page_ == Page::calls;
  call_ = seq;
  op_ = name;
  if (from_calls) return;
  if (page_ == Page::definition && s.source != def().id) page_ = Page::story;
  refresh();
}

void OpsView::choose(const std::string& op) {
  const auto& links = bench_.links();
  const bool same = links && call_ && call_ <= links.record()->ops.size() && links.record()->ops[call_ - 1].name == op;
  if (!same) call_ = 0;
  op_ = op;
  if (page_ == Page::story && !call_) page_ = Page::definition;
  refresh();
}

void OpsView::turn_to(Page page) {
  page_ = page;
  refresh();
}

void OpsView::refresh() {
  const auto& links = bench_.links();
  const size_t ops = links ? links.record()->ops.size() : 0;
  if (call_ > ops || (call_ && links.record()->ops[call_ - 1].name != op_)) call_ = 0;  // of another step
  pages_[static_cast<size_t>(Page::story)]->setEnabled(call_ != 0);
  pages_[static_cast<size_t>(Page::calls)]->setEnabled(ops > 0);
  if ((page_ == Page::story && !call_) || (page_ == Page::calls && !ops)) page_ = Page::definition;
  for (size_t p = 0; p < 4; ++p) pages_[p]->setChecked(p == static_cast<size_t>(page_));
  names_->setCurrentIndex(names_->findText(QString::fromStdString(op_)));
  both_->setCurrentIndex(page_ == Page::source ? 1 : 0);
  asked_ = false;
  look();
}

void OpsView::ask() {
  if (asked_) return;
  asked_ = true;
  const Links links = bench_.links();
  const Subject subject{Document::kProject, 0, links.record(), def().id};
  bench_.jobs.start(
      kOpJob, tr("Look into %1").arg(QString::fromStdString(op_)),
      [links, subject, op = op_, call = call_, page = page_](const Jobs::Report&, const std::atomic<bool>&) {
        const tracing::Finding f = page == Page::story   ? tracing::op_story(*links.record(), call)
                                   : page == Page::calls ? tracing::op_calls(*links.record(), op)
                                                         : tracing::op_definition(op);
        return std::make_shared<const FindingPage>(make_page(f, subject));
      },
      [this](const std::shared_ptr<const FindingPage>& page) { show(page); },
      [this](const QString& message, const QString& hint) {
        pane_->set_page(nullptr);
        pane_->say(message + (hint.isEmpty() ? "" : ". " + hint));
      },
      true);
}

void OpsView::show(const std::shared_ptr<const FindingPage>& page) {
  if (page_ != Page::source) {
    FindingPage shown = *page;
    std::erase_if(shown.tables, [](const FindingPage::Part& t) { return t.title == "Source" || t.table.rows.empty(); });
    pane_->set_page(std::make_shared<const FindingPage>(std::move(shown)));
    pane_->mark(bench_.bus.current());
    return;
  }
  QString text;
  for (const FindingPage::Part& t : page->tables)
    if (t.title == "Source")
      for (const Table::Row& row : t.table.rows) text += QString::fromStdString(row.cells[0].text) + "\n";
  source_->setPlainText(text.isEmpty() ? tr("The source of this op is not here: it is a plug-in's.") : text);
}

namespace {
const bool registered_ops_view = register_view<OpsView>(
    {.id = "ops",
     .title = tr_later("Op"),
     .icon = "search",
     .order = 72,
     .layouts = {"Debug"},
     .link = tr_later("Inside the op"),
     .shows = [](const Selection& s, const Bench& bench) { return bench.links() && bench.links().op_of(s) != 0; },
     .help = {
         tr_later("What an op is and what one call of it did: who calls it with what, what dispatch makes of that, the "
                  "kernel and its rates, what is kept for the gradient, and the ops that the gradient runs; all its "
                  "calls in the step; its definition and its source."),
         tr_later("It follows the op that is selected. The list holds every op, a step or not. A row selects the op "
                  "that it tells of in every view."),
         tr_later("Letters in the list find an op, Up and Down choose a row.")}});
}  // namespace

}  // namespace tenon::views
