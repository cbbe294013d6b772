#include "views/weights/weights_view.h"

#include <QComboBox>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QGridLayout>
#include <QHeaderView>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/error.h"
#include "engine/train/freeze.h"
#include "projects/weights_file.h"
#include "views/frame/attr_editor.h"
#include "views/frame/table_list.h"

namespace tenon::views {

WeightsView::WeightsView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  build();
  connect(&bench, &Bench::recipe_changed, this, &WeightsView::refresh);
  connect(&bench, &Bench::project_changed, this, &WeightsView::refresh);
  connect(&bench, &Bench::selection_changed, this, [this](const Selection& s) {
    if (s.source != "weights") list_->mark(s);  // several rows are of one layer: its own choice stays where it is
  });
  refresh();
}

void WeightsView::build() {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  auto button = [&](ViewBar* in, const char* name, const QString& text, const QString& tip, auto run) {
    auto* b = new QToolButton(in);
    b->setObjectName(name);
    b->setText(text);
    b->setToolTip(tip);
    connect(b, &QToolButton::clicked, this, run);
    in->add(b);
    return b;
  };
  button(bar, "weights.choose", tr("Choose a file…"),
         tr("Weights from .safetensors, .gguf, .pt, .pth, .onnx or .tenon"), [this] { choose_file(); });
  seed_ = button(bar, "weights.seed", tr("Begin anew"), tr("No file: every value is what the seed gives"),
                 [this] { bench_.set_recipe(WeightsModel::begun_anew(bench_.recipe())); });
  use_rule_ = button(bar, "weights.use_rule", {}, tr("A change of names that pairs more of them"), [this] {
    Recipe r = bench_.recipe();
    const std::string &rule = model_.map().rule, &map = r.text("init.map");
    r.set_value("init.map", map.empty() ? rule : map + "; " + rule);
    bench_.set_recipe(r);
  });
  bar->add_stretch();
  box->addWidget(bar);
  auto* form = new QWidget(page);
  auto* grid = new QGridLayout(form);
  grid->setContentsMargins(12, 8, 12, 8);
  grid->setHorizontalSpacing(12);
  grid->setVerticalSpacing(3);
  for (int column : {1, 3}) grid->setColumnStretch(column, 1);
  add_key(grid, "init.from", tr("file"), 0, 0);
  add_key(grid, "init.run", tr("run@step"), 0, 2);
  add_key(grid, "init.map", tr("names"), 1, 0);
  add_key(grid, "init.freeze", tr("freeze"), 1, 2);
  add_key(grid, "init.match", tr("match by"), 2, 0);
  add_key(grid, "init.missing", tr("missing"), 2, 2);
  said_ = new ElidedLabel({}, form);
  said_->setObjectName("weights.said");
  grid->addWidget(said_, 3, 0, 1, 4);
  box->addWidget(form);
  list_ = new TableList(page);
  list_->setObjectName("weights.table");
  list_->setAccessibleName(tr("Tensors of the model and of the file"));
  list_->on_select = [this](const Selection& s) { bench_.select(s); };
  box->addWidget(list_, 1);
  below_ = new ViewBar(page);
  row_ = new ElidedLabel({}, below_);
  row_->setObjectName("weights.row");
  set_style(row_, "voice", "small");
  below_->add(row_, 1);
  target_ = new QComboBox(below_);
  target_->setObjectName("weights.target");
  target_->setAccessibleName(tr("Tensor of the model that it goes to"));
  target_->setMinimumWidth(160);
  target_->setPlaceholderText(tr("none of the model"));
  connect(target_, &QComboBox::activated, this, &WeightsView::send);
  below_->add(target_, 1);
  box->addWidget(below_);
  connect(list_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &WeightsView::refresh_row);
  set_content(page);
}

void WeightsView::add_key(QGridLayout* grid, const char* key, const QString& label, int row, int column) {
  for (const AttrDef& def : Recipe::keys()) {
    if (def.name != key) continue;
    auto* word = new QLabel(label, grid->parentWidget());
    set_style(word, "voice", "secondary");
    word->setToolTip(QString(key) + "\n" + QString::fromStdString(def.help));
    QWidget* editor = make_attr_editor(
        def, bench_.recipe().at(key),
        [this, key](const AttrValue& value) {
          Recipe r = bench_.recipe();
          r.set_value(key, value);
          if (key != std::string("init.freeze")) r.reset("init.sha256");
          bench_.set_recipe(r);
        },
        grid->parentWidget());
    editor->setObjectName(QString("weights.") + key);
    editor->setAccessibleName(key);
    word->setBuddy(editor);
    grid->addWidget(word, row, column);
    grid->addWidget(editor, row, column + 1);
    editors_.emplace_back(key, editor);
  }
}

std::vector<Command> WeightsView::commands() {
  return {{.id = "weights.file",
           .title = tr_later("Begin with the weights of a file…"),
           .menu = "Model",
           .icon = "import",
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 choose_file();
               },
           .enabled = [this] { return bench_.has_project() && !bench_.project()->read_only(); }},
          {.id = "weights.shown_file",
           .title = tr_later("Begin with the weights of the shown file"),
           .menu = "Model",
           .icon = "import",
           .run =
               [this] {
                 bench_.ask(QString("view.") + def().id);
                 bench_.set_recipe(WeightsModel::begun_with(bench_.recipe(), bench_.shown_document()->path));
               },
           .enabled =
               [this] {
                 const Document* d = bench_.shown_document();
                 return d && d->model && bench_.has_project() && !bench_.project()->read_only();
               }}};
}

void WeightsView::choose_file() {
  if (!bench_.has_project() || bench_.project()->read_only()) return;
  const QString path =
      QFileDialog::getOpenFileName(this, tr("Weights to begin with"), QFileInfo(bench_.file()).dir().path(),
                                   tr("Weights (*.safetensors *.gguf *.pt *.pth *.onnx *.tenon);;All files (*)"));
  if (!path.isEmpty()) bench_.set_recipe(WeightsModel::begun_with(bench_.recipe(), path.toStdString()));
}

void WeightsView::refresh() {
  if (!bench_.has_project()) {
    read_of_.clear();
    return set_empty(true, tr("Open a project to see what its next run begins with: what the seed gives, or a file."));
  }
  if (const std::string& fault = bench_.contents().recipe_fault; !fault.empty()) {
    read_of_.clear();
    return set_empty(true, tr("The recipe of this project cannot be read: %1").arg(QString::fromStdString(fault)));
  }
  set_empty(false);
  const bool writable = !bench_.project()->read_only();
  for (const auto& [key, editor] : editors_) {
    show_attr(editor, bench_.recipe().at(key));
    editor->setEnabled(writable);
  }
  seed_->setEnabled(writable && projects::begins_with_weights(bench_.recipe()));
  if (in_sight()) read();
}

void WeightsView::read() {
  if (!bench_.has_project() || !bench_.contents().recipe_fault.empty()) return;
  const ModelSpec& spec = bench_.contents().model;
  std::string of = bench_.file().toStdString() + "\n" + WeightsModel::said_by(bench_.recipe()) + spec.to_json().dump();
  // "@best" of a run of this project is another state once it has gone on.
  if (const auto& runs = bench_.contents().runs;
      bench_.recipe().text("init.from").empty() && !bench_.recipe().text("init.run").empty())
    for (const projects::RunInfo& r : runs) of += "\n" + r.name + " " + std::to_string(r.steps);
  if (of == read_of_) return;
  read_of_ = std::move(of);
  struct Read {
    WeightMap map;
    std::string from;
    QString error;
  };
  bench_.jobs.start(
      "weights", tr("Read the weights to begin with"),
      [project = bench_.project(), spec, recipe = bench_.recipe()](const Jobs::Report& report,
                                                                   const std::atomic<bool>&) {
        Read r;
        std::vector<ModelTensor> model;
        try {
          model = model_tensors(spec, recipe);
          projects::WeightsFile file;
          if (projects::begins_with_weights(recipe)) file = projects::read_weights(*project, spec, recipe, report);
          r.map = map_weights(model, std::move(file.tensors), WeightRules(recipe));
          r.from = file.text;
          std::vector<std::string> names;
          for (const ModelTensor& m : model) names.push_back(m.name);
          Freeze(recipe.text("init.freeze")).check(names);
        } catch (const Error& e) {
          r.error = QString::fromStdString(e.message() + (e.hint().empty() ? "" : "; " + e.hint()));
          if (r.map.rows.empty()) {
            Recipe plain = recipe;
            plain.reset("init.map");
            r.map = map_weights(model, {}, WeightRules(plain));
          }
        }
        return std::make_shared<Read>(std::move(r));
      },
      [this, project = bench_.project()](const std::shared_ptr<Read>& r) {
        if (project == bench_.project()) take(std::move(r->map), r->from, r->error);
      },
      {}, true);
}

void WeightsView::take(WeightMap map, const std::string& from, const QString& error) {
  model_.set_map(std::move(map), from);
  const Table before = list_->shown();
  const int row = list_->currentIndex().row();
  list_->set_table(model_.table());
  if (row >= 0 && row < static_cast<int>(before.rows.size())) choose_row(before.rows[static_cast<size_t>(row)]);
  said_->set_text(error.isEmpty() ? QString::fromStdString(model_.said()) : error);
  set_style(said_, "voice", error.isEmpty() ? "small" : "bad");
  const WeightMap& m = model_.map();
  use_rule_->setVisible(!m.rule.empty() && !bench_.project()->read_only());
  use_rule_->setText(tr("Use “%1”: %2 more").arg(QString::fromStdString(m.rule)).arg(m.rule_pairs));
  refresh_row();
}

/// The row of the same tensor of the file, wherever it stands now.
void WeightsView::choose_row(const Table::Row& was) {
  const Table shown = list_->shown();
  for (size_t i = 0; i < shown.rows.size(); ++i) {
    if (shown.rows[i].cells[1].text != was.cells[1].text || was.cells[1].text.empty()) continue;
    const auto select = std::exchange(list_->on_select, nullptr);  // nobody has chosen anything
    list_->setCurrentIndex(list_->model()->index(static_cast<int>(i), 0));
    list_->on_select = select;
    return;
  }
}

/// The tensor of the file in the current row, and where it goes.
void WeightsView::refresh_row() {
  const Table shown = list_->shown();
  const int row = list_->currentIndex().row();
  source_ = row >= 0 && row < static_cast<int>(shown.rows.size())
                ? model_.source_of(shown.rows[static_cast<size_t>(row)])
                : -1;
  const QSignalBlocker quiet(target_);
  target_->clear();
  const bool any = source_ >= 0 && bench_.has_project() && !bench_.project()->read_only();
  target_->setVisible(any);
  below_->setVisible(any || !model_.from().empty());
  if (!any) {
    row_->set_text(model_.from().empty() ? QString()
                                         : tr("%1 · choose a row to send its tensor to another one of the model")
                                               .arg(QString::fromStdString(model_.from())));
    return;
  }
  row_->set_text(tr("%1 goes to").arg(QString::fromStdString(model_.map().given[static_cast<size_t>(source_)].name)));
  target_->addItem(tr("(left out)"));
  for (const std::string& t : model_.targets(source_)) target_->addItem(QString::fromStdString(t));
  const std::string to = model_.target(source_);
  target_->setCurrentIndex(model_.left_out(source_) ? 0
                           : to.empty()             ? -1
                                                    : target_->findText(QString::fromStdString(to)));
}

void WeightsView::send() {
  if (source_ < 0) return;
  const bool left_out = target_->currentIndex() == 0;
  bench_.set_recipe(model_.sent(bench_.recipe(), source_, left_out ? "" : target_->currentText().toStdString()));
}

namespace {
const bool registered_weights_view = register_view<WeightsView>(
    {.id = "weights",
     .title = tr_later("Initial weights"),
     .icon = "import",
     .order = 16,
     .layouts = {"Build", "Train"},
     .shows = nullptr,
     .help = {tr_later("What the next run begins with: each tensor of the model, the one of the file that it takes its "
                       "values from, and whether it is trained. Below stands what of the file is left."),
              tr_later("Choose a file, then a row: the box below sends its tensor to another one of the model. Names "
                       "and freeze take patterns: backbone.*=features.* renames, features.* freezes."),
              tr_later("Up and Down choose a row, Tab goes on to the box below, Enter takes what was typed.")}});
}  // namespace

}  // namespace tenon::views
