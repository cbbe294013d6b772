#include "views/autograd/autograd_view.h"

#include <QToolButton>
#include <QVBoxLayout>

namespace tenon::views {

AutogradView::AutogradView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<AutogradModel>()) {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  bar->add_label(tr("Backward runs from the top: what each node keeps, and the gradient that reached it"));
  bar->add_stretch();
  for (auto [text, fold] : {std::pair{tr_later("Fold modules"), true}, std::pair{tr_later("Unfold"), false}}) {
    auto* b = new QToolButton(bar);
    b->setText(tr(text));
    bool f = fold;
    connect(b, &QToolButton::clicked, this, [this, f] { model_.fold_all(f); });
    bar->add(b);
  }
  box->addWidget(bar);
  box->addWidget(with_table(make_canvas(model_), bar, [this] { return model_.table(); }), 1);
  set_content(page);
  connect(&bench, &Bench::step_changed, this, &AutogradView::refresh);
  connect(&bench, &Bench::project_changed, this, &AutogradView::refresh);
  connect(&bench, &Bench::status_changed, this, [this] {
    if (!bench_.links()) refresh();
  });
  refresh();
}

void AutogradView::refresh() {
  if (step_state(tr("its autograd graph")) && model_.empty()) set_empty(true, tr("This step recorded no gradients."));
}

namespace {
const bool registered_autograd_view = register_view<AutogradView, AutogradModel>(
    {.id = "autograd",
     .title = tr_later("Autograd graph"),
     .icon = "autograd",
     .order = 70,
     .places = {{"Profile", Spot::below, 1}},
     .layouts = {"Build", "Profile", "Debug"},
     .fill = "run.replay",
     .link = tr_later("Autograd"),
     .shows =
         [](const Selection& s, const Bench& bench) {
           const bool many = s.kind == Selection::Kind::module || s.kind == Selection::Kind::step;
           return bench.links().hold(s) && (many || bench.links().grad_node_of(s) >= 0);
         },
     .help = {tr_later("The backward pass of the step: its nodes in the order they ran, grouped by module, with the "
                       "bytes each saved and the norm of its gradient."),
              tr_later("A click selects a node, its op and its tensors in every view; a click on a module folds or "
                       "unfolds it. Drag or wheel to scroll."),
              tr_later("Up and Down go from node to node, Home and End to the ends, Page Up and Page Down scroll.")}});
}  // namespace

}  // namespace tenon::views
