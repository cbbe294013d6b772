#include "views/autograd/autograd_view.h"

#include <QToolButton>
#include <QVBoxLayout>

namespace tenon::views {

AutogradView::AutogradView(Workbench& bench, QWidget* parent)
    : View("autograd", "Autograd graph", "autograd", bench, parent) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  bar->add_label("Backward runs from the top: what each node keeps, and the gradient that reached it");
  bar->add_stretch();
  for (auto [text, fold] : {std::pair{"Fold modules", true}, std::pair{"Unfold", false}}) {
    auto* b = new QToolButton(bar);
    b->setText(text);
    bool f = fold;
    connect(b, &QToolButton::clicked, this, [this, f] { bench_.autograd.fold_all(f); });
    bar->add(b);
  }
  box->addWidget(bar);
  box->addWidget(with_table(make_canvas(bench.autograd), bar, [&bench] { return bench.autograd.table(); }), 1);
  set_content(page);
  connect(&bench, &Workbench::step_changed, this, &AutogradView::refresh);
  connect(&bench, &Workbench::project_changed, this, &AutogradView::refresh);
  connect(&bench, &Workbench::status_changed, this, [this] {
    if (!bench_.links()) refresh();
  });
  refresh();
}

void AutogradView::refresh() {
  if (step_state("its autograd graph") && bench_.autograd.empty()) set_empty(true, "This step recorded no gradients.");
}

}  // namespace tenon::views
