#include "views/builder/builder_view.h"

#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "engine/spec/layer_registry.h"
#include "views/shared/format.h"

namespace tenon::views {

BuilderView::BuilderView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<BuilderModel>()) {
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
  button(tr("Add layer"), tr("Or type its name over the canvas"), [this] {
    open_palette();
  })->setObjectName("builder.add");
  button(tr("Arrange"), tr("Lay the layers out from top to bottom"), [this] { model_.auto_layout(); });
  button(tr("Fit"), tr("Show the whole model"), [this] { model_.fit(); });
  bar->add_stretch();
  auto* hint = new ElidedLabel(tr("Drag from port to port to wire · Delete removes · Ctrl+Z undoes"), bar);
  set_style(hint, "voice", "small");
  bar->add(hint);
  box->addWidget(bar);
  box->addWidget(with_table(make_canvas(model_), bar, [this] { return model_.table(); }), 1);
  set_content(page_);
  picker_ = new Picker(this);
  model_.on_palette = [this](float x, float y, const std::string& typed) {
    open_palette(QString::fromStdString(typed),
                 canvas()->mapTo(this, QPoint(static_cast<int>(x), static_cast<int>(y))));
  };
  model_.on_inspect = [this] {
    bench_.ask("view.details");
    if (auto* name = window()->findChild<QWidget*>("inspector.name")) name->setFocus(Qt::ShortcutFocusReason);
  };
  connect(&bench, &Bench::project_changed, this, &BuilderView::refresh);
  connect(&bench, &Bench::recipe_changed, this, &BuilderView::refresh);
  refresh();
}

BuilderView::~BuilderView() {
  model_.on_palette = nullptr;
  model_.on_inspect = nullptr;
}

std::vector<Command> BuilderView::commands() {
  auto project = [this] { return bench_.has_project(); };
  return {
      {.id = "edit.undo",
       .title = tr_later("Undo"),
       .menu = "Edit",
       .keys = "Ctrl+Z",
       .run = [this] { model_.undo(); },
       .enabled = [this] { return model_.can_undo(); },
       .text =
           [this] {
             return model_.can_undo() ? tr("Undo %1").arg(QString::fromStdString(model_.undo_text())) : tr("Undo");
           }},
      {.id = "edit.redo",
       .title = tr_later("Redo"),
       .menu = "Edit",
       .keys = "Ctrl+Shift+Z",
       .run = [this] { model_.redo(); },
       .enabled = [this] { return model_.can_redo(); },
       .text =
           [this] {
             return model_.can_redo() ? tr("Redo %1").arg(QString::fromStdString(model_.redo_text())) : tr("Redo");
           }},
      {.id = "edit.select_all",
       .title = tr_later("Select all layers"),
       .menu = "Edit",
       .run = [this] { model_.select_all(); },
       .enabled = project},
      {.id = "model.add",
       .title = tr_later("Add layer…"),
       .menu = "Model",
       .keys = "Ctrl+L",
       .icon = "add",
       .run =
           [this] {
             bench_.ask("view.builder");
             open_palette();
           },
       .enabled = project},
      {.id = "model.delete",
       .title = tr_later("Delete selected layers"),
       .menu = "Model",
       .run = [this] { model_.remove_selected(); },
       .enabled = [this] { return !model_.selected().empty(); }},
      {.id = "model.arrange",
       .title = tr_later("Arrange layers"),
       .menu = "Model",
       .keys = "Ctrl+Shift+L",
       .icon = "layout",
       .run = [this] { model_.auto_layout(); },
       .enabled = project},
      {.id = "model.fit",
       .title = tr_later("Show the whole model"),
       .menu = "Model",
       .icon = "fit",
       .run = [this] { model_.fit(); },
       .enabled = project},
  };
}

void BuilderView::open_palette(const QString& typed, QPoint at) {
  if (at.x() < 0) at = {12, 40};
  picker_->open(
      tr("Add a layer"),
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
                             model_.insert_layer(type);
                             canvas()->setFocus();
                           }});
        }
        return items;
      },
      [](const QString& text) -> QStringList {
        return {tr("Nothing fits “%1” among the %2 kinds of layers.").arg(text).arg(layers().size()),
                tr("Type letters of its name or group, in their order: conv, norm, attention.")};
      },
      typed, at, 460);
}

void BuilderView::refresh() {
  model_.set_frozen(bench_.has_project() ? bench_.recipe().text("init.freeze") : "");
  if (!bench_.has_project())
    set_empty(true, tr("Start a project from a template: its model will be here, ready to be changed and trained."),
              tr("New from a template"), [this] { bench_.ask("file.new"); });
  else
    set_empty(false);
}

namespace {
const bool registered_builder_view = register_view<BuilderView, BuilderModel>(
    {.id = "builder",
     .title = tr_later("Model builder"),
     .icon = "model",
     .order = 10,
     .places = {{"Build", Spot::middle, 0, true}},
     .layouts = {"Build", "Train"},
     .link = tr_later("Builder"),
     .shows =
         [](const Selection& s, const Bench& bench) {
           return s.kind == Selection::Kind::module && bench.model<BuilderModel>().spec().find(s.name);
         },
     .help = {tr_later("The model as layers and wires: on each layer the shape that leaves it and its parameters, and "
                       "what is wrong with it where something is. The selected layer's attributes are beside it."),
              tr_later("Drag a layer to move it, from port to port to wire, on the ground to move the picture; Ctrl "
                       "and wheel zoom. Double click on the ground adds a layer there."),
              tr_later("Type to add a layer by its name. Up and Down follow the wires, Delete removes what is "
                       "selected, Escape takes back a wire that is being drawn.")}});
}  // namespace

}  // namespace tenon::views
