// What can be done with the builder, by menus, keys and the palette; the view itself is in builder_view.cpp.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QContextMenuEvent>
#include <QInputDialog>
#include <QLineEdit>
#include <QMenu>

#include "views/builder/builder_view.h"

namespace tenon::views {

namespace {
enum Sections { history, clipboard, selecting };
}

std::vector<Command> BuilderView::edit_commands() {
  auto project = [this] { return bench_.has_project(); };
  auto some = [this] { return !model_.selected().empty(); };
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
      {.id = "edit.cut",
       .title = tr_later("Cut layers"),
       .menu = "Edit",
       .keys = "Ctrl+X",
       .run =
           [this] {
             copy();
             model_.remove_selected();
           },
       .enabled = some,
       .section = clipboard,
       .within = canvas()},
      {.id = "edit.copy",
       .title = tr_later("Copy layers"),
       .menu = "Edit",
       .keys = "Ctrl+C",
       .run = [this] { copy(); },
       .enabled = some,
       .section = clipboard,
       .within = canvas()},
      {.id = "edit.paste",
       .title = tr_later("Paste layers"),
       .menu = "Edit",
       .keys = "Ctrl+V",
       .run = [this] { paste(); },
       .enabled = project,
       .section = clipboard,
       .within = canvas()},
      {.id = "edit.duplicate",
       .title = tr_later("Duplicate layers"),
       .menu = "Edit",
       .keys = "Ctrl+D",
       .run = [this] { model_.duplicate_selected(); },
       .enabled = some,
       .section = clipboard,
       .within = canvas()},
      {.id = "edit.select_all",
       .title = tr_later("Select all layers"),
       .menu = "Edit",
       .keys = "Ctrl+A",
       .run = [this] { model_.select_all(); },
       .enabled = project,
       .section = selecting,
       .within = canvas()},
      {.id = "edit.find_layer",
       .title = tr_later("Find a layer…"),
       .menu = "Edit",
       .keys = "Ctrl+F",
       .run = [this] { find_layer(); },
       .enabled = project,
       .section = selecting,
       .within = this},
  };
}

std::vector<Command> BuilderView::model_commands() {
  auto project = [this] { return bench_.has_project(); };
  auto some = [this] { return !model_.selected().empty(); };
  return {
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
       .enabled = project,
       .text = [this] { return model_.wire_selected() ? tr("Insert a layer on the wire…") : tr("Add layer…"); }},
      {.id = "model.replace",
       .title = tr_later("Replace selected layers…"),
       .menu = "Model",
       .run =
           [this] {
             bench_.ask("view.builder");
             open_replacements();
           },
       .enabled = some},
      {.id = "model.delete",
       .title = tr_later("Delete selected layers"),
       .menu = "Model",
       .run = [this] { model_.remove_selected(); },
       .enabled = [this] { return !model_.selected().empty() || model_.wire_selected(); },
       .text = [this] { return model_.wire_selected() ? tr("Delete the wire") : tr("Delete selected layers"); }},
      {.id = "model.off",
       .title = tr_later("Turn selected layers off or on"),
       .menu = "Model",
       .run = [this] { model_.switch_selected(); },
       .enabled = some},
      {.id = "model.comment",
       .title = tr_later("Comment on the layer…"),
       .menu = "Model",
       .run = [this] { ask_comment(); },
       .enabled = [this] { return !model_.primary().empty(); }},
  };
}

std::vector<Command> BuilderView::group_commands() {
  auto some = [this] { return !model_.selected().empty(); };
  auto groups = [this] { return bench_.has_project() && model_.layout().any_groups(); };
  return {
      {.id = "model.group",
       .title = tr_later("Group selected layers…"),
       .menu = "Model",
       .keys = "Ctrl+G",
       .run = [this] { ask_group(); },
       .enabled = some,
       .section = 1,
       .within = canvas()},
      {.id = "model.ungroup",
       .title = tr_later("Ungroup"),
       .menu = "Model",
       .keys = "Ctrl+Shift+G",
       .run = [this] { model_.ungroup_selected(); },
       .enabled =
           [this] { return !model_.selected_group().empty() || model_.primary().find('.') != std::string::npos; },
       .section = 1,
       .within = canvas()},
      {.id = "model.toggle_group",
       .title = tr_later("Open or fold the group"),
       .menu = "Model",
       .run = [this] { model_.toggle_selected_group(); },
       .enabled = [this, some, groups] { return some() && groups(); },
       .section = 1},
      {.id = "builder.opened",
       .title = tr_later("Open all groups"),
       .menu = "Model",
       .run = [this] { model_.open_groups(true); },
       .enabled = groups,
       .section = 1},
      {.id = "builder.folded",
       .title = tr_later("Fold all groups"),
       .menu = "Model",
       .run = [this] { model_.open_groups(false); },
       .enabled = groups,
       .section = 1},
  };
}

std::vector<Command> BuilderView::place_commands() {
  auto project = [this] { return bench_.has_project(); };
  std::vector<Command> all = {
      {.id = "model.arrange",
       .title = tr_later("Arrange layers"),
       .menu = "Model",
       .keys = "Ctrl+Shift+L",
       .icon = "layout",
       .run = [this] { model_.auto_layout(); },
       .enabled = project,
       .section = 2},
      {.id = "model.fit",
       .title = tr_later("Show the whole model"),
       .menu = "Model",
       .icon = "fit",
       .run = [this] { model_.fit(); },
       .enabled = project,
       .section = 2},
  };
  static constexpr struct {
    const char *id, *title;
    Heat heat;
  } kColours[] = {{"builder.plain", tr_later("Do not colour layers by cost"), Heat::none},
                  {"builder.parameters", tr_later("Colour layers by their parameters"), Heat::parameters},
                  {"builder.flops", tr_later("Colour layers by their arithmetic"), Heat::flops},
                  {"builder.activations", tr_later("Colour layers by their activations"), Heat::activations},
                  {"builder.memory", tr_later("Colour layers by their memory in a step"), Heat::memory}};
  for (const auto& c : kColours)
    all.push_back({.id = c.id,
                   .title = c.title,
                   .run = [this, heat = c.heat] { heat_->setCurrentIndex(heat_->findData(static_cast<int>(heat))); },
                   .enabled = project});
  using edits::Line;
  const struct {
    const char *id, *title;
    Line line;
  } lines[] = {{"model.align_left", tr_later("Align left edges"), Line::left},
               {"model.align_center", tr_later("Align centers"), Line::center},
               {"model.align_right", tr_later("Align right edges"), Line::right},
               {"model.align_top", tr_later("Align upper edges"), Line::top},
               {"model.align_bottom", tr_later("Align lower edges"), Line::bottom}};
  for (const auto& l : lines)
    all.push_back({.id = l.id,
                   .title = l.title,
                   .menu = "Model",
                   .run = [this, line = l.line] { model_.align_selected(line); },
                   .enabled = [this] { return model_.selected().size() > 1; },
                   .section = 3});
  all.push_back({.id = "model.spread",
                 .title = tr_later("Equal gaps"),
                 .menu = "Model",
                 .run = [this] { model_.spread_selected(); },
                 .enabled = [this] { return model_.selected().size() > 2; },
                 .section = 3});
  return all;
}

std::vector<Command> BuilderView::commands() {
  std::vector<Command> all;
  for (auto part : {edit_commands(), model_commands(), group_commands(), submodel_commands(), place_commands()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

void BuilderView::copy() {
  if (const std::string text = model_.copied(); !text.empty())
    QApplication::clipboard()->setText(QString::fromStdString(text));
}

void BuilderView::paste() { model_.paste(QApplication::clipboard()->text().toStdString()); }

void BuilderView::find_layer() {
  bench_.ask("view.builder");
  search_->setFocus(Qt::ShortcutFocusReason);
  search_->selectAll();
}

void BuilderView::ask_group() {
  bool ok = false;
  const QString name = QInputDialog::getText(this, tr("Group layers"), tr("The group's name, in front of theirs:"),
                                             QLineEdit::Normal, "block", &ok);
  if (ok) model_.group_selected(name.trimmed().toStdString());
}

void BuilderView::ask_comment() {
  const std::string layer = model_.primary();
  const LayerSpec* l = model_.spec().find(layer);
  if (!l) return;
  bool ok = false;
  const QString text =
      QInputDialog::getText(this, tr("Comment"), tr("On %1, for whoever reads the model:").arg(layer.c_str()),
                            QLineEdit::Normal, QString::fromStdString(l->comment), &ok);
  if (ok) model_.set_comment(layer, text.trimmed().toStdString());
}

/// An entry that does what the command of that name does, with its words and keys.
void BuilderView::add_to(QMenu* menu, const QString& id) {
  const auto* command = window()->findChild<QAction*>(id);
  for (const Command& c : commands()) {
    if (c.id != id || !command) continue;
    const QString keys = command->shortcut().toString(QKeySequence::NativeText);
    QAction* entry = menu->addAction(
        (c.text ? c.text() : tr(c.title.toUtf8().constData())) + (keys.isEmpty() ? QString() : "\t" + keys), this,
        [this, id] { bench_.ask(id); });
    entry->setObjectName("menu." + id);
    entry->setEnabled(!c.enabled || c.enabled());
  }
}

/// By the mouse about what it is over, by the key about what is selected.
void BuilderView::contextMenuEvent(QContextMenuEvent* e) {
  const QPoint at = canvas()->mapFromGlobal(e->globalPos());
  const bool by_key = e->reason() == QContextMenuEvent::Keyboard;
  if (empty() || (!by_key && !canvas()->rect().contains(at))) return View::contextMenuEvent(e);
  Hit hit;
  if (!by_key)
    hit = model_.hit_for_menu(static_cast<float>(at.x()), static_cast<float>(at.y()));
  else if (model_.wire_selected())
    hit.kind = BuilderModel::wire;
  else if (!model_.selected().empty())
    hit.kind = model_.selected_group().empty() ? BuilderModel::layer : BuilderModel::group;
  auto* menu = new QMenu(this);
  menu->setObjectName("builder.menu");
  menu->setAttribute(Qt::WA_DeleteOnClose);
  const auto add = [&](std::initializer_list<const char*> ids) {
    if (!menu->isEmpty()) menu->addSeparator();
    for (const char* id : ids) add_to(menu, id);
  };
  switch (hit.kind) {
    case BuilderModel::wire:
      add({"model.add", "model.delete"});
      break;
    case BuilderModel::layer:
      add({"model.add", "model.replace", "model.off", "model.comment"});
      add({"edit.cut", "edit.copy", "edit.paste", "edit.duplicate", "model.delete"});
      add({"model.group", "model.ungroup", "model.toggle_group"});
      add({"model.submodel", "model.dissolve", "model.share", "model.unshare"});
      if (model_.selected().size() > 1)
        add({"model.align_left", "model.align_center", "model.align_right", "model.align_top", "model.align_bottom",
             "model.spread"});
      break;
    case BuilderModel::group:
      add({"model.toggle_group", "model.ungroup", "model.group"});
      add({"model.submodel", "model.dissolve", "model.share", "model.unshare"});
      add({"edit.cut", "edit.copy", "edit.paste", "edit.duplicate", "model.delete"});
      add({"model.off"});
      break;
    default:
      add({"model.add", "edit.paste", "edit.select_all", "edit.find_layer"});
      add({"model.arrange", "model.fit", "builder.opened", "builder.folded"});
  }
  menu->popup(e->globalPos());
}

}  // namespace tenon::views
