#include "views/recipe/recipe_view.h"

#include <QApplication>
#include <QComboBox>
#include <QGridLayout>
#include <QLineEdit>
#include <QMenu>
#include <QScrollArea>
#include <QScrollBar>
#include <QToolButton>
#include <QVBoxLayout>

#include "engine/templates/templates.h"
#include "engine/train/class_balance.h"
#include "engine/train/open_data.h"
#include "engine/train/recipe_table.h"
#include "engine/train/session.h"
#include "views/frame/attr_editor.h"
#include "views/recipe/callbacks_view.h"
#include "views/recipe/memory_strip_view.h"
#include "views/recipe/watch_list_view.h"
#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

RecipeView::RecipeView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<RecipeModel>()) {
  build();
  connect(search_, &QLineEdit::textChanged, this, &RecipeView::rebuild);
  connect(&bench, &Bench::recipe_changed, this, &RecipeView::refresh);
  connect(&bench, &Bench::project_changed, this, &RecipeView::refresh);
  connect(&bench, &Bench::state_changed, this, [this] {  // a run begins or ends: what is compared with is another
    if (!bench_.has_project() || bench_.training() != compares_training_) refresh();
  });
  refresh();
}

void RecipeView::build() {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  search_ = new QLineEdit(bar);
  search_->setObjectName("recipe.search");
  search_->setPlaceholderText(tr("Find a key"));
  search_->setAccessibleName(tr("Find a key of the recipe"));
  search_->setClearButtonEnabled(true);
  search_->setMaximumWidth(240);
  bar->add(search_, 1);
  said_ = new ElidedLabel({}, bar);
  said_->setObjectName("recipe.said");
  set_style(said_, "voice", "small");
  bar->add(said_, 2);
  give_ = new QToolButton(bar);
  give_->setObjectName("recipe.give");
  give_->setText(tr("Give it to the run"));
  set_style(give_, "primary", "true");
  connect(give_, &QToolButton::clicked, this, [this] { bench_.change_training(); });
  bar->add(give_);
  as_last_ = new QToolButton(bar);
  as_last_->setObjectName("recipe.as_last");
  as_last_->setText(tr("As the last run"));
  as_last_->setToolTip(tr("Every key as the last run had it"));
  connect(as_last_, &QToolButton::clicked, this, [this] {
    if (model_.last()) edit(*model_.last());
  });
  bar->add(as_last_);
  as_ = new QToolButton(bar);
  as_->setObjectName("recipe.as");
  as_->setText(tr("As…"));
  as_->setToolTip(tr("Every key as another run had it, or how a template trains"));
  as_->setPopupMode(QToolButton::InstantPopup);
  auto* presets = new QMenu(as_);
  presets->setToolTipsVisible(true);
  connect(presets, &QMenu::aboutToShow, this, [this, presets] { fill_presets(presets); });
  as_->setMenu(presets);
  bar->add(as_);
  box->addWidget(bar);
  memory_ = new MemoryStrip(bench_, page);
  memory_->on_edit = [this](const Recipe& next) { edit(next); };
  box->addWidget(memory_);
  scroll_ = new QScrollArea(page);
  scroll_->setObjectName("recipe.scroll");
  scroll_->setWidgetResizable(true);
  scroll_->setFrameShape(QFrame::NoFrame);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  box->addWidget(scroll_, 1);
  make_canvas(model_)->setFixedHeight(150);
  set_content(page);
}

std::vector<Command> RecipeView::commands() {
  return {{.id = "recipe.edit",
           .title = tr_later("Recipe of the next run"),
           .menu = "Run",
           .keys = "Ctrl+Shift+R",
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 search_->setFocus();
               },
           .enabled = [this] { return bench_.has_project(); },
           .section = run_menu::recipe},
          {.id = "recipe.undo",
           .title = tr_later("Take back the change of the recipe"),
           .menu = "Edit",
           .run = [this] { go_back_to(model_.undo()); },
           .enabled = [this] { return bench_.has_project() && model_.can_undo(); }},
          {.id = "recipe.redo",
           .title = tr_later("Change the recipe again"),
           .menu = "Edit",
           .run = [this] { go_back_to(model_.redo()); },
           .enabled = [this] { return bench_.has_project() && model_.can_redo(); }}};
}

bool RecipeView::idle() const { return View::idle() && memory_->idle(); }
void RecipeView::came_into_sight() { memory_->work(); }

void RecipeView::edit(const Recipe& next) { bench_.set_recipe(next); }

/// It is no edit: the model knows it before it is told of the change.
void RecipeView::go_back_to(const Recipe& recipe) {
  model_.set_recipe(recipe);
  bench_.set_recipe(recipe);
}

void RecipeView::refresh() {
  if (!bench_.has_project() || !bench_.contents().recipe_fault.empty()) memory_->clear();
  if (!bench_.has_project())
    return set_empty(true,
                     tr("Open a project to see what its next run is told: data, loss, optimizer, schedule, length."));
  if (const std::string& fault = bench_.contents().recipe_fault; !fault.empty())
    return set_empty(true, tr("The recipe of this project cannot be read: %1").arg(QString::fromStdString(fault)),
                     bench_.project()->read_only() ? QString() : tr("Start from the defaults"),
                     [this] { bench_.set_recipe(Recipe()); });
  set_empty(false);
  if (of_.lock() != bench_.project()) {
    of_ = bench_.project();
    model_.forget();
    memory_->clear();
    search_->clear();
  } else if (!(model_.recipe() == bench_.recipe())) {
    model_.remember();  // whoever edited it: here, or where the weights are chosen
  }
  model_.set_recipe(bench_.recipe());
  memory_->set_run(bench_.contents().model, bench_.recipe());
  look();
  refresh_last();
  if (shape() == shape_)
    refresh_rows();
  else
    rebuild();
}

void RecipeView::refresh_last() {
  const auto& runs = bench_.contents().runs;
  std::optional<Recipe> last = bench_.training_recipe();
  compares_training_ = bench_.training();
  int64_t steps = last ? bench_.status().total_steps : 0;
  if (!last && !runs.empty()) {
    try {
      last = Recipe::from_json(runs.back().recipe_after(runs.back().steps));
      steps = runs.back().total_steps;
    } catch (const std::exception&) {  // of a plug-in that is not here: nothing to compare with
    }
  }
  model_.set_last(std::move(last), steps);
}

std::string RecipeView::shape() const {
  std::string text = std::to_string(bench_.project() && bench_.project()->read_only());
  for (const auto& section : model_.sections(search_->text().trimmed().toStdString()))
    for (const auto& key : section.keys) text += " " + key.def.name + "=" + attr_allowed(key.def);
  return text;
}

void RecipeView::rebuild() {
  if (!bench_.has_project()) return;
  shape_ = shape();
  // A form that is made anew because of a choice in it: the hand goes on where it was.
  QString focused;
  if (QWidget* w = QApplication::focusWidget(); w && form_ && form_->isAncestorOf(w)) focused = w->objectName();
  const int at = scroll_->verticalScrollBar() ? scroll_->verticalScrollBar()->value() : 0;
  if (QWidget* old = scroll_->takeWidget()) {
    canvas()->setParent(scroll_);                                            // it outlives the form it stands in
    for (QWidget* w : old->findChildren<QWidget*>()) w->blockSignals(true);  // hiding a line would end its edit
    discard(old);
  }
  rows_.clear();
  auto* form = new QWidget(scroll_);
  form_ = form;
  form->setEnabled(!bench_.project()->read_only());
  auto* box = new QVBoxLayout(form);
  box->setContentsMargins(16, 8, 16, 16);
  box->setSpacing(4);
  bool curve = false;
  for (const auto& section : model_.sections(search_->text().trimmed().toStdString())) {
    auto* title = new QLabel(QString::fromStdString(section.title), form);
    title->setFont(face_font(Face::title));
    title->setContentsMargins(0, 10, 0, 2);
    box->addWidget(title);
    if (section.keys[0].def.name == "callbacks") add_callbacks(form);
    if (section.keys[0].def.name == "watches") add_watches(form);
    auto* rows = new QWidget(form);
    auto* grid = new QGridLayout(rows);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setHorizontalSpacing(12);
    grid->setVerticalSpacing(3);
    grid->setColumnMinimumWidth(0, 130);
    grid->setColumnStretch(1, 2);
    grid->setColumnStretch(2, 3);
    for (size_t i = 0; i < section.keys.size(); ++i) add_row(grid, static_cast<int>(i), section.keys[i]);
    if (section.keys[0].def.name.starts_with("data.")) add_class_counts(grid, static_cast<int>(section.keys.size()));
    box->addWidget(rows);
    if (section.keys[0].def.name.starts_with("schedule.")) {
      box->addWidget(canvas());
      curve = true;
    }
  }
  canvas()->setVisible(curve);
  if (rows_.empty()) {
    auto* none = new QLabel(tr("No key has these words in its name or its help."), form);
    set_style(none, "voice", "secondary");
    box->addWidget(none);
  }
  box->addStretch();
  scroll_->setWidget(form);
  refresh_rows();
  scroll_->verticalScrollBar()->setValue(at);
  if (!focused.isEmpty())
    if (auto* w = form->findChild<QWidget*>(focused)) w->setFocus();
}

namespace {
std::string shown_value(const AttrValue& v) {
  const std::string text = attr_text(v);
  return text.empty() ? tr("nothing") : text;
}

/// What the classes of a recipe's data depend on.
std::string data_said_by(const Recipe& recipe) {
  std::string all = recipe.text("data.dir") + "\n" + recipe.text("data.transforms") + "\n" +
                    recipe.text("data.dataset") + "\n" + attr_text(recipe.at("seed"));
  for (const Attr& a : recipe.attrs("data")) all += "\n" + a.name + "=" + attr_text(a.value);
  return all;
}
}  // namespace

/// Runs, the newest first, then the templates that minimise the same loss.
void RecipeView::fill_presets(QMenu* menu) {
  constexpr size_t kMostRuns = 12;  // of more, Runs finds the one that is meant
  menu->clear();
  if (!bench_.has_project()) return;
  const auto& runs = bench_.contents().runs;
  for (size_t i = 0; i < std::min(kMostRuns, runs.size()); ++i) {
    const projects::RunInfo& run = runs[runs.size() - 1 - i];
    try {
      const Recipe recipe = Recipe::from_json(run.recipe_after(run.steps));
      const auto differing = differences(model_.recipe(), recipe);
      QAction* a = menu->addAction(QString::fromStdString(run.name), this, [this, recipe] { edit(recipe); });
      a->setObjectName("as.run." + QString::fromStdString(run.name));
      a->setEnabled(!differing.empty());
      a->setToolTip(differing.empty() ? tr("It is told the same") : QString::fromStdString(difference_text(differing)));
    } catch (const std::exception&) {  // of a plug-in that is not here
    }
  }
  if (!menu->isEmpty()) menu->addSeparator();
  for (const Template& t : templates()) {
    if (t.recipe.text("loss.type") != model_.recipe().text("loss.type")) continue;
    const Recipe recipe = trained_as(t, model_.recipe());
    QAction* a =
        menu->addAction(tr("Template %1").arg(QString::fromStdString(t.name)), this, [this, recipe] { edit(recipe); });
    a->setObjectName("as.template." + QString::fromStdString(t.name));
    a->setToolTip(QString::fromStdString(difference_text(differences(model_.recipe(), recipe))));
  }
}

void RecipeView::add_callbacks(QWidget* form) {
  callbacks_ = new CallbacksView(form);
  callbacks_->setObjectName("recipe.callbacks.list");
  callbacks_->on_edit = [this](const Recipe& next) { edit(next); };
  callbacks_->on_key = [this](const QString& key) { show_key(key); };
  form->layout()->addWidget(callbacks_);
}

void RecipeView::add_watches(QWidget* form) {
  watches_ = new WatchListView(form);
  watches_->setObjectName("recipe.watches.list");
  watches_->on_edit = [this](const Recipe& next) { edit(next); };
  form->layout()->addWidget(watches_);
}

/// The editor of a key, also where a search leaves it out.
void RecipeView::show_key(const QString& key) {
  if (!rows_.contains(key.toStdString())) search_->clear();
  const auto found = rows_.find(key.toStdString());
  if (found == rows_.end() || !found->second.editor) return;
  found->second.editor->setFocus();
  scroll_->ensureWidgetVisible(found->second.editor, 0, 80);
}

/// How many samples each class has: counted when asked for, since all of the data is opened for it.
void RecipeView::add_class_counts(QGridLayout* grid, int at) {
  auto* label = new QLabel(tr("classes"), grid->parentWidget());
  set_style(label, "voice", "secondary");
  auto* button = new QToolButton(grid->parentWidget());
  button->setObjectName("recipe.count_classes");
  button->setText(tr("Count the classes"));
  button->setToolTip(tr("How often each class is a target of the training split"));
  connect(button, &QToolButton::clicked, this, &RecipeView::count_classes);
  classes_ = new ElidedLabel({}, grid->parentWidget());
  classes_->setObjectName("recipe.classes");
  set_style(classes_, "voice", "small");
  label->setBuddy(button);
  grid->addWidget(label, at, 0);
  grid->addWidget(button, at, 1, Qt::AlignLeft);
  grid->addWidget(classes_, at, 2);
}

void RecipeView::count_classes() {
  if (!bench_.has_project()) return;
  bench_.jobs.start(
      "count classes", tr("Count the classes of the data"),
      [recipe = model_.recipe()](const Jobs::Report&, const std::atomic<bool>&) {
        return class_counts_text(tenon::count_classes(open_data(recipe)));
      },
      [this, of = data_said_by(model_.recipe())](const std::string& text) {
        counted_ = text;
        counted_of_ = of;
        if (bench_.has_project()) refresh_rows();
      },
      [this](const QString& message, const QString& hint) {
        bench_.fail(tr("The classes were not counted"), message, hint);
      });
}

void RecipeView::add_row(QGridLayout* grid, int at, const RecipeModel::Key& key) {
  const QString name = QString::fromStdString(key.def.name);
  auto* label = new QLabel(QString::fromStdString(key.label()), grid->parentWidget());
  set_style(label, "voice", "secondary");
  label->setToolTip(name + "\n" + QString::fromStdString(key.def.help));
  Row row;
  row.editor = make_attr_editor(
      key.def, key.value, [this, key = key.def.name](const AttrValue& value) { edit(model_.with(key, value)); },
      grid->parentWidget());
  row.editor->setObjectName("recipe." + name);
  row.editor->setAccessibleName(name);
  row.editor->setMinimumWidth(110);
  row.editor->setMaximumWidth(320);
  label->setBuddy(row.editor);
  if (auto* list = qobject_cast<QComboBox*>(row.editor.data()))
    for (const RecipeGroup& g : recipe_groups())
      if (g.name + "." + g.selector == key.def.name)
        for (const auto& m : g.members)
          list->setItemData(list->findText(QString::fromStdString(m.name)), QString::fromStdString(m.help),
                            Qt::ToolTipRole);
  row.note = new ElidedLabel({}, grid->parentWidget());
  row.reset = new QToolButton(grid->parentWidget());
  row.reset->setText("↺");
  row.reset->setObjectName("reset." + name);
  row.reset->setAccessibleName(tr("Default of %1").arg(name));
  set_style(row.reset, "slim", "true");
  QSizePolicy room = row.reset->sizePolicy();
  room.setRetainSizeWhenHidden(true);
  row.reset->setSizePolicy(room);
  connect(row.reset, &QToolButton::clicked, this, [this, key = key.def.name] { edit(model_.without(key)); });
  grid->addWidget(label, at, 0);
  grid->addWidget(row.editor, at, 1);
  grid->addWidget(row.note, at, 2);
  grid->addWidget(row.reset, at, 3);
  rows_[key.def.name] = row;
}

void RecipeView::refresh_rows() {
  const std::string who = compares_training_ ? bench_.status().name : views::tr("the last run");
  for (const auto& section : model_.sections()) {
    for (const auto& key : section.keys) {
      const auto found = rows_.find(key.def.name);
      if (found == rows_.end() || !found->second.editor) continue;
      const Row& row = found->second;
      show_attr(row.editor, key.value);
      const std::string usual = shown_value(model_.recipe().fallback(key.def.name));
      row.note->set_text(QString::fromStdString(key.last  ? views::tr("{} had {}", who, shown_value(*key.last))
                                                : key.set ? views::tr("default {}", usual)
                                                          : key.def.help));
      set_style(row.note, "voice", key.last ? "news" : "small");
      row.reset->setVisible(key.set);
      row.reset->setToolTip(tr("Back to the default, %1").arg(QString::fromStdString(usual)));
    }
  }
  if (callbacks_) callbacks_->set_recipe(model_.recipe());
  if (watches_) {
    std::vector<std::string> layers;
    for (const LayerSpec& l : bench_.contents().model.layers) layers.push_back(l.name);
    watches_->set_recipe(model_.recipe(), layers);
  }
  if (classes_)
    classes_->set_text(counted_of_ == data_said_by(model_.recipe()) ? QString::fromStdString(counted_) : QString());
  const int n = model_.differing();
  const QString whose = QString::fromStdString(who);
  said_->set_text(bench_.project()->read_only() ? tr("This project is read-only: its recipe can be looked at.")
                  : !model_.has_last()          ? tr("what the first run is told")
                  : n == 0                      ? tr("as %1 was told").arg(whose)
                  : n == 1                      ? tr("1 key differs from what %1 was told").arg(whose)
                                                : tr("%1 keys differ from what %2 was told").arg(n).arg(whose));
  refresh_give();
  as_->setEnabled(!bench_.project()->read_only());
  as_last_->setEnabled(n > 0 && !bench_.project()->read_only());
}

/// What of the differences the run that trains can still be given.
void RecipeView::refresh_give() {
  give_->setVisible(compares_training_);
  if (!compares_training_ || !model_.last()) return;
  std::vector<KeyDifference> may, may_not;
  for (KeyDifference& d : differences(*model_.last(), model_.recipe()))
    (!d.to.empty() && TrainingSession::may_change(d.key) ? may : may_not).push_back(std::move(d));
  give_->setEnabled(!may.empty());
  QString tip = may.empty() ? tr("Change the rate, the schedule, the decay, …: it holds from the next step on")
                            : tr("From the next step on: %1").arg(QString::fromStdString(difference_text(may)));
  if (!may_not.empty())
    tip += "\n" + tr("Only a new run can have: %1").arg(QString::fromStdString(difference_text(may_not)));
  give_->setToolTip(tip);
}

namespace {
const bool registered_recipe_view = register_view<RecipeView, RecipeModel>(
    {.id = "recipe",
     .title = tr_later("Recipe"),
     .icon = "recipe",
     .order = 15,
     .layouts = {"Build", "Train", "Debug"},
     .shows = nullptr,
     .help = {
         tr_later(
             "Everything that the next run is told: data, loss, optimizer, schedule, length. A key whose value is not "
             "the default, or not the last run's, says so beside it; the curve is the learning rate over the run. The "
             "line on memory says, before any step, what the next run needs of what is here and the largest batch that "
             "fits; Memory beside it opens its layers and what would need less, and Apply does that."),
         tr_later("Point at a key to read what it means and what it may be. The arrow behind a row brings its default "
                  "back. The "
                  "wheel scrolls; it changes a number only in a box that was clicked."),
         tr_later("Tab goes from key to key, Up and Down change a number, Enter takes what was typed.")}});
}  // namespace

}  // namespace tenon::views
