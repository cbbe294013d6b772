#include "views/walk/walk_view.h"

#include <QHBoxLayout>
#include <QLineEdit>
#include <QSplitter>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/error.h"
#include "views/frame/ask_bar.h"
#include "views/walk/walk_table.h"

namespace tenon::views {

using tracing::WalkMove;

namespace {

/// A way to go from the op one stands at.
struct WalkWay {
  const char *id, *title, *button, *keys;
  WalkMove move;
  bool back;
};
constexpr WalkWay kWalkWays[] = {
    {"walk.back", tr_later("Go back to the op before"), tr_later("‹ Op"), "Shift+F8", WalkMove::op, true},
    {"walk.next", tr_later("Go on to the next op"), tr_later("Op ›"), "F8", WalkMove::op, false},
    {"walk.module.back", tr_later("Go back to the op before of the same module"), tr_later("‹ Module"), "Shift+F9",
     WalkMove::module, true},
    {"walk.module.next", tr_later("Go on to the next op of the same module"), tr_later("Module ›"), "F9",
     WalkMove::module, false},
    {"walk.into", tr_later("Go on into a module within this one"), tr_later("Into"), "F7", WalkMove::into, false},
    {"walk.out", tr_later("Go on to the first op outside this module"), tr_later("Out"), "Shift+F7", WalkMove::out,
     false},
};

}  // namespace

WalkView::WalkView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  box->addWidget(make_moves(page));
  box->addWidget(make_tables(page), 1);
  box->addWidget(make_breaks(page));
  set_content(page);
  connect(&bench, &Bench::step_changed, this, &WalkView::refresh);
  connect(&bench, &Bench::project_changed, this, &WalkView::refresh);
  connect(&bench, &Bench::status_changed, this, [this] {
    if (!walks()) refresh();
  });
  connect(&bench, &Bench::selection_changed, this, &WalkView::follow);
  refresh();
}

QWidget* WalkView::make_moves(QWidget* parent) {
  auto* bar = new ViewBar(parent);
  for (const WalkWay& way : kWalkWays) {
    const QString keys = QKeySequence(way.keys).toString(QKeySequence::NativeText);
    bar->add_button(way.id, tr(way.button), QString("%1 (%2)").arg(tr(way.title), keys),
                    [this, &way] { move(way.move, way.back); });
  }
  at_ = new ElidedLabel({}, bar);
  at_->setObjectName("walk.at");
  bar->add(at_, 1);
  show_tensors_ = bar->add_page("walk.page.tensors", tr("Tensors"), tr("What the op reads and gives, before and after"),
                                [this] { show_page(0); });
  show_alive_ = bar->add_page("walk.page.alive", tr("Alive"), tr("Every tensor that is there while the op runs"),
                              [this] { show_page(1); });
  return bar;
}

TableList* WalkView::make_list(const QString& name, const QString& of, QWidget* parent) {
  auto* list = new TableList(parent);
  list->setObjectName(name);
  list->setAccessibleName(of);
  list->on_select = [this](const Selection& s) { bench_.select(s); };
  return list;
}

QWidget* WalkView::make_tables(QWidget* parent) {
  auto* split = new QSplitter(Qt::Horizontal, parent);
  ops_ = make_list("walk.ops", tr("The ops of the step"), split);
  split->addWidget(ops_);
  auto* right = new QWidget(split);
  auto* box = new QVBoxLayout(right);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  pages_ = new QStackedWidget(right);
  tensors_ = make_list("walk.tensors", tr("Tensors of the op"), pages_);
  tensors_->say_when_empty(tr("Choose an op, or go on to the first one."));
  alive_ = make_list("walk.alive", tr("Tensors that are there"), pages_);
  pages_->addWidget(tensors_);
  pages_->addWidget(alive_);
  box->addWidget(pages_, 1);
  auto* line = new QHBoxLayout;
  line->setContentsMargins(12, 4, 8, 4);
  alive_text_ = new ElidedLabel({}, right);
  alive_text_->setObjectName("walk.alive.text");
  set_style(alive_text_, "voice", "small");
  line->addWidget(alive_text_);
  box->addLayout(line);
  split->addWidget(right);
  split->setStretchFactor(0, 1);
  split->setStretchFactor(1, 1);
  split->setSizes({560, 560});
  return split;
}

QWidget* WalkView::make_breaks(QWidget* parent) {
  breaks_ = new QLineEdit(parent);
  breaks_->setObjectName("walk.breaks");
  breaks_->setPlaceholderText("module features.*; op relu; nonfinite(output(*)) > 0");
  breaks_->setAccessibleName(tr("Where to stop"));
  breaks_->setToolTip(
      tr("Modules or ops by a pattern of names, or conditions over what ops give, with semicolons between them"));
  connect(breaks_, &QLineEdit::textChanged, this, &WalkView::judge);
  connect(breaks_, &QLineEdit::returnPressed, this, [this] { run_on(false); });
  auto* bar = new AskBar("walk", tr("Break at"), breaks_, parent);
  runs_ = {bar->add_button("walk.run.back", tr("‹ Run"), tr("Back to the last break before (Shift+F4)"),
                           [this] { run_on(true); }),
           bar->add_button("walk.run", tr("Run ›"), tr("On to the next break (F4)"), [this] { run_on(false); })};
  answer_ = bar->answer();
  return bar;
}

std::vector<Command> WalkView::commands() {
  std::vector<Command> all;
  for (const WalkWay& way : kWalkWays)
    all.push_back({.id = way.id,
                   .title = way.title,
                   .keys = way.keys,
                   .run = [this, &way] { move(way.move, way.back); },
                   .enabled = [this] { return walks(); }});
  const auto runs = [&](const char* id, const char* title, const char* keys, bool back) {
    all.push_back({.id = id,
                   .title = title,
                   .keys = keys,
                   .run =
                       [this, back] {
                         bench_.ask(QString("view.") + def().id);
                         if (breaks_->text().trimmed().isEmpty()) return breaks_->setFocus();
                         run_on(back);
                       },
                   .enabled = [this] { return walks(); }});
  };
  runs("walk.run", tr_later("Run on to the next break"), "F4", false);
  runs("walk.run.back", tr_later("Run back to the break before"), "Shift+F4", true);
  return all;
}

void WalkView::refresh() {
  cursor_.forget();
  answer_->set_text({});
  if (!step_state(tr("its ops"))) {
    lives_.clear();
    return;
  }
  lives_ = tracing::tensor_lives(*bench_.links().record());
  ops_->set_table(walk_ops_table(*bench_.links().record()));
  cursor_.take(bench_.links(), bench_.bus.current());
  fill();
  judge();
  show_page(pages_->currentIndex());
}

void WalkView::follow() {
  if (walks() && cursor_.take(bench_.links(), bench_.bus.current())) fill();
}

void WalkView::fill() {
  const tracing::StepRecord& r = *bench_.links().record();
  const uint32_t seq = cursor_.seq();
  at_->set_text(QString::fromStdString(cursor_text(r, seq)));
  alive_text_->set_text(QString::fromStdString(alive_text(r, lives_, seq)));
  tensors_->set_table(walk_tensors_table(r, seq));
  if (pages_->currentIndex() == 1) alive_->set_table(walk_alive_table(r, lives_, seq));
  ops_->mark(Selection::op(seq));
}

void WalkView::show_page(int page) {
  pages_->setCurrentIndex(page);
  if (page == 1 && walks()) alive_->set_table(walk_alive_table(*bench_.links().record(), lives_, cursor_.seq()));
  show_tensors_->setChecked(page == 0);
  show_alive_->setChecked(page == 1);
}

void WalkView::go(uint32_t seq) {
  if (seq) bench_.select(Selection::op(seq, "walk"));
}

void WalkView::move(WalkMove how, bool back) {
  if (!walks()) return;
  go(tracing::walk_to(*bench_.links().record(), cursor_.seq(), how, back));
}

void WalkView::judge() {
  QString fault;
  bool any = false;
  try {
    any = !tracing::parse_breaks(breaks_->text().toStdString()).empty();
  } catch (const Error& e) {
    fault = QString::fromStdString(e.message() + (e.hint().empty() ? "" : "; " + e.hint()));
  }
  answer_->set_text(fault);
  set_style(answer_, "voice", fault.isEmpty() ? "small" : "small-bad");
  for (QToolButton* b : runs_) b->setEnabled(any && walks());
}

/// What many ops give is looked at: away from the UI thread.
void WalkView::run_on(bool back) {
  if (!runs_.front()->isEnabled() || bench_.jobs.has("walk")) return;
  const auto record = bench_.links().record();
  const auto breaks = tracing::parse_breaks(breaks_->text().toStdString());
  bench_.jobs.start(
      "walk", tr("Run to the next break"),
      [record, breaks, from = cursor_.seq(), back](const Jobs::Report&, const std::atomic<bool>&) {
        return tracing::run_to_break(*record, from, breaks, back);
      },
      [this, record, breaks](const tracing::WalkRun& run) {
        if (record != bench_.links().record()) return;
        if (run.stop) go(run.stop->seq);
        answer_->set_text(QString::fromStdString(walk_run_text(*record, breaks, run)));
        set_style(answer_, "voice", run.stop ? "news" : "small");
      },
      [this](const QString& message, const QString& hint) {
        bench_.fail(tr("The break could not be looked for"), message, hint);
      },
      true);
}

namespace {
const bool registered_walk_view = register_view<WalkView>(
    {.id = "walk",
     .title = tr_later("Step through"),
     .icon = "step",
     .order = 62,
     .places = {{"Debug", Spot::below, 2}},
     .layouts = {"Debug"},
     .fill = "run.replay",
     .link = tr_later("Step through"),
     .shows = [](const Selection& s, const Bench& bench) { return bench.links().op_of(s) != 0; },
     .help = {
         tr_later("The ops of a recorded step in the order in which they ran, forward, backward and optimizer, and of "
                  "the op one stands at every tensor it read or gave, before it and after it, also where a later op "
                  "wrote over it. The op is the one that is selected: every other view stands at it, too."),
         tr_later("A row of the left table is the op one goes to, a row of the right one shows its tensor. Run goes on "
                  "to the next op of a module or of a kind, or to the first whose output fulfils a condition."),
         tr_later("F8 and Shift+F8 go to the next op and back, F9 and Shift+F9 within the module, F7 into a module and "
                  "Shift+F7 out of it, F4 and Shift+F4 to the next break and back.")}});
}  // namespace

}  // namespace tenon::views
