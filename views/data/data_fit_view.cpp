// Of the page of data: files and folders of any kind, and how the model meets them.
#include <QHBoxLayout>
#include <QMenu>
#include <QToolButton>
#include <nlohmann/json.hpp>
#include <optional>

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
  mend_ = new QToolButton(fit_row_);
  mend_->setObjectName("data.mend");
  mend_->setText(tr("Fit the model"));
  connect(mend_, &QToolButton::clicked, this, &DataView::mend_model);
  row->addWidget(mend_);
  begin_ = new QToolButton(fit_row_);
  begin_->setObjectName("data.begin");
  auto* models = new QMenu(begin_);
  models->setToolTipsVisible(true);
  connect(models, &QMenu::aboutToShow, this, [this, models] {
    models->clear();
    if (!fit_) return;
    for (const std::string& name : fit_->templates) {
      QAction* a = models->addAction(QString::fromStdString(name), this, [this, name] { begin_with(name); });
      a->setObjectName("data.begin." + QString::fromStdString(name));
      a->setToolTip(QString::fromStdString(find_template(name).title));
    }
  });
  begin_->setMenu(models);
  connect(begin_, &QToolButton::clicked, this, [this] {
    if (fit_ && fit_->fit.bare && !fit_->templates.empty()) begin_with(std::string(fit_->templates.front()));
  });
  row->addWidget(begin_);
  fit_row_->hide();
  return fit_row_;
}

/// As a file or folder is opened: what kind it is, it says itself.
void DataView::learn_from(const QString& path) {
  bench_.jobs.start(
      "data.own", tr("Look what kind of data %1 is").arg(path),
      [recipe = bench_.recipe(), path = path.toStdString()](const Jobs::Report&, const std::atomic<bool>&) {
        struct Found {
          std::optional<Recipe> recipe;
          std::string error;
        };
        auto found = std::make_shared<Found>();
        try {
          found->recipe = with_own_data(recipe, path).recipe;
        } catch (const Error& e) {
          found->error = e.message() + (e.hint().empty() ? "" : "; " + e.hint());
        }
        return found;
      },
      [this, path, of = bench_.project()](const auto& found) {
        if (bench_.project() != of) return;
        Recipe next = bench_.recipe();
        if (found->recipe) {
          next = *found->recipe;
        } else {
          // What is wrong with it is told by the page, beside the keys that may say otherwise.
          next.set("data.dir", path.toStdString());
          if (next == bench_.recipe()) return show_fault(QString::fromStdString(found->error));
        }
        bench_.set_recipe(next);
      });
}

void DataView::fit() {
  const ModelSpec& model = bench_.model<BuilderModel>().spec();
  if (!bench_.has_project() || !look_ || of_run_) return take_fit(nullptr);
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
  begin_->setVisible(writable && fit_->open() && !fit_->templates.empty());
  if (fit_->templates.empty()) return;
  begin_->setPopupMode(m.bare ? QToolButton::MenuButtonPopup : QToolButton::InstantPopup);
  begin_->setText(m.bare ? tr("Begin with %1").arg(QString::fromStdString(fit_->templates.front()))
                         : tr("Another model"));
  begin_->setToolTip(m.bare ? QString::fromStdString(find_template(fit_->templates.front()).title)
                            : tr("Models that could learn from these data take the place of this one"));
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
