#include "views/quantization/quantization_view.h"

#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/quantization/quantization_table.h"

namespace tenon::views {

QuantizationView::QuantizationView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  show_layers_ = bar->add_page("quantization.page.layers", tr("Layers"), tr("What the last export did to each layer"),
                               [this] { show_page(0); });
  show_plan_ =
      bar->add_page("quantization.page.plan", tr("All exports"),
                    tr("How good, small and fast the model would be in each precision"), [this] { show_page(1); });
  measure_ = bar->add_button("quantization.measure", tr("Measure all"),
                             tr("Quantizes the shown run's last state in every precision, and writes nothing"),
                             [this] { measure(); });
  export_ = bar->add_button("quantization.export", tr("Export the chosen one…"),
                            tr("Writes the file of the chosen mark (Enter)"), [this] { export_chosen(); });
  bar->add_stretch();
  box->addWidget(bar);
  pages_ = new QStackedWidget(page);
  pages_->addWidget(make_layers(pages_));
  pages_->addWidget(make_plan(pages_));
  box->addWidget(pages_, 1);
  set_content(page);
  plan_.on_choose = [this] { refresh_plan(); };
  plan_.on_export = [this] { export_chosen(); };
  connect(&bench, &Bench::quantized_changed, this, [this] {
    refresh();
    if (bench_.quantized()) show_page(0);
  });
  connect(&bench, &Bench::quantize_plan_changed, this, [this] {
    plan_.set_plan(bench_.quantize_plan());
    refresh();
    if (bench_.quantize_plan()) show_page(1);
  });
  connect(&bench, &Bench::run_changed, this, &QuantizationView::refresh);
  connect(&bench, &Bench::status_changed, this, &QuantizationView::refresh_plan);
  connect(&bench.jobs, &Jobs::changed, this, &QuantizationView::refresh_plan);
  connect(&bench, &Bench::selection_changed, list_, &TableList::mark);
  show_page(0);
  refresh();
}

void QuantizationView::set_theme(ThemeName theme) {
  View::set_theme(theme);
  canvas()->set_theme(theme);
}

QWidget* QuantizationView::make_layers(QWidget* parent) {
  auto* page = new QWidget(parent);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  said_ = new ElidedLabel({}, bar);
  said_->setObjectName("quantization.said");
  bar->add(said_, 1);
  box->addWidget(bar);
  list_ = new TableList(page);
  list_->setObjectName("quantization.layers");
  list_->setAccessibleName(tr("What fewer bits did to each layer"));
  list_->say_when_empty(tr("Nothing was exported in fewer bits yet."));
  list_->on_select = [this](const Selection& s) { bench_.select(s); };
  box->addWidget(list_, 1);
  return page;
}

QWidget* QuantizationView::make_plan(QWidget* parent) {
  auto* page = new QWidget(parent);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  plan_said_ = new ElidedLabel({}, bar);
  plan_said_->setObjectName("quantization.plan.said");
  bar->add(plan_said_, 1);
  SceneCanvas* canvas = make_canvas(plan_);
  canvas->setObjectName("quantization.plan");
  QWidget* twin = with_table(canvas, bar,
                             [this] { return bench_.quantize_plan() ? plan_table(*bench_.quantize_plan()) : Table(); });
  box->addWidget(bar);
  box->addWidget(twin, 1);
  return page;
}

void QuantizationView::show_page(int page) {
  pages_->setCurrentIndex(page);
  show_layers_->setChecked(page == 0);
  show_plan_->setChecked(page == 1);
  offer_table(page == 1);
}

int64_t QuantizationView::measured_step() const {
  const projects::RunInfo* run = bench_.shown();
  return run && !bench_.trains(run->id) ? run->steps : 0;
}

void QuantizationView::measure() {
  if (bench_.jobs.has(Bench::kQuantizePlan))
    bench_.jobs.cancel_tag(Bench::kQuantizePlan);
  else if (measured_step() > 0)
    bench_.plan_quantization(bench_.shown()->id, measured_step());
  refresh();
}

void QuantizationView::export_chosen() {
  const auto& plan = bench_.quantize_plan();
  const projects::PlanPoint* p = plan_.chosen();
  if (!plan || !p) return;
  projects::QuantizeOptions o;
  o.how.precision = p->precision;
  o.how.calibration = plan->options.calibration;
  o.samples = plan->options.samples;
  o.keep = p->kept;
  bench_.ask_for_quantized(plan->run_id, plan->step, o);
}

void QuantizationView::refresh_plan() {
  const bool measures = bench_.jobs.has(Bench::kQuantizePlan);
  measure_->setText(measures ? tr("Stop") : tr("Measure all"));
  measure_->setEnabled(measures || measured_step() > 0);
  export_->setEnabled(plan_.chosen() != nullptr);
  const auto& plan = bench_.quantize_plan();
  std::string said = plan_.chosen_text();
  if (said.empty() && plan) said = plan_.summary();
  if (said.empty() && measures) said = tr("Measuring…").toStdString();
  plan_said_->set_text(QString::fromStdString(said));
  refresh_table();
}

void QuantizationView::refresh() {
  const auto& report = bench_.quantized();
  const bool measures = bench_.jobs.has(Bench::kQuantizePlan);
  refresh_plan();
  if (!report && !bench_.quantize_plan() && !measures) {
    const QString what =
        tr("A model that is exported in fewer bits is smaller, and not quite the same: what it costs is listed here, "
           "layer "
           "by layer, and for every way to do it.");
    if (measured_step() > 0) return set_empty(true, what, tr("Measure all"), [this] { measure(); });
    return set_empty(true, what, tr("Export the model…"), [this] { bench_.ask("file.export"); });
  }
  set_empty(false);
  QString said = report ? QString::fromStdString(report->text()) : QString();
  said_->set_text(said.replace('\n', "; "));
  list_->set_table(report ? quantization_table(*report) : Table());
  if (!report && pages_->currentIndex() == 0) show_page(1);
}

namespace {
const bool registered_quantization_view = register_view<QuantizationView>(
    {.id = "quantization",
     .title = tr_later("Quantization"),
     .icon = "export",
     .order = 67,
     .layouts = {"Profile"},
     .shows = nullptr,
     .help = {
         tr_later("What the last export in fewer bits did to each layer: its signal to noise as it was written, and "
                  "that of the whole model were this layer alone quantized, the most sensitive first. What stays in "
                  "f32 is marked."),
         tr_later("A row selects its layer in every view. Export the model… makes a file: ONNX model in fewer bits. "
                  "Measure all quantizes the shown run in every precision, with none to three layers in f32, and draws "
                  "how good each is against its size; the smaller a mark, the faster, and a line joins those that no "
                  "other beats. A click chooses a mark, a double click exports it."),
         tr_later("Up and Down choose a row, Left and Right a mark; Enter exports it.")}});
}  // namespace

}  // namespace tenon::views
