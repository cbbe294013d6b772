#include "views/results/results_view.h"

#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/frame/table_list.h"
#include "views/frame/wait_strip.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr const char* kPlacement = "placement";  ///< the job
}  // namespace

ResultsView::ResultsView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<ResultsModel>()) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  headline_ = new ElidedLabel({}, bar);
  headline_->setObjectName("results.headline");
  bar->add(headline_, 1);
  errors_ = bar->add_page("results.errors", tr("Errors"), tr("Confusion of classes, calibration and losses"),
                          [this] { show_page(ResultsModel::Page::errors); });
  curves_ = bar->add_page("results.curves", tr("ROC and PR"),
                          tr("Curves of each class against the rest, over every threshold"),
                          [this] { show_page(ResultsModel::Page::curves); });
  embedding_ =
      bar->add_page("results.embedding", tr("Embedding"), tr("Every sample as the model's last layer reads it"),
                    [this] { show_page(ResultsModel::Page::embedding); });
  add_placements(bar);
  auto* again = new QToolButton(bar);
  again->setText(tr("Evaluate…"));
  again->setToolTip(tr("Another state of the shown run"));
  connect(again, &QToolButton::clicked, this, [this] { bench_.ask("run.evaluate"); });
  bar->add(again);
  box->addWidget(bar);
  auto* split = new QSplitter(Qt::Horizontal, page);
  split->setChildrenCollapsible(false);
  split->addWidget(with_table(make_canvas(model_), bar, [this] {
    return model_.page() == ResultsModel::Page::curves      ? model_.ranking()
           : model_.page() == ResultsModel::Page::embedding ? model_.embedding()
                                                            : model_.table();
  }));
  auto* side = new QWidget(split);
  auto* column = new QVBoxLayout(side);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* side_bar = new ViewBar(side);
  listed_ = new ElidedLabel({}, side_bar);
  listed_->setObjectName("results.listed");
  set_style(listed_, "voice", "small");
  side_bar->add(listed_, 1);
  inside_ = new QToolButton(side_bar);
  inside_->setObjectName("results.inside");
  inside_->setText(tr("Look inside"));
  inside_->setToolTip(tr("Its tensors, ops and gradients, as of a step"));
  connect(inside_, &QToolButton::clicked, this, [this] { bench_.ask("sample.inside"); });
  side_bar->add(inside_);
  column->addWidget(side_bar);
  list_ = new TableList(side);
  list_->setObjectName("results.samples");
  list_->setAccessibleName(tr("Test samples, the worst first"));
  list_->on_select = [this](const Selection& s) { bench_.select(s); };
  list_->row_commands = {"sample.inside"};
  auto* down = new QSplitter(Qt::Vertical, side);
  down->setChildrenCollapsible(false);
  down->addWidget(list_);
  gallery_ = new SampleGallery(bench, down);
  down->addWidget(gallery_);
  down->setStretchFactor(0, 1);
  down->setStretchFactor(1, 1);
  column->addWidget(down, 1);
  split->addWidget(side);
  split->setStretchFactor(0, 1);
  split->setStretchFactor(1, 1);
  split->setSizes({500, 500});
  box->addWidget(split, 1);
  set_content(page);
  model_.on_choose = [this] { fill(); };
  show_page(model_.page());
  connect(gallery_, &QListWidget::itemDoubleClicked, this, [this] { bench_.ask("sample.inside"); });
  connect(list_, &QTableView::doubleClicked, this, [this] { bench_.ask("sample.inside"); });
  connect(&bench, &Bench::results_changed, this, &ResultsView::refresh);
  connect(&bench.jobs, &Jobs::changed, this, [this] {  // cancelled, or failed: nobody hands places over
    if (bench_.jobs.has(kPlacement)) return;
    for (size_t i = 0; i < placements_.size(); ++i)
      if (placements_[i]->isChecked() && !model_.has_places(projects::placements()[i].name)) place_by(nullptr);
  });
  connect(&bench, &Bench::state_changed, this, [this] {
    if (!model_.results()) refresh();
  });
  connect(&bench, &Bench::selection_changed, this, [this](const Selection& s) {
    list_->mark(s);
    gallery_->mark(s);
    inside_->setEnabled(sample() >= 0);
  });
  refresh();
}

void ResultsView::show_page(ResultsModel::Page page) {
  model_.set_page(page);
  errors_->setChecked(page == ResultsModel::Page::errors);
  curves_->setChecked(page == ResultsModel::Page::curves);
  embedding_->setChecked(page == ResultsModel::Page::embedding);
  for (QToolButton* b : placements_)
    b->setVisible(page == ResultsModel::Page::embedding && model_.results() &&
                  !model_.results()->embedding.module.empty());
  refresh_table();
}

void ResultsView::add_placements(ViewBar* bar) {
  for (const projects::Placement& p : projects::placements()) {
    auto* button = new QToolButton(bar);
    button->setObjectName(QString("results.") + p.name);
    button->setText(p.title);
    button->setToolTip(tr("Samples placed by %1: %2").arg(p.title, p.reads));
    button->setCheckable(true);
    connect(button, &QToolButton::clicked, this, [this, &p](bool on) { place_by(on ? &p : nullptr); });
    bar->add(button);
    placements_.push_back(button);
  }
}

void ResultsView::place_by(const projects::Placement* placement) {
  if (bench_.jobs.has(kPlacement)) bench_.jobs.cancel_tag(kPlacement);
  for (size_t i = 0; i < placements_.size(); ++i) placements_[i]->setChecked(placement == &projects::placements()[i]);
  model_.place_by(placement ? placement->name : "");
  if (placement && !model_.has_places(placement->name)) work_out(*placement);
  refresh_table();
}

void ResultsView::work_out(const projects::Placement& placement) {
  const auto results = model_.results();
  if (!results) return;
  bench_.jobs.start(
      kPlacement, tr("%1 of the test samples").arg(placement.title),
      [results, place = placement.place](const Jobs::Report& report, const std::atomic<bool>&) {
        return std::make_shared<const ResultsModel::Places>(place(results->embedding, report));
      },
      [this, results, name = std::string(placement.name)](std::shared_ptr<const ResultsModel::Places> places) {
        model_.set_places(results, name, std::move(places));
        refresh_table();
      },
      [this, title = QString(placement.title)](const QString& message, const QString& hint) {
        bench_.fail(tr("%1 was not worked out").arg(title), message, hint);
      });
  strip_->wait_for(bench_.jobs, kPlacement, "PCA", {});
}

std::vector<Command> ResultsView::commands() {
  auto page = [this](const char* id, const char* title, ResultsModel::Page to) {
    return Command{.id = id,
                   .title = title,
                   .menu = {},
                   .run =
                       [this, to] {
                         bench_.ask("view.results");
                         show_page(to);
                       },
                   .enabled = [this] { return bench_.results() != nullptr; }};
  };
  return {page("results.errors", tr_later("Results: confusion, calibration and losses"), ResultsModel::Page::errors),
          page("results.curves", tr_later("Results: ROC and precision-recall curves"), ResultsModel::Page::curves),
          page("results.embedding", tr_later("Results: embedding of the samples"), ResultsModel::Page::embedding),
          {.id = "sample.inside",
           .title = tr_later("Look inside the selected test sample"),
           .menu = "Run",
           .run = [this] { bench_.look_into_sample(sample()); },
           .enabled = [this] { return sample() >= 0 && !bench_.loading_step(); },
           .section = run_menu::looking}};
}

int64_t ResultsView::sample() const {
  const Selection& s = bench_.bus.current();
  const auto& r = bench_.results();
  if (s.kind != Selection::Kind::sample || s.document || !r) return -1;
  return s.id >= 0 && s.id < static_cast<int64_t>(r->predictions.size()) ? s.id : -1;
}

void ResultsView::refresh() {
  if (model_.results() != bench_.results()) {
    model_.set_results(bench_.results());
    place_by(nullptr);
    show_page(model_.page());
  }
  if (!bench_.results()) gallery_->show_samples(nullptr, {});
  if (!bench_.has_project()) return set_empty(true, tr("Open a project to see where its models err."));
  if (!model_.results()) {
    const auto* r = bench_.shown();
    if (!r || r->steps < 1)
      return set_empty(true, tr("Train first. A run that is evaluated shows here which test samples it gets wrong."),
                       bench_.training() ? QString() : tr("Train"), [this] { bench_.train(); });
    return set_empty(true, tr("Evaluate a state of the run to see which test samples it gets wrong, and why."),
                     tr("Evaluate the last state"), [this] { bench_.ask("run.evaluate_last"); });
  }
  set_empty(false);
  headline_->set_text(QString::fromStdString(model_.headline()));
  fill();
}

void ResultsView::fill() {
  if (!model_.results()) return;
  list_->set_table(model_.samples());
  list_->mark(bench_.bus.current());
  std::vector<int64_t> rows;
  for (const Table::Row& r : list_->table().rows) rows.push_back(r.selection.id);
  gallery_->show_samples(model_.results(), rows);
  inside_->setEnabled(sample() >= 0);
  const auto cell = model_.cell_chosen();
  const auto& r = *model_.results();
  const QString n = QString::fromStdString(format_grouped(static_cast<int64_t>(list_->table().rows.size())));
  if (cell)
    listed_->set_text(
        QString::fromStdString(cell->first == cell->second
                                   ? views::tr("{} recognised", r.classes[cell->first])
                                   : views::tr("{} taken for {}", r.classes[cell->first], r.classes[cell->second])) +
        ": " + n);
  else
    listed_->set_text((list_->table().rows.size() < r.predictions.size() ? tr("The %1 worst samples")
                                                                         : tr("%1 samples, the worst first"))
                          .arg(n));
}

namespace {
const bool registered_results_view = register_view<ResultsView, ResultsModel>(
    {.id = "results",
     .title = tr_later("Results"),
     .icon = "check",
     .order = 35,
     .layouts = {"Train", "Debug"},
     .fill = "run.evaluate_last",
     .link = tr_later("Results"),
     .shows =
         [](const Selection& s, const Bench& bench) {
           return s.kind == Selection::Kind::sample && s.document == 0 && bench.results() && s.id >= 0 &&
                  s.id < static_cast<int64_t>(bench.results()->predictions.size());
         },
     .help = {
         tr_later(
             "Where an evaluated model errs: which classes it takes for which, how far its confidence can be trusted, "
             "and the test samples with the largest loss. ROC and PR show how well its shares set each class apart "
             "from the rest, over every threshold. Embedding shows every sample as the model's last layer reads it, "
             "along "
             "the "
             "two directions in which samples differ most, or placed by t-SNE or UMAP. Beside them the worst samples "
             "as "
             "they are: "
             "pictures with "
             "what they were taken for, or the text around what was guessed worst."),
         tr_later(
             "A click on a cell leaves its samples in the list; a double click on a sample looks inside it: its "
             "tensors, ops and gradients, as of a step. A click on a class makes its curves stand out; over a plot the "
             "pointer reads out the threshold. A click on a point of the embedding chooses its sample."),
         tr_later(
             "The arrows go from cell to cell, from curve to curve, or from sample to sample, Esc shows all samples "
             "again.")}});
}  // namespace

}  // namespace tenon::views
