#include "views/compare/compare_view.h"

#include <QComboBox>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QStackedWidget>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include "projects/compare.h"
#include "tracing/analyses/time_match.h"
#include "views/shared/format.h"

namespace tenon::views {

namespace {
constexpr const char* kCompareJob = "compare";
constexpr size_t kCompareRows = 500;

/// What a side is read from: of a document what it holds; of a checkpoint the project, which reads it in the job.
struct CompareInput {
  projects::Comparable ready;
  std::shared_ptr<projects::Project> project;
  int64_t run = 0, step = 0;
  Subject subject;

  CompareInput(const CompareSide& side, const Bench& bench) {
    subject.document = side.document;
    if (const Document* d = bench.document(side.document)) {
      ready = {d->part_of(side.rank).trace, d->snapshot, d->model};
      subject = subject_of(*d, side.rank);
    } else if (const auto* c = bench.contents().checkpoint(side.checkpoint)) {
      project = bench.project();
      run = c->run;
      step = c->step;
    }
  }
  projects::Comparable read() const {
    if (!project) return ready;
    return {.model = projects::weights_after(*project, run, step)};
  }
  /// Of two traces which times belong together; null else.
  std::shared_ptr<const tracing::TimeMatch> times_with(const CompareInput& b) const {
    if (!ready.trace || !b.ready.trace) return nullptr;
    return std::make_shared<const tracing::TimeMatch>(*ready.trace, subject.origin, *b.ready.trace, b.subject.origin);
  }
};
}  // namespace

CompareView::CompareView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  build();
  connect(&bench, &Bench::documents_changed, this, &CompareView::refresh);
  connect(&bench, &Bench::project_changed, this, &CompareView::refresh);
  connect(&bench.jobs, &Jobs::changed, this, [this] {
    if (!model_.ready()) refresh();  // what is being read
  });
  for (Jobs* jobs : {&bench.jobs, &bench.files})
    connect(jobs, &Jobs::changed, this, [this] {
      // Once what has ended was handed over.
      if (model_.waits_for_next()) QTimer::singleShot(0, this, &CompareView::look_for_next);
    });
  connect(&bench, &Bench::selection_changed, this, [this](const Selection& s) {
    pane_->mark(model_.row_of(s));
    other_->setEnabled(static_cast<bool>(model_.other(s)));
  });
  model_.flame().on_select = [this](const Selection&) {
    const Document* d = bench_.shown_document();
    if (const Selection s = model_.chosen_box(d ? d->id : Document::kProject)) bench_.select(s);
  };
  refresh();
}

CompareView::~CompareView() { model_.flame().on_select = nullptr; }

void CompareView::build() {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  a_ = add_box(bar, "compare.a", "A", tr("What is compared"));
  swap_ = new QToolButton(bar);
  swap_->setObjectName("compare.swap");
  swap_->setText("⇄");
  swap_->setToolTip(tr("A for B and B for A"));
  swap_->setAccessibleName(tr("Swap A and B"));
  connect(swap_, &QToolButton::clicked, this, [this] {
    model_.swap();
    changed();
  });
  bar->add(swap_);
  b_ = add_box(bar, "compare.b", "B", tr("What it is compared with: of the same kind"));
  auto* with = new QToolButton(bar);
  with->setObjectName("compare.with");
  with->setText(tr("Compare with…"));
  with->setToolTip(tr("Open a file to compare A with"));
  connect(with, &QToolButton::clicked, this, [this] { compare_with(); });
  bar->add(with);
  bar->add_stretch();
  together_ = new QToolButton(bar);
  together_->setObjectName("compare.together");
  together_->setText(tr("Same time"));
  together_->setToolTip(
      tr("The timeline of each shows what was seen of the other: the same place of the same step, or what is as far "
         "from the beginning"));
  together_->setCheckable(true);
  together_->setEnabled(false);
  connect(together_, &QToolButton::toggled, this, &CompareView::tell_together);
  bar->add(together_);
  other_ = new QToolButton(bar);
  other_->setObjectName("compare.other");
  other_->setText(tr("Show in the other"));
  other_->setToolTip(tr("What is selected, where it is in the other of the two (Ctrl+B)"));
  other_->setEnabled(false);
  connect(other_, &QToolButton::clicked, this, &CompareView::show_other);
  bar->add(other_);
  search_ = new QLineEdit(bar);
  search_->setObjectName("compare.search");
  search_->setPlaceholderText(tr("Find by name"));
  search_->setClearButtonEnabled(true);
  search_->setFixedWidth(150);
  connect(search_, &QLineEdit::textChanged, this, [this](const QString& text) {
    pane_->set_filter(text);
    model_.flame().set_filter({.name = text.toStdString()});
  });
  bar->add(search_);
  box->addWidget(bar);
  pages_ = new QStackedWidget(page);
  state_ = new EmptyState(pages_);
  pages_->addWidget(state_);
  pane_ = new FindingPane("compare", pages_);
  pane_->set_last(make_canvas(model_.flame()), tr("Flame graph"));
  pane_->on_select = [this](const Selection& row) {
    const Document* d = bench_.shown_document();
    if (const Selection s = model_.chosen(row, d ? d->id : Document::kProject)) bench_.select(s);
  };
  pages_->addWidget(pane_);
  box->addWidget(pages_, 1);
  set_content(page);
}

QComboBox* CompareView::add_box(ViewBar* bar, const char* name, const QString& label, const QString& tip) {
  bar->add_label(label);
  auto* box = new QComboBox(bar);
  box->setObjectName(name);
  box->setAccessibleName(label + ": " + tip);
  box->setToolTip(tip);
  box->setPlaceholderText(tr("Choose…"));
  box->setMinimumContentsLength(12);
  box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  box->setMaximumWidth(280);
  connect(box, &QComboBox::activated, this, [this, box, of_a = label == "A"](int index) {
    const auto sides = of_a ? model_.offered() : model_.offered_b();
    if (index < 0 || static_cast<size_t>(index) >= sides.size()) return;
    of_a ? model_.choose_a(sides[static_cast<size_t>(index)]) : model_.choose_b(sides[static_cast<size_t>(index)]);
    changed();
  });
  bar->add(box);
  return box;
}

void CompareView::set_theme(ThemeName theme) {
  View::set_theme(theme);
  pane_->set_theme(theme);
}

void CompareView::refresh() {
  const Document* d = bench_.shown_document();
  const bool waited = model_.waits_for_next();
  const bool other =
      model_.set_offered(comparable_sides(bench_.documents(), bench_.contents()), d ? d->id : Document::kProject);
  // The view of a file's kind comes to the front once it was opened: this one is what the file was opened for.
  if (waited && !model_.waits_for_next() && model_.ready())
    QTimer::singleShot(0, this, [this] { bench_.ask(QString("view.") + def().id); });
  list_sides();
  if (other) return changed();
  if (!model_.ready()) changed();
}

void CompareView::list_sides() {
  auto fill = [](QComboBox* box, const std::vector<CompareSide>& sides, const std::optional<CompareSide>& chosen) {
    const QSignalBlocker quiet(box);
    bool same = box->count() == static_cast<int>(sides.size());
    for (size_t i = 0; same && i < sides.size(); ++i)
      same = box->itemText(static_cast<int>(i)) == QString::fromStdString(sides[i].title);
    if (!same) {
      box->clear();
      for (const CompareSide& s : sides) {
        box->addItem(QString::fromStdString(s.title));
        box->setItemData(box->count() - 1, QString::fromStdString(s.tip), Qt::ToolTipRole);
      }
    }
    int at = -1;
    for (size_t i = 0; i < sides.size(); ++i)
      if (chosen && sides[i] == *chosen) at = static_cast<int>(i);
    box->setCurrentIndex(at);
    box->setEnabled(!sides.empty());
  };
  fill(a_, model_.offered(), model_.a());
  fill(b_, model_.offered_b(), model_.b());
  swap_->setEnabled(model_.ready());
}

/// Other sides, or none: what was asked for before is of no use.
void CompareView::changed() {
  list_sides();
  if (asked_ && (!model_.ready() || *asked_ != Sides{*model_.a(), *model_.b()})) {
    asked_.reset();
    bench_.jobs.cancel_tag(kCompareJob);
  }
  if (!model_.page()) pane_->set_page(nullptr);
  tell_together();
  other_->setEnabled(static_cast<bool>(model_.other(bench_.bus.current())));
  if (model_.ready()) {
    set_empty(false);
    if (!model_.page()) say({});
    return look();
  }
  const QString sentence = QString::fromStdString(model_.missing());
  if (model_.can_choose()) {
    set_empty(false);
    return say(sentence);
  }
  if (model_.offered().empty() && !bench_.reading().isEmpty())
    return set_waiting(bench_.jobs, &Bench::reads_document, tr("what is different will be here once two are open."));
  set_empty(true, sentence, model_.offered().empty() ? tr("Open…") : tr("Compare with…"), [this] {
    const Document* d = bench_.shown_document();
    compare_with(d);
  });
}

void CompareView::say(const QString& sentence, const QString& button, std::function<void()> run) {
  state_->set(sentence, button, std::move(run));
  pages_->setCurrentWidget(state_);
}

void CompareView::ask() {
  // Files may be large: they are compared for one who looks.
  if (!model_.ready() || !in_sight()) return;
  const Sides sides{*model_.a(), *model_.b()};
  if (asked_ == sides) return;
  asked_ = sides;
  start(sides);
}

void CompareView::start(const Sides& sides) {
  struct Result {
    std::shared_ptr<const FindingPage> page;
    std::shared_ptr<const tracing::FlamePair> flames;
    std::shared_ptr<const tracing::TimeMatch> times;
  };
  bench_.jobs.start(
      kCompareJob,
      tr("Compare %1 with %2")
          .arg(QString::fromStdString(sides.first.title), QString::fromStdString(sides.second.title)),
      [a = CompareInput(sides.first, bench_), b = CompareInput(sides.second, bench_)](const Jobs::Report& report,
                                                                                      const std::atomic<bool>&) {
        projects::Comparison c = projects::compare(a.read(), b.read(), kCompareRows, report);
        if (c.flames)
          c.flames->move_events(static_cast<traces::EventId>(a.subject.first_event),
                                static_cast<traces::EventId>(b.subject.first_event));
        return Result{std::make_shared<const FindingPage>(make_page(c.finding, a.subject, b.subject)), c.flames,
                      a.times_with(b)};
      },
      [this, sides](Result r) {
        if (asked_ != sides) return;  // something else is compared by now
        model_.set_result(std::move(r.page), std::move(r.flames), std::move(r.times));
        show_result();
      },
      [this, sides](const QString& message, const QString& hint) {
        if (asked_ == sides) say(message + (hint.isEmpty() ? "." : ". " + hint));
      });
  pages_->setCurrentWidget(state_);
  state_->wait_for(
      bench_.jobs, [](const Jobs::State& job) { return job.tag == kCompareJob; },
      tr("what is different in B will be here in a moment."),
      [this] {
        say(tr("The comparison was cancelled."), tr("Compare"), [this] {
          asked_.reset();
          ask();
        });
      });
}

void CompareView::show_result() {
  pages_->setCurrentWidget(pane_);
  pane_->set_page(model_.page());
  pane_->show_last(model_.flame().flame() && !model_.flame().flame()->empty());
  pane_->mark(model_.row_of(bench_.bus.current()));
  other_->setEnabled(static_cast<bool>(model_.other(bench_.bus.current())));
  tell_together();
  emit bench_.state_changed();  // what can be done with it
}

/// A is a document, or as it is (null); the file that is opened now is B. Without a file nothing changes.
void CompareView::compare_with(const Document* document) {
  const int id = document ? document->id : Document::kProject;
  const size_t rank = document ? document->rank : 0;
  bench_.ask("file.open");
  if (!bench_.opens_file()) return;
  model_.compare_with_next(id, rank);
  changed();
}

/// What was to be B could not be read, was cancelled, or was a project.
void CompareView::look_for_next() {
  if (!model_.waits_for_next() || bench_.opens_file()) return;
  model_.stop_waiting();
  changed();
}

void CompareView::tell_together() {
  together_->setEnabled(model_.times() != nullptr);
  if (model_.times() && together_->isChecked())
    bench_.set_together(Bench::Together{model_.a()->document, model_.b()->document, model_.times()});
  else
    bench_.set_together({});
}

void CompareView::show_other() {
  if (const Selection s = model_.other(bench_.bus.current())) bench_.select(s);
}

std::vector<Command> CompareView::commands() {
  auto in_view = [this](std::function<void()> run) {
    return [this, run = std::move(run)] {
      bench_.ask(QString("view.") + def().id);
      run();
    };
  };
  return {{.id = "compare.with",
           .title = tr_later("Compare the file that is shown with…"),
           .menu = "File",
           .run = in_view([this] { compare_with(bench_.shown_document()); }),
           .enabled = [this] { return bench_.shown_document() != nullptr; },
           .section = 2},
          {.id = "compare.other",
           .title = tr_later("Show in the other of the two that are compared"),
           .menu = "Go",
           .keys = "Ctrl+B",
           .run = [this] { show_other(); },
           .enabled = [this] { return static_cast<bool>(model_.other(bench_.bus.current())); }},
          {.id = "compare.together",
           .title = tr_later("Show the same time of both that are compared in the Timeline"),
           .menu = {},
           .run = [this] { together_->toggle(); },
           .enabled = [this] { return together_->isEnabled(); },
           .checked = [this] { return together_->isChecked(); }},
          {.id = "compare.swap",
           .title = tr_later("Swap A and B"),
           .menu = {},
           .run = in_view([this] { swap_->click(); }),
           .enabled = [this] { return model_.ready(); }},
          {.id = "compare.flame",
           .title = tr_later("Show the difference of the flame graphs"),
           .menu = {},
           .icon = "flame",
           .run = in_view([this] { pane_->open_last(); }),
           .enabled = [this] { return model_.ready() && model_.a()->kind != Document::Kind::model; }}};
}

namespace {
const bool registered_compare_view = register_view<CompareView>(
    {.id = "compare",
     .title = tr_later("Compare"),
     .icon = "compare",
     .order = 47,
     .places = {{"Profile", Spot::below, 3}, {"Memory", Spot::below, 2}},
     .layouts = {"Train", "Profile", "Memory"},
     .help = {
         tr_later("What is different in B: of two traces why a step takes longer, in items that add up; of two memory "
                  "snapshots who holds more; of two models or checkpoints which weights changed and by how much, and "
                  "what is another operation. Of traces and snapshots the flame graphs of both in one: a box is as "
                  "wide as the larger of the two and coloured by what it changed."),
         tr_later("Choose A and B in the two boxes: files that are open, and checkpoints of the project. A click on a "
                  "row or a box selects what it is about in the one that is shown; Show in the other goes to its "
                  "counterpart, also of a marked stretch of time. Same time makes the Timeline of each show the place "
                  "that was seen of the other. In the flame graph a double click makes a box fill the width."),
         tr_later("Up and Down go through the rows, Ctrl+C copies one, Ctrl+B goes to the same in the other of the "
                  "two. In the flame graph the arrows go to neighbours, callers and what is called, Enter makes a box "
                  "fill the width, Backspace goes one caller back, Escape shows everything.")}});
}  // namespace

}  // namespace tenon::views
