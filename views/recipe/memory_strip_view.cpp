#include "views/recipe/memory_strip_view.h"

#include <QGridLayout>
#include <QScrollArea>
#include <QToolButton>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "engine/data/dataset.h"
#include "engine/op/cuda_device.h"
#include "engine/train/open_data.h"
#include "views/frame/table_list.h"
#include "views/shared/language.h"

namespace tenon::views {
namespace {

constexpr const char* kJob = "memory forecast";
constexpr const char* kProposals = "memory proposals";
constexpr int kStandsStill = 250;  // ms after the last edit

/// What the data set of a recipe depends on.
std::string data_key(const Recipe& recipe) {
  nlohmann::json j = recipe.to_json()["data"];
  for (const char* key : {"batch_size", "micro_batches", "workers", "prefetch", "shuffle", "drop_last"}) j.erase(key);
  // Where classes are balanced, the outline is the data themselves.
  return j.dump() + recipe.to_json()["loss"].dump() + attr_text(recipe.at("seed"));
}

struct Forecast {
  MemoryNeeds needs;
  std::shared_ptr<const data::Split> data;
};

}  // namespace

MemoryStrip::MemoryStrip(Bench& bench, QWidget* parent) : QWidget(parent), bench_(bench) {
  build();
  pause_.setSingleShot(true);
  pause_.setInterval(kStandsStill);
  connect(&pause_, &QTimer::timeout, this, &MemoryStrip::start);
  connect(open_, &QToolButton::toggled, this, [this](bool on) {
    page_->setVisible(on);
    if (on) start_proposals();
  });
}

void MemoryStrip::build() {
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(0, 0, 0, 0);
  box->setSpacing(0);
  auto* bar = new ViewBar(this);
  said_ = new ElidedLabel({}, bar);
  said_->setObjectName("recipe.memory");
  set_style(said_, "voice", "small");
  bar->add(said_, 1);
  open_ = new QToolButton(bar);
  open_->setObjectName("recipe.memory.open");
  open_->setText(tr("Memory"));
  open_->setToolTip(tr("Which layers need it, and what would need less"));
  open_->setCheckable(true);
  open_->setEnabled(false);
  bar->add(open_);
  box->addWidget(bar);
  page_ = new QWidget(this);
  auto* rows = new QVBoxLayout(page_);
  rows->setContentsMargins(16, 4, 16, 8);
  moment_ = new QLabel(page_);
  moment_->setObjectName("recipe.memory.moment");
  moment_->setWordWrap(true);
  set_style(moment_, "voice", "secondary");
  rows->addWidget(moment_);
  proposals_ = new QScrollArea(page_);
  proposals_->setObjectName("recipe.memory.proposals");
  proposals_->setWidgetResizable(true);
  proposals_->setFrameShape(QFrame::NoFrame);
  proposals_->setMaximumHeight(190);
  rows->addWidget(proposals_);
  layers_ = new TableList(page_);
  layers_->setObjectName("recipe.memory.layers");
  layers_->setAccessibleName(tr("Memory of each layer"));
  layers_->setMaximumHeight(220);
  layers_->on_select = [this](const Selection& s) {
    if (s.kind != Selection::Kind::none) bench_.select(s);
  };
  rows->addWidget(layers_, 1);
  page_->hide();
  box->addWidget(page_, 1);
}

void MemoryStrip::say(const QString& text, const char* voice) {
  said_->set_text(text);
  set_style(said_, "voice", voice);
}

void MemoryStrip::set_run(const ModelSpec& model, const Recipe& recipe) {
  std::string of = model.to_json().dump() + recipe.to_json().dump();
  if (of == of_) return;
  model_ = model;
  recipe_ = recipe;
  of_ = std::move(of);
}

void MemoryStrip::clear() {
  if (of_.empty()) return;
  of_ = done_ = proposed_ = data_of_ = {};  // first: whoever is told of the cancelled jobs may come back here
  pause_.stop();
  for (const char* job : {kJob, kProposals})
    if (bench_.jobs.has(job)) bench_.jobs.cancel_tag(job);
  needs_.reset();
  all_.clear();
  data_.reset();
  open_->setChecked(false);
  open_->setEnabled(false);
  say({}, "small");
}

void MemoryStrip::work() {
  if (!of_.empty() && of_ != done_ && !pause_.isActive()) pause_.start();
}

void MemoryStrip::start() {
  if (of_.empty() || of_ == done_) return;
  done_ = of_;
  if (bench_.jobs.has(kProposals)) bench_.jobs.cancel_tag(kProposals);
  const std::string key = data_key(recipe_);
  bench_.jobs.start(
      kJob, tr("Work out the memory of the next run"),
      [model = model_, recipe = recipe_, known = key == data_of_ ? data_ : nullptr](
          const Jobs::Report&, const std::atomic<bool>& cancelled) {
        const auto data = known ? known : outline_of(open_data(recipe), recipe);
        return Forecast{
            memory_needs(model, recipe, data, memory_limit_of(recipe.text("device")), [&] { return cancelled.load(); }),
            data};
      },
      [this, of = of_, key](const Forecast& f) {
        if (of != of_) return work();
        data_ = f.data;
        data_of_ = key;
        needs_ = f.needs;
        show_needs();
      },
      [this, of = of_](const QString& message, const QString& hint) {
        if (of != of_) return work();
        needs_.reset();
        open_->setChecked(false);
        open_->setEnabled(false);
        say(tr("What memory it needs cannot be said: %1").arg(hint.isEmpty() ? message : message + "; " + hint),
            "small");
      },
      true);
}

void MemoryStrip::show_needs() {
  say(QString::fromStdString(memory_line(*needs_)), needs_->fits() ? "small" : "news");
  open_->setEnabled(true);
  moment_->setText(QString::fromStdString(memory_moment(*needs_)));
  layers_->set_table(memory_layers(needs_->now));
  all_.clear();
  proposed_.clear();
  if (open_->isChecked()) start_proposals();
}

void MemoryStrip::start_proposals() {
  if (!needs_ || proposed_ == done_ || !data_) return;
  proposed_ = done_;
  bench_.jobs.start(
      kProposals, tr("Look for what needs less memory"),
      [model = model_, recipe = recipe_, data = data_, now = needs_->now](const Jobs::Report&,
                                                                          const std::atomic<bool>& cancelled) {
        return memory_proposals(model, recipe, data, now, [&] { return cancelled.load(); });
      },
      [this, of = done_](std::vector<MemoryProposal> all) {
        if (of != of_) return;
        all_ = std::move(all);
        show_proposals();
      },
      [this](const QString&, const QString&) { proposed_.clear(); }, true);
}

void MemoryStrip::show_proposals() {
  if (QWidget* old = proposals_->takeWidget()) discard(old);
  auto* list = new QWidget(proposals_);
  auto* grid = new QGridLayout(list);
  grid->setContentsMargins(0, 4, 0, 4);
  grid->setHorizontalSpacing(16);
  grid->setVerticalSpacing(3);
  grid->setColumnStretch(4, 1);
  if (all_.empty()) grid->addWidget(new QLabel(tr("Nothing that is known here would save much."), list), 0, 0);
  for (size_t i = 0; i < all_.size(); ++i) add_proposal(grid, static_cast<int>(i), all_[i]);
  proposals_->setWidget(list);
}

void MemoryStrip::add_proposal(QGridLayout* grid, int at, const MemoryProposal& p) {
  QWidget* list = grid->parentWidget();
  const Table one = memory_proposals_table({p}, needs_->limit);
  const std::vector<Table::Cell>& cells = one.rows.at(0).cells;
  auto* apply = new QToolButton(list);
  apply->setObjectName(QString("recipe.memory.apply.%1").arg(at));
  apply->setText(tr("Apply"));
  apply->setAccessibleName(tr("Apply: %1").arg(QString::fromStdString(cells[0].text)));
  apply->setToolTip(QString::fromStdString(proposal_settings(p)));
  apply->setEnabled(!bench_.project() || !bench_.project()->read_only());
  connect(apply, &QToolButton::clicked, this, [this, next = applied(recipe_, p)] {
    if (on_edit) on_edit(next);
  });
  grid->addWidget(apply, at, 0);
  grid->addWidget(new QLabel(QString::fromStdString(cells[0].text), list), at, 1);
  auto* saves = new QLabel(tr("saves %1").arg(QString::fromStdString(cells[1].text)), list);
  saves->setToolTip(tr("It then needs %1").arg(QString::fromStdString(cells[2].text)));
  grid->addWidget(saves, at, 2);
  auto* time = new QLabel(tr("time %1").arg(QString::fromStdString(cells[3].text)), list);
  time->setToolTip(QString::fromStdString(one.columns.at(3).tip));
  grid->addWidget(time, at, 3);
  auto* caution = new ElidedLabel(QString::fromStdString(cells[5].text), list);
  set_style(caution, "voice", "small");
  grid->addWidget(caution, at, 4);
}

}  // namespace tenon::views
