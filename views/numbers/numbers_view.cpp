#include "views/numbers/numbers_view.h"

#include <QComboBox>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "core/error.h"
#include "core/number.h"
#include "tracing/record/step_record.h"
#include "views/shared/format.h"
#include "views/shared/language.h"
#include "views/shared/settings.h"

namespace tenon::views {

namespace {

QString numbers_step(int64_t n) { return QString::fromStdString(format_grouped(n)); }

/// "amp=bf16 optimizer.lr=0.1" as pairs. Throws Error (usage) for a word without '='.
std::vector<std::pair<std::string, std::string>> typed_pairs(const QString& text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const QString& word : text.split(' ', Qt::SkipEmptyParts)) {
    const qsizetype at = word.indexOf('=');
    if (at < 1) throw Error::usage("\"" + word.toStdString() + "\" is no KEY=VALUE", "Such as amp=bf16.");
    pairs.emplace_back(word.left(at).toStdString(), word.mid(at + 1).toStdString());
  }
  return pairs;
}

/// The references as one chooses them: their names, in their order.
std::vector<const projects::AuditDef*> offered_audits() {
  std::vector<const projects::AuditDef*> all;
  for (const projects::AuditDef& def : projects::audits()) all.push_back(&def);
  std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->order < b->order; });
  return all;
}

QLineEdit* numbers_line(const QString& name, const QString& hint, const QString& tip, QWidget* parent) {
  auto* line = new QLineEdit(parent);
  line->setObjectName("numbers." + name);
  line->setPlaceholderText(hint);
  line->setAccessibleName(tip);
  line->setToolTip(tip);
  return line;
}

}  // namespace

NumbersView::NumbersView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  set_content(build());
  model_.on_choose = [this] {
    list_->mark(NumbersModel::row_of(model_.chosen()));
    bench_.select(selection_of(model_.chosen()));
  };
  connect(&bench, &Bench::project_changed, this, &NumbersView::refresh);
  connect(&bench, &Bench::run_changed, this, &NumbersView::refresh);
  connect(&bench, &Bench::status_changed, this, &NumbersView::refresh);
  offer_fields();
  refresh();
}

QWidget* NumbersView::build() {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  bar->add_label(tr("Compare step"));
  step_ = new QSpinBox(bar);
  step_->setObjectName("numbers.step");
  step_->setAccessibleName(tr("The step whose numbers are compared"));
  step_->setToolTip(step_->accessibleName());
  step_->setRange(1, 1);
  bar->add(step_);
  bar->add_label(tr("with"));
  against_ = new QComboBox(bar);
  against_->setObjectName("numbers.against");
  against_->setAccessibleName(tr("What its numbers are compared with"));
  for (const projects::AuditDef* audit : offered_audits()) {
    against_->addItem(QString::fromStdString(audit->title), QString::fromStdString(audit->name));
    against_->setItemData(against_->count() - 1, QString::fromStdString(audit->help), Qt::ToolTipRole);
  }
  connect(against_, &QComboBox::currentIndexChanged, this, &NumbersView::offer_fields);
  bar->add(against_);
  look_ = bar->add_button("numbers.compare", tr("Compare"), tr("Finds the first op whose numbers differ"),
                          [this] { compare(); });
  fault_ = new ElidedLabel({}, bar);
  fault_->setObjectName("numbers.fault");
  bar->add(fault_, 1);
  box->addWidget(bar);
  box->addWidget(build_asked(page));
  said_ = new QLabel(page);
  said_->setObjectName("numbers.said");
  said_->setContentsMargins(14, 8, 14, 8);
  said_->setWordWrap(true);
  said_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  said_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  box->addWidget(said_);
  auto* split = new QSplitter(Qt::Vertical, page);
  found_ = split;
  // The sentence takes its height first; what is left is for these, whatever they would like.
  split->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored);
  split->setMinimumHeight(200);
  split->addWidget(make_canvas(model_));
  list_ = new TableList(split);
  list_->setObjectName("numbers.table");
  list_->setAccessibleName(tr("How far the numbers of each op differ"));
  list_->on_select = [this](const Selection& s) { chose(s.id); };
  split->addWidget(list_);
  split->setStretchFactor(0, 1);
  split->setStretchFactor(1, 1);
  box->addWidget(split, 1);
  box->addStretch();
  return page;
}

QWidget* NumbersView::build_asked(QWidget* parent) {
  auto* bar = new ViewBar(parent);
  bar->add_label(tr("Differs by at most"));
  within_ = numbers_line("within", {},
                         tr("How far an op's numbers may differ: the norm of the difference over that of "
                            "the numbers. 0: not by a bit"),
                         bar);
  within_->setFixedWidth(90);
  bar->add(within_);
  set_ = numbers_line("set", "amp=bf16", tr("Settings of the recipe that hold the second time alone, KEY=VALUE"), bar);
  bar->add(set_, 2);
  file_ = numbers_line("file", "model.onnx", tr("The model file whose nodes are compared"), bar);
  bar->add(file_, 2);
  choose_ = bar->add_button("numbers.choose", tr("Choose…"), tr("Chooses a model file"), [this] { choose_file(); });
  bar->add_stretch();
  for (QLineEdit* line : {set_, file_, within_}) connect(line, &QLineEdit::returnPressed, this, &NumbersView::compare);
  return bar;
}

void NumbersView::set_theme(ThemeName theme) {
  View::set_theme(theme);
  list_->set_theme(theme);
}

std::vector<Command> NumbersView::commands() {
  const auto open = [this] {
    bench_.ask(QString("view.") + def().id);
    offer_step();
  };
  return {{.id = "run.numbers",
           .title = tr_later("See where numbers begin to differ"),
           .menu = "Run",
           .icon = "search",
           .run = open,
           .enabled = [this] { return bench_.shown_steps() > 0; },
           .section = run_menu::looking},
          {.id = "numbers.compare",
           .title = tr_later("Compare the numbers of the step that is named there"),
           .icon = "search",
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 compare();
               },
           .enabled = [this] { return bench_.shown_steps() > 0 && !bench_.jobs.has("numbers"); }}};
}

void NumbersView::offer_step() {
  steps_ = bench_.shown_steps();
  const Selection& s = bench_.bus.current();
  const bool chosen =
      s.kind == Selection::Kind::step && s.document == Document::kProject && s.id >= 1 && s.id <= steps_;
  const QSignalBlocker quiet(step_);
  step_->setRange(1, static_cast<int>(std::max<int64_t>(1, steps_)));
  step_->setValue(static_cast<int>(std::max<int64_t>(1, chosen ? s.id : steps_)));
}

void NumbersView::offer_fields() {
  const std::string against = against_->currentData().toString().toStdString();
  set_->setVisible(against == "again");
  file_->setVisible(against == "file");
  choose_->setVisible(against == "file");
  const projects::AuditDef& def = projects::audit_named(against);
  within_->setPlaceholderText(def.tolerance > 0 ? QString::fromStdString(format_exact(def.tolerance)) : QString("0"));
  against_->setToolTip(QString::fromStdString(def.help));
  fault_->set_text({});
}

void NumbersView::choose_file() {
  const QString folder = QFileInfo(bench_.file()).absolutePath();
  const QString path = QFileDialog::getOpenFileName(this, tr("A model file to compare with"), folder,
                                                    tr("Exported model (*.onnx *.pt2)"));
  if (!path.isEmpty()) file_->setText(QDir::toNativeSeparators(path));
}

bool NumbersView::asked(projects::AuditOptions& o) {
  try {
    o.against = against_->currentData().toString().toStdString();
    if (o.against == "again") o.set = typed_pairs(set_->text());
    if (o.against == "file") o.file = file_->text().trimmed().toStdString();
    if (o.against == "onnx") o.python = settings::text("python");
    if (o.against == "file" && o.file.empty()) throw Error::usage("which file?", "Choose an .onnx or .pt2 file.");
    if (const std::string text = within_->text().trimmed().toStdString(); !text.empty()) {
      const auto within = number_of(text);
      if (!within || !(*within >= 0)) throw Error::usage("\"" + text + "\" is no number from 0 on", "Such as 1e-5.");
      o.tolerance = *within;
    }
  } catch (const Error& e) {
    fault_->set_text(QString::fromStdString(e.message() + (e.hint().empty() ? "" : " – " + e.hint())));
    set_style(fault_, "voice", "small-bad");
    return false;
  }
  fault_->set_text({});
  return true;
}

void NumbersView::refresh() {
  const int64_t run = bench_.has_project() ? bench_.shown_run() : 0;
  if (of_ != run) {
    bench_.jobs.cancel_tag("numbers");
    model_.set_audit(nullptr);
    steps_ = 0;
  }
  of_ = run;
  if (!bench_.has_project())
    return set_empty(true, tr("Open a project to see where numbers of its runs begin to differ."));
  if (!of_ || bench_.shown_steps() < 1)
    return set_empty(true, tr("Train first: the numbers of a step that was done are held against a reference."));
  if (bench_.jobs.has("numbers")) return;
  set_empty(false);
  if (steps_ == 0 || (!model_.audit() && steps_ != bench_.shown_steps())) offer_step();
  step_->setMaximum(static_cast<int>(std::max<int64_t>(1, bench_.shown_steps())));
  show_found();
}

void NumbersView::show_found() {
  const auto& audit = model_.audit();
  found_->setVisible(audit != nullptr);
  said_->setText(audit ? QString::fromStdString(audit->sentence)
                       : tr("Where does a step begin to compute something else: with other settings or threads, beside "
                            "f64, in ONNX Runtime, in an exported file? The first op beyond what is allowed is named, "
                            "and how the difference grows is drawn."));
}

Selection NumbersView::selection_of(int64_t row) const {
  const auto& audit = model_.audit();
  if (!audit || row < 0 || row >= static_cast<int64_t>(audit->difference.ops.size())) return {};
  const tracing::OpDifference& op = audit->difference.ops[static_cast<size_t>(row)];
  const auto& record = bench_.links().record();
  const bool loaded = record && record->run == audit->run && record->step == audit->step && op.a <= record->ops.size();
  if (op.a && loaded) return Selection::op(op.a, "numbers");
  return op.module.empty() ? Selection::step(audit->step, "numbers") : Selection::module(op.module, "numbers");
}

void NumbersView::chose(int64_t row) {
  model_.choose(row);
  bench_.select(selection_of(row));
}

void NumbersView::compare() {
  projects::AuditOptions options;
  const projects::RunInfo* run = bench_.shown();
  if (!run || bench_.jobs.has("numbers") || !asked(options)) return;
  const int64_t step = step_->value();
  bench_.jobs.start(
      "numbers", tr("Compare the numbers of step %1").arg(numbers_step(step)),
      [project = bench_.project(), id = run->id, step, options](const Jobs::Report& report, const std::atomic<bool>&) {
        return NumbersModel::Shared(
            std::make_shared<projects::Audit>(projects::audit_step(*project, id, step, options, report)));
      },
      [this, of = of_](NumbersModel::Shared audit) {
        if (of != of_) return;
        model_.set_audit(std::move(audit));
        list_->set_table(model_.table());
        refresh();
        list_->mark(NumbersModel::row_of(model_.chosen()));
      },
      [this](const QString& message, const QString& hint) {
        refresh();
        bench_.fail(tr("The numbers were not compared"), message, hint);
      });
  set_waiting(
      bench_.jobs, [](const Jobs::State& job) { return job.tag == "numbers"; },
      tr("numbers beside those of a reference"), [this] { refresh(); });
}

namespace {
const bool registered_numbers_view = register_view<NumbersView>(
    {.id = "numbers",
     .title = tr_later("Numbers"),
     .icon = "search",
     .order = 83,
     .layouts = {"Debug"},
     .fill = "numbers.compare",
     .shows = nullptr,
     .help = {
         tr_later("Where the numbers of a step begin to differ from a reference: the step computed again with other "
                  "settings and every thread, each op in f64, ONNX Runtime on the exported model, or the nodes of a "
                  "file, each from the model's own values."),
         tr_later("A mark an op, from left to right as they run; how high it stands is how far its numbers are off. "
                  "Red squares are beyond what is allowed. The grey line is the difference that is carried along."),
         tr_later("Left and Right go from op to op, F to the first that differs. A row or a mark selects the op where "
                  "its step is loaded, its module otherwise.")}});
}  // namespace

}  // namespace tenon::views
