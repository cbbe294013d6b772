#include "views/data/data_view.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QPushButton>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/error.h"
#include "engine/spec/attr.h"
#include "engine/train/recipe.h"
#include "projects/time_travel.h"
#include "views/frame/table_list.h"

namespace tenon::views {
namespace {
constexpr int64_t kSamples = 100;  // of each split that are listed

/// Everything that the data hang on.
std::string data_keys(const Recipe& recipe) {
  std::string keys = attr_text(recipe.at("seed"));
  for (const AttrDef& def : recipe.used_keys())
    if (def.name.starts_with("data.")) keys += "\n" + def.name + "=" + attr_text(recipe.at(def.name));
  return keys;
}

struct Read {
  std::shared_ptr<const DataLook> look;
  QString error;
  std::optional<OfferedKey> offer;
};
template <class F>
std::shared_ptr<Read> looked(const Recipe& recipe, const F& look) {
  auto r = std::make_shared<Read>();
  try {
    r->look = std::make_shared<const DataLook>(look());
  } catch (const Error& e) {
    r->error = QString::fromStdString(e.message() + (e.hint().empty() ? "" : "; " + e.hint()));
    r->offer = offered_key(e.hint(), recipe);
  }
  return r;
}
}  // namespace

DataView::DataView(const ViewDef& def, Bench& bench, QWidget* parent) : View(def, bench, parent) {
  build();
  for (auto change : {&Bench::recipe_changed, &Bench::project_changed})
    connect(&bench, change, this, [this] {
      of_run_.reset();
      batch_.clear();
      refresh();
    });
  connect(&bench, &Bench::samples_asked, this, &DataView::show_samples);
  connect(&bench, &Bench::state_changed, this, &DataView::fit);  // the model was edited, perhaps
  refresh();
}

void DataView::build() {
  auto* page = new QWidget(this);
  auto* box = new QVBoxLayout(page);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(page);
  const struct {
    const char* name;
    QString text, tip;
  } pages[] = {
      {"data.page.found", tr("Found"), tr("How the files were read, and what looks wrong in them")},
      {"data.page.samples", tr("Samples"), tr("The first samples of each split, and where they come from")},
      {"data.page.classes", tr("Classes"), tr("How often each class is a target")},
      {"data.page.transforms", tr("Transforms"), tr("A sample as it is and behind each transform of the recipe")}};
  for (int i = 0; i < 4; ++i)
    page_buttons_.push_back(bar->add_page(pages[i].name, pages[i].text, pages[i].tip, [this, i] { show_page(i); }));
  of_classes_ = page_buttons_[2];
  bar->add_stretch();
  all_ = bar->add_button("data.all", tr("Read every sample"),
                         tr("Finds what is doubled, what both splits hold, and values that "
                            "are not finite"),
                         [this] { read(true); });
  bar->add_button("data.file", tr("Choose a file…"), tr("The next run learns from this file (data.dir)"),
                  [this] { choose(false); });
  bar->add_button("data.folder", tr("Choose a folder…"), tr("The next run learns from this folder (data.dir)"),
                  [this] { choose(true); });
  box->addWidget(bar);
  auto* words = new QWidget(page);
  auto* lines = new QVBoxLayout(words);
  lines->setContentsMargins(12, 8, 12, 8);
  lines->setSpacing(4);
  said_ = new ElidedLabel({}, words);
  said_->setObjectName("data.said");
  lines->addWidget(said_);
  divided_ = new ElidedLabel({}, words);
  divided_->setObjectName("data.divided");
  set_style(divided_, "voice", "secondary");
  lines->addWidget(divided_);
  fault_ = new ElidedLabel({}, words);
  fault_->setObjectName("data.fault");
  set_style(fault_, "voice", "bad");
  fault_row_ = new QWidget(words);
  auto* fault_line = new QHBoxLayout(fault_row_);
  fault_line->setContentsMargins(0, 0, 0, 0);
  fault_line->setSpacing(8);
  fault_line->addWidget(fault_, 1);
  offer_ = new QPushButton(fault_row_);
  offer_->setObjectName("data.offer");
  connect(offer_, &QPushButton::clicked, this, [this] {
    if (!offered_) return;
    Recipe r = bench_.recipe();
    r.set(offered_->key, offered_->value);
    bench_.set_recipe(r);
  });
  fault_line->addWidget(offer_);
  fault_row_->hide();
  lines->addWidget(fault_row_);
  lines->addWidget(make_fit(words));
  box->addWidget(words);
  splits_ = new TableList(page);
  splits_->setObjectName("data.splits");
  splits_->setAccessibleName(tr("Splits of the data"));
  box->addWidget(splits_);
  box->addWidget(make_pages(page), 1);
  set_content(page);
}

QWidget* DataView::make_pages(QWidget* parent) {
  pages_ = new QStackedWidget(parent);
  auto list = [&](const char* name, const QString& what) {
    auto* l = new TableList(pages_);
    l->setObjectName(name);
    l->setAccessibleName(what);
    pages_->addWidget(l);
    return l;
  };
  remarks_ = list("data.remarks", tr("What was found in the data"));
  samples_ = list("data.samples", tr("Samples of the data"));
  classes_ = list("data.classes", tr("Classes of the data"));
  transforms_ = new TransformsPage(bench_, pages_);
  pages_->addWidget(transforms_);
  connect(samples_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& at) {
    const Table shown = samples_->shown();
    if (!at.isValid() || at.row() >= static_cast<int>(shown.rows.size())) return;
    const auto& cells = shown.rows[static_cast<size_t>(at.row())].cells;
    transforms_->show_sample(cells[3].text == views::tr("training"), static_cast<int64_t>(cells[0].key));
  });
  show_page(0);
  return pages_;
}

void DataView::show_page(int page) {
  pages_->setCurrentIndex(page);
  for (int i = 0; i < static_cast<int>(page_buttons_.size()); ++i)
    page_buttons_[static_cast<size_t>(i)]->setChecked(i == page);
}

std::vector<Command> DataView::commands() {
  const auto writable = [this] { return bench_.has_project() && !bench_.project()->read_only(); };
  const auto show = [this] { bench_.ask(QString("view.") + def().id); };
  auto page = [this, show](const char* id, const char* title, int to) {
    return Command{.id = id,
                   .title = title,
                   .menu = {},
                   .run =
                       [this, show, to] {
                         show();
                         show_page(to);
                       },
                   .enabled = [this] { return bench_.has_project(); }};
  };
  return {page("data.found", tr_later("Data: how the files were read, and what looks wrong"), 0),
          page("data.samples", tr_later("Data: samples and where they come from"), 1),
          page("data.classes", tr_later("Data: classes"), 2),
          page("data.transforms", tr_later("Data: a sample before and after each transform"), 3),
          {.id = "data.batch",
           .title = tr_later("The samples of this step"),
           .menu = "Run",
           .icon = "table",
           .run = [this, show] { show(), show_batch(); },
           .enabled = [this] { return chosen_step() > 0; },
           .text =
               [this] {
                 return chosen_step() > 0 ? tr("The samples of step %1").arg(chosen_step())
                                          : tr("The samples of this step");
               }},
          {.id = "data.choose_file",
           .title = tr_later("Learn from another file…"),
           .menu = "Model",
           .icon = "table",
           .run = [this, show] { show(), choose(false); },
           .enabled = writable},
          {.id = "data.choose_folder",
           .title = tr_later("Learn from another folder…"),
           .menu = "Model",
           .icon = "table",
           .run = [this, show] { show(), choose(true); },
           .enabled = writable},
          {.id = "data.read_all",
           .title = tr_later("Read every sample of the data"),
           .menu = "Model",
           .icon = "check",
           .run = [this, show] { show(), read(true); },
           .enabled = [this] { return bench_.has_project() && bench_.contents().recipe_fault.empty(); }}};
}

void DataView::choose(bool folder) {
  if (!bench_.has_project() || bench_.project()->read_only()) return;
  const QString now = QString::fromStdString(bench_.recipe().text("data.dir"));
  const QString from = now.isEmpty() ? QFileInfo(bench_.file()).dir().path() : QFileInfo(now).dir().path();
  const QString path = folder ? QFileDialog::getExistingDirectory(this, tr("A folder to learn from"), from)
                              : QFileDialog::getOpenFileName(this, tr("A file to learn from"), from);
  if (!path.isEmpty()) learn_from(path);
}

int64_t DataView::chosen_step() const {
  if (!bench_.shown()) return 0;
  const Selection& s = bench_.bus.current();
  const bool chosen = s.kind == Selection::Kind::step && s.document == Document::kProject;
  return std::min(chosen ? s.id : bench_.shown_steps(), bench_.shown_steps());
}

void DataView::show_batch() {
  const int64_t step = chosen_step();
  if (step < 1) return;
  bench_.jobs.start(
      "data.batch", tr("Find the samples of step %1").arg(step),
      [project = bench_.project(), run = bench_.shown_run(), step](const Jobs::Report& report,
                                                                   const std::atomic<bool>&) {
        return projects::batch_of(*project, run, step, report);
      },
      [this, run = *bench_.shown()](const projects::StepBatch& batch) {
        of_run_ = std::make_shared<const Recipe>(Recipe::from_json(run.recipe_after(batch.step - 1)));
        batch_ = tr("step %1 of run %2, epoch %3")
                     .arg(QString::number(batch.step), QString::fromStdString(run.name), QString::number(batch.epoch));
        transforms_->set_epoch(batch.epoch);
        show_samples(batch.rows);
      },
      [this](const QString& message, const QString& hint) {
        bench_.fail(tr("The samples of the step cannot be found"), message, hint);
      });
}

void DataView::show_samples(const std::vector<int64_t>& rows) {
  asked_ = rows;
  read_of_.clear();
  bench_.ask(QString("view.") + def().id);
  show_page(1);
  read(read_all_);
}

void DataView::refresh() {
  if (!bench_.has_project()) {
    read_of_.clear();
    asked_.clear();
    look_.reset();
    bench_.jobs.cancel_tag("data");
    return set_empty(true, tr("Open a project to see what it learns from."));
  }
  if (const std::string& fault = bench_.contents().recipe_fault; !fault.empty()) {
    read_of_.clear();
    return set_empty(true, tr("The recipe of this project cannot be read: %1").arg(QString::fromStdString(fault)));
  }
  for (const char* name : {"data.file", "data.folder"})
    findChild<QToolButton*>(name)->setEnabled(!bench_.project()->read_only());
  if (in_sight()) read(false);
}

void DataView::read(bool all) {
  if (!bench_.has_project() || !bench_.contents().recipe_fault.empty()) return;
  const std::string of = bench_.file().toStdString() + "\n" + data_keys(recipe());
  if (of == read_of_ && (!all || read_all_)) return;
  const bool opened = of == read_of_ && look_;
  read_of_ = of;
  read_all_ = all;
  if (opened) return read_samples();
  bench_.jobs.cancel_tag("data.samples");
  bench_.jobs.start(
      "data", tr("Look at the data"),
      [recipe = recipe(), rows = asked_](const Jobs::Report&, const std::atomic<bool>&) {
        return looked(recipe, [&] { return look_at(recipe, kSamples, rows); });
      },
      [this, of](const std::shared_ptr<Read>& r) {
        if (of != read_of_) return;
        show_fault(r->error, r->offer);
        take(r->look);
        if (look_ && (read_all_ || is_small(*look_))) read_samples();
      });
  set_waiting(
      bench_.jobs, [](const Jobs::State& job) { return job.tag == "data"; }, tr("what the next run learns from"),
      [this] { read_of_.clear(); });
}

/// What is told without it stands there already: on a large table that is there within a second.
void DataView::read_samples() {
  bench_.jobs.start(
      "data.samples", tr("Read every sample of the data"),
      [look = look_](const Jobs::Report& report, const std::atomic<bool>&) {
        return looked(*look->recipe, [&] {
          DataLook whole = *look;
          read_all(whole, report);
          return whole;
        });
      },
      [this, of = read_of_](const std::shared_ptr<Read>& r) {
        if (of != read_of_) return;
        show_fault(r->error, r->offer);
        if (r->look) take(r->look);
      });
}

void DataView::show_fault(const QString& fault, std::optional<OfferedKey> offer) {
  fault_->set_text(fault);
  fault_row_->setVisible(!fault.isEmpty());
  offered_ = std::move(offer);
  const bool can = offered_ && !of_run_ && bench_.has_project() && !bench_.project()->read_only();
  offer_->setVisible(can);
  if (!can) return;
  offer_->setText(
      tr("Set %1 = %2").arg(QString::fromStdString(offered_->key), QString::fromStdString(offered_->value)));
  for (const AttrDef& def : Recipe::keys())
    if (def.name == offered_->key) offer_->setToolTip(QString::fromStdString(def.help));
}

void DataView::take(std::shared_ptr<const DataLook> look) {
  const bool same_samples = look_ && look && look_->split == look->split;
  look_ = std::move(look);
  set_empty(false);
  for (TableList* list : {splits_, remarks_, classes_}) list->set_table({});
  if (!same_samples) samples_->set_table({});
  splits_->setVisible(look_ != nullptr);
  all_->setVisible(look_ && !look_->survey);
  const QString first = batch_.isEmpty() ? QString() : batch_ + " · ";
  said_->set_text(look_ ? first + QString::fromStdString(data_text(*look_)) : tr("The data cannot be opened."));
  of_classes_->setVisible(look_ && !look_->classes.empty());
  const std::string divided = look_ ? split_text(*look_) : std::string();
  divided_->set_text(QString::fromStdString(divided));
  divided_->setVisible(!divided.empty());
  transforms_->set_data(look_);
  fit();
  if (!look_) return;
  const bool counts = is_small(*look_) && !look_->survey;  // they come with what is read by itself
  if (look_->classes.empty() && !counts && pages_->currentIndex() == 2) show_page(0);
  splits_->set_table(splits_table(*look_));
  remarks_->set_table(remarks_table(*look_));
  remarks_->say_when_empty(look_->survey ? tr("Nothing looks wrong: every sample was read.")
                                         : tr("Nothing looks wrong so far. Read every sample looks at all of them."));
  if (!same_samples) samples_->set_table(samples_table(*look_));
  if (!same_samples && !asked_.empty()) samples_->setCurrentIndex(samples_->model()->index(0, 0));
  classes_->set_table(classes_table(*look_));
  splits_->setFixedHeight(splits_->horizontalHeader()->sizeHint().height() + 2 * splits_->rowHeight(0) + 2);
}

namespace {
const bool registered_data_view = register_view<DataView>(
    {.id = "data",
     .title = tr_later("Data"),
     .icon = "table",
     .order = 14,
     .layouts = {"Build", "Train"},
     .shows = nullptr,
     .help = {
         tr_later("What the next run learns from: how its files were read, what was taken for granted, and what "
                  "looks wrong in them, each with the file and the row; and whether the model suits them. Classes "
                  "and samples have pages of their own; Transforms shows a sample as it is and behind each "
                  "transform of the recipe."),
         tr_later("Choose another file or folder, of any kind. Begin with … takes a model that suits it; "
                  "Fit the model changes the ends of the one that is there. Read every sample finds what is "
                  "doubled, what both splits hold, and values that are not finite. Small data are read by themselves."),
         tr_later("Tab goes from list to list, Up and Down choose a row.")}});
}  // namespace

}  // namespace tenon::views
