#include "views/tensor/tensor_view.h"

#include <QApplication>
#include <QClipboard>
#include <QLineEdit>
#include <QSpinBox>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>
#include <utility>

#include "core/error.h"
#include "projects/element_history.h"
#include "views/frame/table_list.h"
#include "views/frame/widgets.h"
#include "views/shared/format.h"
#include "views/tensor/edit_form_view.h"
#include "views/tensor/history_table.h"

namespace tenon::views {

TensorView::TensorView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<TensorModel>()) {
  auto* split = new QSplitter(Qt::Horizontal, this);
  auto* left = new QWidget(split);
  auto* left_box = new QVBoxLayout(left);
  left_box->setContentsMargins(0, 0, 0, 0);
  left_box->setSpacing(0);
  auto* left_bar = new ViewBar(left);
  filter_ = new QLineEdit(left_bar);
  filter_->setPlaceholderText(tr("Find a tensor"));
  filter_->setClearButtonEnabled(true);
  left_bar->add(filter_, 1);
  left_box->addWidget(left_bar);
  list_ = new TableList(left);
  list_->setObjectName("tensor.list");
  list_->on_select = [this](const Selection& s) {
    model_.show(static_cast<int>(s.id));
    bench_.select(s);
    follow();
  };
  left_box->addWidget(list_, 1);
  split->addWidget(left);
  auto* right = new QWidget(split);
  auto* box = new QVBoxLayout(right);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(right);
  heat_ = new QToolButton(bar);
  heat_->setText(tr("Heat map"));
  heat_->setCheckable(true);
  heat_->setToolTip(tr("Show the slice as colours (H)"));
  connect(heat_, &QToolButton::clicked, this, [this](bool on) { model_.set_heat(on); });
  bar->add(heat_);
  auto* swap = new QToolButton(bar);
  swap->setText(tr("Swap axes"));
  swap->setToolTip(tr("Rows become columns (T)"));
  connect(swap, &QToolButton::clicked, this, [this] { model_.set_axes(model_.col_axis(), model_.row_axis()); });
  bar->add(swap);
  bar->add(make_views(bar), 1);
  bar->add_button("tensor.history", tr("History"), tr("The chosen element over the last steps, and what wrote it"),
                  [this] { look_back(); });
  bar->add_button("tensor.change", tr("Change…"),
                  tr("Changes the chosen element, or all, at this op, and goes on as a branch"), [this] { change(); });
  auto* copy = new QToolButton(bar);
  copy->setText(tr("Copy slice"));
  copy->setToolTip(tr("The numbers of this slice as comma-separated text"));
  connect(copy, &QToolButton::clicked, this,
          [this] { QApplication::clipboard()->setText(QString::fromStdString(model_.values().csv())); });
  bar->add(copy);
  box->addWidget(bar);
  auto* halves = new QSplitter(Qt::Vertical, right);
  halves->addWidget(make_canvas(model_));
  halves->addWidget(history_ = make_history(halves));
  halves->setStretchFactor(0, 1);
  halves->setSizes({420, 190});
  box->addWidget(halves, 1);
  split->addWidget(right);
  split->setStretchFactor(0, 1);
  split->setStretchFactor(1, 2);
  split->setSizes({430, 800});
  set_content(split);
  model_.on_need_stats = [this](int index) { count(index); };
  connect(filter_, &QLineEdit::textChanged, list_, [this](const QString& t) { list_->set_filter(t); });
  connect(&bench, &Bench::step_changed, this, &TensorView::refresh);
  connect(&bench, &Bench::project_changed, this, &TensorView::refresh);
  connect(&bench, &Bench::status_changed, this, [this] {
    if (!bench_.links()) step_state(tr("its tensors"));
  });
  connect(&bench, &Bench::selection_changed, this, &TensorView::follow);
  connect(&bench, &Bench::run_changed, this, [this] {
    if (bench_.shown_run() != history_run_) history_->hide();
  });
  refresh();
}

/// Views are tried as they are typed: what is not finished yet says why and changes nothing.
QLineEdit* TensorView::make_views(QWidget* parent) {
  views_ = new QLineEdit(parent);
  views_->setObjectName("tensor.views");
  views_->setAccessibleName(tr("Views to try on the tensor"));
  views_->setPlaceholderText(tr("What if it were viewed as .permute(1, 0)[::2]"));
  views_->setClearButtonEnabled(true);
  views_->setMinimumWidth(120);
  views_about_ =
      tr("Tries views on this tensor: which cells of the memory they read, whether they copy, and what walking "
         "them costs. Nothing in the step changes.");
  for (const ViewFormDef& v : view_forms())
    views_about_ += "\n" + QString::fromStdString(v.usage) + "\t" + QString::fromStdString(v.help);
  views_about_ += "\n[0, ::-1, None, ...]";
  views_->setToolTip(views_about_);
  connect(views_, &QLineEdit::textEdited, this, &TensorView::try_views);
  connect(views_, &QLineEdit::textChanged, this, [this](const QString& text) {
    if (text.isEmpty()) try_views({});  // its button clears it
  });
  return views_;
}

void TensorView::try_views(const QString& text) {
  std::string why;
  try {
    model_.try_views(text.toStdString());
  } catch (const Error& e) {
    why = e.message() + (e.hint().empty() ? "" : "; " + e.hint());
    model_.refuse_views(why);
  }
  set_style(views_, "bad", why.empty() ? "false" : "true");
  views_->setToolTip(why.empty() ? views_about_ : QString::fromStdString(why));
  heat_->setChecked(model_.heat());
}

/// Under the picture, once it was asked for.
QWidget* TensorView::make_history(QWidget* parent) {
  auto* page = new QWidget(parent);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  told_ = new ElidedLabel({}, bar);
  told_->setObjectName("tensor.history.told");
  bar->add(told_, 1);
  last_ = new QSpinBox(bar);
  last_->setObjectName("tensor.history.last");
  last_->setAccessibleName(tr("How many steps"));
  last_->setRange(1, 1000);
  last_->setValue(20);
  last_->setSuffix(tr(" steps"));
  connect(last_, &QSpinBox::editingFinished, this, [this] {
    if (history_->isVisible()) look_back();
  });
  bar->add(last_);
  bar->add_button("tensor.history.close", tr("Hide"), tr("Hide the history"), [this] { history_->hide(); });
  box->addWidget(bar);
  steps_ = new TableList(page);
  steps_->setObjectName("tensor.history.table");
  steps_->setAccessibleName(tr("The element, step by step"));
  steps_->on_select = [this](const Selection& s) { bench_.select(s); };
  box->addWidget(steps_, 1);
  page->hide();
  return page;
}

std::vector<Command> TensorView::commands() {
  return {{.id = "tensor.history",
           .title = tr_later("History of the chosen element"),
           .run =
               [this] {
                 bench_.ask("view.tensor");
                 look_back();
               },
           .enabled = [this] { return has_element(); }},
          {.id = "tensor.change",
           .title = tr_later("Change the chosen element and go on as a branch…"),
           .run =
               [this] {
                 bench_.ask("view.tensor");
                 change();
               },
           .enabled = [this] { return can_change(); }}};
}

bool TensorView::has_element() const {
  return bench_.has_project() && bench_.shown_run() > 0 && bench_.links() && bench_.links().record()->sample < 0 &&
         model_.has_values() && model_.views().empty();
}

void TensorView::look_back() {
  if (!has_element()) return;
  const projects::ElementQuery query{model_.record()->name, model_.focus(), bench_.links().record()->step,
                                     last_->value()};
  const QString asked = QString("%1 %2 %3 %4")
                            .arg(bench_.shown_run())
                            .arg(query.step)
                            .arg(query.last)
                            .arg(QString::fromStdString(query.tensor + to_string(query.element)));
  if (history_->isVisible() && asked == before_) return;
  history_run_ = bench_.shown_run();
  history_->show();
  told_->set_text(tr("Replaying %1 steps…").arg(query.last));
  bench_.jobs.start(
      "history", tr("History of an element"),
      [project = bench_.project(), run = bench_.shown_run(), query](const Jobs::Report& report,
                                                                    const std::atomic<bool>&) {
        return projects::element_history(*project, run, query, report);
      },
      [this, asked](const projects::ElementHistory& h) {
        before_ = asked;
        told_->set_text(QString::fromStdString(history_text(h)));
        steps_->set_table(history_table(h));
        steps_->mark(Selection::step(bench_.links() ? bench_.links().record()->step : 0));
      },
      [this](const QString& message, const QString& hint) {
        history_->hide();
        bench_.fail(tr("The element could not be followed"), message, hint);
      });
}

bool TensorView::can_change() const { return has_element() && !bench_.project()->read_only(); }

void TensorView::change() {
  if (!can_change() || window()->findChild<EditForm*>()) return;
  EditDraft draft(*bench_.links().record(), model_.tensor(), model_.as_of(), model_.focus(),
                  value_at(model_.value(), model_.focus()));
  if (!draft.refusal().empty())
    return bench_.fail(tr("%1 cannot be changed").arg(QString::fromStdString(draft.tensor())),
                       QString::fromStdString(draft.refusal()), {});
  (new EditForm(std::move(draft), window()))->open_over(bench_);
}

TensorView::~TensorView() { model_.on_need_stats = nullptr; }

/// Statistics of a tensor of the loaded step, away from the UI thread.
void TensorView::count(int index) {
  const auto record = bench_.links().record();
  if (!record || index < 0 || index >= static_cast<int>(record->tensors.size())) return;
  const Tensor value = model_.value();
  bench_.jobs.start(
      "stats", tr("Statistics"),
      [value](const Jobs::Report& report, const std::atomic<bool>&) { return tensor_stats(value, 48, report); },
      [this, index, record](const TensorStats& stats) {
        if (record == bench_.links().record()) model_.set_stats(index, stats);  // an index belongs to its step
      },
      {}, true);
}

void TensorView::refresh() {
  if (!step_state(tr("its tensors"))) return;
  list_->set_table(model_.list());
  follow();
}

void TensorView::follow() {
  list_->mark(Selection::tensor(model_.tensor()));
  heat_->setChecked(model_.heat());
  const QString views = QString::fromStdString(model_.views());
  const bool another = std::exchange(views_of_, model_.tensor()) != model_.tensor();
  if ((another || !views_->hasFocus()) && views_->text() != views) {
    views_->setText(views);
    set_style(views_, "bad", "false");
  }
}

namespace {
const bool registered_tensor_view = register_view<TensorView, TensorModel>(
    {.id = "tensor",
     .title = tr_later("Tensor explorer"),
     .icon = "tensor",
     .order = 60,
     .places = {{"Memory", Spot::below, 1}, {"Debug", Spot::below, 0}},
     .layouts = {"Build", "Memory", "Debug"},
     .fill = "run.replay",
     .link = tr_later("Tensor"),
     .shows =
         [](const Selection& s, const Bench& bench) {
           const bool one = s.kind != Selection::Kind::module && bench.links().tensor_of(s) >= 0;
           return bench.links().hold(s) && (one || s.kind == Selection::Kind::step);
         },
     .help = {
         tr_later("A tensor of the step: the values of a slice, where each lies on the storage, the strides, and "
                  "its statistics with a histogram; values that are not finite are marked. What is written over "
                  "within the step is shown as of the op that is selected."),
         tr_later("Choose a tensor on the left. Views that are typed above are tried on it: which cells of the memory "
                  "they read, whether they copy, and what walking them costs. A click on a cell or on the storage "
                  "strip shows the other side of "
                  "it. A click on an axis makes it the rows, with Shift the columns; the wheel over an axis "
                  "changes its index, elsewhere it scrolls. History follows the chosen element over the last "
                  "steps and names the ops that wrote it; Change… sets, scales or bounds it, or all of them, at "
                  "this op, and goes on as a branch."),
         tr_later("Arrows, Page Up, Page Down, Home and End move over the cells, H colours them by value, T swaps "
                  "rows and columns.")}});
}  // namespace

}  // namespace tenon::views
