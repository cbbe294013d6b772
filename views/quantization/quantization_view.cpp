#include "views/quantization/quantization_view.h"

#include <QVBoxLayout>

#include "views/quantization/quantization_table.h"

namespace tenon::views {

QuantizationView::QuantizationView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  said_ = new ElidedLabel({}, bar);
  said_->setObjectName("quantization.said");
  bar->add(said_, 1);
  box->addWidget(bar);
  list_ = new TableList(page);
  list_->setObjectName("quantization.table");
  list_->setAccessibleName(tr("What fewer bits did to each layer"));
  list_->on_select = [this](const Selection& s) { bench_.select(s); };
  box->addWidget(list_, 1);
  set_content(page);
  connect(&bench, &Bench::quantized_changed, this, &QuantizationView::refresh);
  connect(&bench, &Bench::selection_changed, list_, &TableList::mark);
  refresh();
}

void QuantizationView::refresh() {
  const auto& report = bench_.quantized();
  if (!report)
    return set_empty(true,
                     tr("A model that is exported in fewer bits is smaller, and not quite the same: what it costs is "
                        "listed here, layer by layer."),
                     tr("Export the model…"), [this] { bench_.ask("file.export"); });
  set_empty(false);
  QString said = QString::fromStdString(report->text());
  said_->set_text(said.replace('\n', "; "));
  list_->set_table(quantization_table(*report));
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
         tr_later("A row selects its layer in every view. Export the model… makes a file: ONNX model in fewer bits."),
         tr_later("Up and Down choose a row.")}});
}  // namespace

}  // namespace tenon::views
