// Sub-models and shared weights in the builder's menus and lists.
#include <QInputDialog>
#include <QLineEdit>
#include <algorithm>

#include "engine/spec/submodel.h"
#include "views/builder/builder_view.h"
#include "views/shared/format.h"

namespace tenon::views {

std::vector<Command> BuilderView::submodel_commands() {
  return {
      {.id = "model.submodel",
       .title = tr_later("Make a sub-model…"),
       .menu = "Model",
       .run = [this] { ask_submodel(); },
       .enabled = [this] { return !model_.selected().empty(); },
       .section = 1},
      {.id = "model.dissolve",
       .title = tr_later("Dissolve the instance"),
       .menu = "Model",
       .run = [this] { model_.dissolve_chosen(); },
       .enabled = [this] { return !model_.chosen_instance().empty(); },
       .section = 1},
      {.id = "model.share",
       .title = tr_later("Share weights with…"),
       .menu = "Model",
       .run = [this] { ask_weights(); },
       .enabled = [this] { return !model_.weight_owners().empty(); },
       .section = 1},
      {.id = "model.unshare",
       .title = tr_later("Give it weights of its own"),
       .menu = "Model",
       .run = [this] { model_.share_weights_with(""); },
       .enabled = [this] { return !model_.weights_owner().empty(); },
       .section = 1},
  };
}

void BuilderView::ask_submodel() {
  bool ok = false;
  const QString name = QInputDialog::getText(this, tr("Make a sub-model"),
                                             tr("Its name. It can be added as often as you like; what is changed in "
                                                "one instance is changed in all:"),
                                             QLineEdit::Normal, "Block", &ok);
  if (ok) model_.make_submodel(name.trimmed().toStdString());
}

void BuilderView::ask_weights() {
  bench_.ask("view.builder");
  picker_->open(
      tr("Share the weights of"),
      [this](const QString& text) {
        std::vector<Picker::Item> items;
        for (const std::string& owner : model_.weight_owners()) {
          if (!text.isEmpty() && fuzzy_score(text.toStdString(), owner) < 0) continue;
          const LayerSpec* l = model_.spec().find(owner);
          const SubModelSpec* s = submodel_of(model_.spec(), owner);
          items.push_back({QString::fromStdString(owner),
                           {},
                           QString::fromStdString(s   ? s->name
                                                  : l ? l->type
                                                      : ""),
                           [this, owner] {
                             model_.share_weights_with(owner);
                             canvas()->setFocus();
                           }});
        }
        return items;
      },
      [](const QString& text) -> QStringList {
        return {tr("Nothing that could give its weights is called “%1”.").arg(text),
                tr("Layers of the same type, attributes and sizes can, and other instances of the sub-model.")};
      },
      {}, {12, 40}, 460);
}

/// The project's sub-models stand before the kinds of layers.
std::vector<Picker::Item> BuilderView::submodel_items(const QString& text,
                                                      const std::function<void(const std::string&)>& use) {
  std::vector<Picker::Item> items;
  for (const SubModelSpec& s : use ? model_.spec().submodels : std::vector<SubModelSpec>{}) {
    if (fuzzy_score(text.toStdString(), s.name) < 0) continue;
    const auto layers = std::count_if(model_.spec().layers.begin(), model_.spec().layers.end(),
                                      [&](const LayerSpec& l) { return in_scope(l.name, s.instances.front()); });
    items.push_back({QString::fromStdString(s.name),
                     tr("%1 layers, %2 in the model").arg(layers).arg(s.instances.size()), tr("Sub-model"),
                     [this, use, name = s.name] {
                       use(name);
                       canvas()->setFocus();
                     }});
  }
  return items;
}

}  // namespace tenon::views
