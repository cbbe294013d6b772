#include "views/builder/builder_view.h"

#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "engine/spec/layer_registry.h"
#include "views/shared/format.h"

namespace tenon::views {

BuilderView::BuilderView(Workbench& bench, QWidget* parent) : View("builder", "Model builder", "model", bench, parent) {
  page_ = new QWidget(this);
  auto* box = new QVBoxLayout(page_);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page_);
  auto button = [&](const QString& text, const QString& tip, std::function<void()> run) {
    auto* b = new QToolButton(bar);
    b->setText(text);
    b->setToolTip(tip);
    connect(b, &QToolButton::clicked, this, [run] { run(); });
    bar->add(b);
    return b;
  };
  button("Add layer", "Or type its name over the canvas", [this] { open_palette(); })->setObjectName("builder.add");
  button("Arrange", "Lay the layers out from top to bottom", [this] { bench_.builder.auto_layout(); });
  button("Fit", "Show the whole model", [this] { bench_.builder.fit(); });
  bar->add_stretch();
  auto* hint = new ElidedLabel("Drag from port to port to wire · Delete removes · Ctrl+Z undoes", bar);
  set_style(hint, "voice", "small");
  bar->add(hint);
  box->addWidget(bar);
  box->addWidget(with_table(make_canvas(bench.builder), bar, [&bench] { return bench.builder.table(); }), 1);
  set_content(page_);
  picker_ = new Picker(this);
  bench.builder.on_palette = [this](float x, float y, const std::string& typed) {
    open_palette(QString::fromStdString(typed),
                 canvas()->mapTo(this, QPoint(static_cast<int>(x), static_cast<int>(y))));
  };
  connect(&bench, &Workbench::project_changed, this, &BuilderView::refresh);
  refresh();
}

void BuilderView::open_palette(const QString& typed, QPoint at) {
  if (at.x() < 0) at = {12, 40};
  picker_->open(
      "Add a layer",
      [this](const QString& text) {
        std::vector<std::pair<int, const LayerInfo*>> found;
        for (const LayerDef& def : layers()) {
          const LayerInfo& l = def.info;
          int score = std::max(fuzzy_score(text.toStdString(), l.type),
                               fuzzy_score(text.toStdString(), l.group + " " + l.type) - 50);
          if (score >= 0) found.emplace_back(score, &l);
        }
        std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
        std::vector<Picker::Item> items;
        for (auto& [score, l] : found) {
          std::string type = l->type;
          items.push_back({QString::fromStdString(type), QString::fromStdString(l->help),
                           QString::fromStdString(l->group), [this, type] {
                             bench_.builder.insert_layer(type);
                             canvas()->setFocus();
                           }});
        }
        return items;
      },
      typed, at, 460);
}

void BuilderView::refresh() {
  if (!bench_.has_project())
    set_empty(true, "Start a project from a template: its model will be here, ready to be changed and trained.",
              "New from a template", [this] {
                if (on_new) on_new();
              });
  else
    set_empty(false);
}

}  // namespace tenon::views
