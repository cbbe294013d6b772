#include "views/builder/builder_view.h"

#include <QComboBox>
#include <QKeyEvent>
#include <QLineEdit>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "engine/data/dataset.h"
#include "engine/spec/layer_registry.h"
#include "engine/train/memory_forecast.h"
#include "engine/train/open_data.h"
#include "views/shared/format.h"

namespace tenon::views {

BuilderView::BuilderView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), model_(bench.model<BuilderModel>()) {
  page_ = new QWidget(this);
  auto* box = new QVBoxLayout(page_);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  make_bar();
  box->addWidget(bar_);
  box->addWidget(with_table(make_canvas(model_), bar_, [this] { return model_.table(); }), 1);
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
  connect(&bench, &Bench::state_changed, this, [this] {
    refresh_search();
    foretell_memory();
  });
  connect(&bench, &Bench::state_changed, this, &BuilderView::refresh_give);
  connect(&bench, &Bench::run_changed, this, &BuilderView::refresh_give);
  refresh();
}

void BuilderView::make_bar() {
  bar_ = new ViewBar(page_);
  auto button = [&](const char* name, const QString& text, const QString& tip, std::function<void()> run) {
    auto* b = new QToolButton(bar_);
    b->setText(text);
    b->setToolTip(tip);
    b->setObjectName(name);
    connect(b, &QToolButton::clicked, this, [run] { run(); });
    bar_->add(b);
  };
  button("builder.add", tr("Add layer"), tr("Or type its name over the canvas"), [this] { open_palette(); });
  button("builder.arrange", tr("Arrange"), tr("Lay the layers out anew, whatever places they have"),
         [this] { model_.auto_layout(); });
  button("builder.fit", tr("Fit"), tr("Show the whole model"), [this] { model_.fit(); });
  button("builder.open", tr("Open all"), tr("Open every group, down to the layers"),
         [this] { model_.open_groups(true); });
  button("builder.fold", tr("Fold all"), tr("Fold every group: a double click opens one"),
         [this] { model_.open_groups(false); });
  heat_ = new QComboBox(bar_);
  heat_->setObjectName("builder.heat");
  heat_->setAccessibleName(tr("What layers are coloured by"));
  heat_->setToolTip(tr("Colours layers and groups by what they cost, with each one's share of the whole"));
  heat_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  heat_->setMinimumContentsLength(7);
  for (const Heat h : kHeats) heat_->addItem(tr(heat_title(h)), static_cast<int>(h));
  connect(heat_, &QComboBox::currentIndexChanged, this, &BuilderView::choose_heat);
  bar_->add(heat_);
  give_ = new QToolButton(bar_);
  give_->setObjectName("builder.give");
  give_->setText(tr("To the run…"));
  give_->setToolTip(
      tr("The shown run goes on with this model as a branch: what has a place in it keeps what it learnt"));
  connect(give_, &QToolButton::clicked, this, [this] { bench_.ask("run.give_model"); });
  bar_->add(give_);
  search_ = new QLineEdit(bar_);
  search_->setObjectName("builder.search");
  search_->setPlaceholderText(tr("Find a layer"));
  search_->setToolTip(tr("Words of its name, type, attributes or comment; Enter goes to the next, Shift+Enter back"));
  search_->setClearButtonEnabled(true);
  search_->setMinimumWidth(48);  // it gives way first where the bar is narrow
  search_->setMaximumWidth(150);
  search_->installEventFilter(this);
  connect(search_, &QLineEdit::textChanged, this, [this](const QString& words) {
    model_.search(words.trimmed().toStdString());
    refresh_search();
  });
  connect(search_, &QLineEdit::returnPressed, this,
          [this] { model_.next_found(QGuiApplication::keyboardModifiers().testFlag(Qt::ShiftModifier) ? -1 : 1); });
  bar_->add(search_);
  found_ = new ElidedLabel({}, bar_);
  set_style(found_, "voice", "small");
  bar_->add(found_);
  bar_->add_stretch();
}

void BuilderView::choose_heat() {
  model_.set_heat(static_cast<Heat>(heat_->currentData().toInt()));
  foretold_ = -1;
  foretell_memory();
}

void BuilderView::foretell_memory() {
  if (model_.heat().what != Heat::memory || !bench_.has_project() || foretold_ == model_.revision()) return;
  foretold_ = model_.revision();
  bench_.jobs.cancel_tag("heat");
  bench_.jobs.start(
      "heat", tr("Foretell the memory of each layer"),
      [spec = model_.spec(), recipe = bench_.recipe()](const Jobs::Report&, const std::atomic<bool>&) {
        const data::Split data = open_data(recipe);
        std::map<std::string, int64_t> bytes;
        for (const LayerMemory& l : forecast_memory(spec, recipe, outline_of(data, recipe)).layers)
          for (const int64_t b : l.at_peak) bytes[l.layer] += b;
        return bytes;
      },
      [this, of = foretold_](std::map<std::string, int64_t> bytes) {
        if (of == model_.revision()) model_.set_layer_memory(std::move(bytes));
      },
      // A model that does not fit yet is told of on its layers.
      [this](const QString&, const QString&) { model_.set_layer_memory({}); }, true);
}

BuilderView::~BuilderView() {
  model_.on_palette = nullptr;
  model_.on_inspect = nullptr;
}

void BuilderView::refresh_give() {
  const projects::RunInfo* run = bench_.shown();
  give_->setVisible(run && bench_.shown_steps() > 0 && !bench_.project()->read_only() &&
                    bench_.contents().has_another_model(*run));
}

void BuilderView::refresh_search() {
  const bool any = !search_->text().trimmed().isEmpty();
  const int n = model_.found();
  found_->set_text(!any ? QString() : n == 0 ? tr("none") : n == 1 ? tr("1 found") : tr("%1 found").arg(n));
}

void BuilderView::pick_layer(const QString& hint, const QString& typed, QPoint at,
                             std::function<void(const std::string&)> use,
                             std::function<void(const std::string&)> use_submodel) {
  if (at.x() < 0) at = {12, 40};
  picker_->open(
      hint,
      [this, use, use_submodel](const QString& text) {
        std::vector<std::pair<int, const LayerInfo*>> found;
        for (const LayerDef& def : layers()) {
          const LayerInfo& l = def.info;
          int score = std::max(fuzzy_score(text.toStdString(), l.type),
                               fuzzy_score(text.toStdString(), l.group + " " + l.type) - 50);
          if (score >= 0) found.emplace_back(score, &l);
        }
        std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
        std::vector<Picker::Item> items = submodel_items(text, use_submodel);
        for (auto& [score, l] : found) {
          std::string type = l->type;
          items.push_back({QString::fromStdString(type), QString::fromStdString(l->help),
                           QString::fromStdString(l->group), [this, use, type] {
                             use(type);
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

void BuilderView::open_palette(const QString& typed, QPoint at) {
  pick_layer(
      model_.wire_selected() ? tr("Insert a layer on the wire") : tr("Add a layer"), typed, at,
      [this](const std::string& type) { model_.insert_layer(type); },
      [this](const std::string& name) { model_.insert_submodel(name); });
}

void BuilderView::open_replacements() {
  pick_layer(tr("Replace by"), {}, {-1, -1}, [this](const std::string& type) { model_.replace_selected(type); });
}

void BuilderView::refresh() {
  model_.set_frozen(bench_.has_project() ? bench_.recipe().text("init.freeze") : "");
  if (!bench_.has_project())
    set_empty(true, tr("Start a project from a template: its model will be here, ready to be changed and trained."),
              tr("New from a template"), [this] { bench_.ask("file.new"); });
  else
    set_empty(false);
  refresh_give();
  foretell_memory();
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
           const ModelSpec& spec = bench.model<BuilderModel>().spec();
           return s.kind == Selection::Kind::module &&
                  std::any_of(spec.layers.begin(), spec.layers.end(),
                              [&](const LayerSpec& l) { return in_module(l.name, s.name); });
         },
     .help = {tr_later("The model as layers and wires: on each layer the shape that leaves it and its parameters, and "
                       "what is wrong with it where something is. Layers whose names have a scope in common "
                       "(layer3.1.conv1) are groups, which a double click opens and folds. The list in the bar colours "
                       "them by their parameters, arithmetic, activations, or by what a step holds of each in memory. "
                       "A group can be a sub-model with a name: its instances are edited together, and share weights "
                       "where they are told to. "
                       "Where the shown run has another model, “To the run…” lets it go on with this one, as "
                       "a branch that keeps what it can."),
              tr_later("The wheel moves the picture and zooms with Ctrl; the middle button moves it, too, and so does "
                       "the map in the corner. Drag on the ground selects, a layer is dragged to move it, from port "
                       "to port to wire. Double click on the ground or on a wire adds a layer there; the other "
                       "button of the mouse has what can be done."),
              tr_later("Type to add a layer by its name. Up and Down follow the wires, Delete takes out what is "
                       "selected, Ctrl+C, X, V and D copy, cut, paste and double it: also as text, into another "
                       "project. Ctrl+F finds, Escape takes back a wire that is being drawn.")}});
}  // namespace

}  // namespace tenon::views
