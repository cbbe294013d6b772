// Of the page of data: files and folders of any kind, and how the model meets them.
#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>
#include <QToolButton>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/templates/templates.h"
#include "engine/train/own_data.h"
#include "views/builder/builder_model.h"
#include "views/data/data_view.h"

namespace tenon::views {

QWidget* DataView::make_fit(QWidget* parent) {
  fit_row_ = new QWidget(parent);
  auto* row = new QHBoxLayout(fit_row_);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(8);
  fits_ = new ElidedLabel({}, fit_row_);
  fits_->setObjectName("data.fits");
  row->addWidget(fits_, 1);
  const auto button = [&](const char* name) {
    auto* b = new QPushButton(fit_row_);
    b->setObjectName(name);
    row->addWidget(b);
    return b;
  };
  mend_ = button("data.mend");
  mend_->setText(tr("Fit the model"));
  connect(mend_, &QPushButton::clicked, this, &DataView::mend_model);
  begin_ = button("data.begin");
  connect(begin_, &QPushButton::clicked, this, [this] {
    if (fit_ && !fit_->templates.empty()) begin_with(std::string(fit_->templates.front()));
  });
  others_ = new QToolButton(fit_row_);
  others_->setObjectName("data.others");
  others_->setText(tr("Other models"));
  others_->setToolTip(tr("Models that could learn from these data take the place of this one"));
  others_->setPopupMode(QToolButton::InstantPopup);
  auto* models = new QMenu(others_);
  models->setToolTipsVisible(true);
  connect(models, &QMenu::aboutToShow, this, [this, models] {
    models->clear();
    for (const std::string& name : fit_ ? fit_->templates : std::vector<std::string>()) {
      QAction* a = models->addAction(QString::fromStdString(name), this, [this, name] { begin_with(name); });
      a->setObjectName("data.begin." + QString::fromStdString(name));
      a->setToolTip(QString::fromStdString(find_template(name).title));
    }
  });
  others_->setMenu(models);
  row->addWidget(others_);
  fit_row_->hide();
  return fit_row_;
}

/// As a file or folder is opened: what kind it is, it says itself.
void DataView::learn_from(const QString& path) {
  bench_.jobs.start(
      "data.own", tr("Look what kind of data %1 is").arg(path),
      [recipe = bench_.recipe(), path = path.toStdString()](const Jobs::Report&, const std::atomic<bool>&) {
        struct Found {
          Recipe recipe;
          std::string error;
        };
        auto found = std::make_shared<Found>(Found{recipe, {}});
        try {
          found->recipe = naming_data(recipe, path);
          found->recipe = with_own_data(recipe, path).recipe;
        } catch (const Error& e) {
          found->error = e.message() + (e.hint().empty() ? "" : "; " + e.hint());
        }
        return found;
      },
      [this, of = bench_.project()](const auto& found) {
        if (bench_.project() != of) return;
        // What is wrong with data of a kind that is known is told by the page itself, beside keys that may mend it.
        if (found->recipe == bench_.recipe())
          show_fault(QString::fromStdString(found->error));
        else
          bench_.set_recipe(found->recipe);
      });
}

void DataView::fit() {
  const ModelSpec& model = bench_.model<BuilderModel>().spec();
  if (!bench_.has_project() || !look_ || of_run_) return take_fit(nullptr);
  if (!in_sight()) return;
  const std::string keys = bench_.recipe().to_json().dump();
  if (fit_of_look_ == look_ && fit_of_keys_ == keys && fit_of_model_ == model) return;
  fit_of_look_ = look_;
  fit_of_keys_ = keys;
  fit_of_model_ = model;
  bench_.jobs.cancel_tag("data.fit");
  bench_.jobs.start(
      "data.fit", tr("Hold the model beside the data"),
      [model, recipe = bench_.recipe(), look = look_](const Jobs::Report&, const std::atomic<bool>&) {
        try {
          return std::make_shared<const DataFit>(fit_of(model, recipe, *look->split));
        } catch (const Error& e) {
          return std::make_shared<const DataFit>(DataFit{{.problem = e.message(), .hint = e.hint()}, {}});
        }
      },
      [this, look = look_, keys, model](const std::shared_ptr<const DataFit>& f) {
        if (fit_of_look_ == look && fit_of_keys_ == keys && fit_of_model_ == model) take_fit(f);
      });
}

void DataView::take_fit(std::shared_ptr<const DataFit> f) {
  if (!f) fit_of_look_.reset();
  fit_ = std::move(f);
  fit_row_->setVisible(fit_ != nullptr);
  if (!fit_) return;
  const ModelFit& m = fit_->fit;
  const bool writable = !bench_.project()->read_only();
  fits_->set_text(QString::fromStdString(fit_text(*fit_)));
  set_style(fits_, "voice", !fit_->open() ? "secondary" : m.bare ? "plain" : "bad");
  mend_->setVisible(writable && fit_->open() && !m.bare && !m.changes.empty());
  mend_->setToolTip(QString::fromStdString(m.changes_text()));
  const bool offered = writable && fit_->open() && !fit_->templates.empty();
  begin_->setVisible(offered && m.bare);
  others_->setVisible(offered && (!m.bare || fit_->templates.size() > 1));
  if (!offered) return;
  const Template& best = find_template(fit_->templates.front());
  begin_->setText(tr("Begin with %1").arg(QString::fromStdString(best.name)));
  begin_->setToolTip(QString::fromStdString(best.title));
}

void DataView::mend_model() {
  if (!fit_ || fit_->fit.changes.empty()) return;
  bench_.model<BuilderModel>().replace(views::tr("fit the model to the data"), fit_->fit.mended);
}

void DataView::begin_with(const std::string& template_name) {
  if (!look_ || !bench_.has_project()) return;
  bench_.jobs.start(
      "data.begin", tr("Begin with %1").arg(QString::fromStdString(template_name)),
      [template_name, recipe = bench_.recipe(), look = look_](const Jobs::Report&, const std::atomic<bool>&) {
        return tenon::begin_with(find_template(template_name), recipe, *look->split);
      },
      [this, template_name, look = look_](const Beginning& b) {
        if (look != look_) return;
        if (!bench_.model<BuilderModel>().replace(views::tr("begin with {}", template_name), b.model)) return;
        bench_.set_recipe(b.recipe);
      },
      [this, template_name](const QString& message, const QString& hint) {
        bench_.fail(tr("%1 cannot begin with these data").arg(QString::fromStdString(template_name)), message, hint);
      });
}

}  // namespace tenon::views
