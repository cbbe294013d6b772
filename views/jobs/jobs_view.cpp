#include "views/jobs/jobs_view.h"

#include <QGridLayout>
#include <QProgressBar>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "views/canvas/glyphs.h"
#include "views/frame/widgets.h"

namespace tenon::views {

JobsView::JobsView(const ViewDef& def, Bench& bench, QWidget* parent)
    : View(def, bench, parent), page_(new QWidget(this)) {
  set_style(page_, "surface", "panel");
  page_->setAttribute(Qt::WA_StyledBackground);
  auto* box = new QVBoxLayout(page_);
  box->setContentsMargins(14, 10, 14, 10);
  box->addStretch();
  set_content(page_);
  timer_.setInterval(500);  // each change composes the window anew
  connect(&timer_, &QTimer::timeout, this, &JobsView::refresh);
  connect(&bench.jobs, &Jobs::changed, this, &JobsView::refresh);
  connect(&bench.files, &Jobs::changed, this, &JobsView::refresh);
  refresh();
}

void JobsView::refresh() {
  std::vector<std::pair<Jobs*, std::shared_ptr<Jobs::State>>> all;
  for (Jobs* jobs : {&bench_.jobs, &bench_.files})
    for (auto& s : jobs->list())
      if (!s->quiet) all.emplace_back(jobs, s);
  std::vector<int> ids;
  for (auto& [jobs, s] : all) ids.push_back(s->id * 2 + (jobs == &bench_.jobs));
  if (all.empty()) {
    timer_.stop();
    shown_.clear();
    return set_empty(
        true,
        tr("Nothing is running. Replays and searches will be here, each with its progress and a way to cancel it."));
  }
  set_empty(false);
  if (!timer_.isActive()) timer_.start();
  if (ids != shown_) {
    if (rows_) {  // a click on one of its own buttons may be what led here
      page_->layout()->removeWidget(rows_);
      discard(rows_);
    }
    rows_ = new QWidget(page_);
    auto* grid = new QGridLayout(rows_);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setColumnStretch(1, 1);
    int row = 0;
    for (auto& [jobs, s] : all) {
      auto* bar = new QProgressBar(rows_);
      bar->setObjectName(QString("bar%1").arg(row));
      bar->setTextVisible(false);
      auto* text = new QLabel(rows_);
      text->setObjectName(QString("text%1").arg(row));
      text->setFont(face_font(Face::mono_small));
      text->setMinimumWidth(110);
      text->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
      auto* cancel = new QToolButton(rows_);
      cancel->setText(tr("Cancel"));
      connect(cancel, &QToolButton::clicked, this, [jobs = jobs, id = s->id] { jobs->cancel(id); });
      grid->addWidget(new QLabel(s->title, rows_), row, 0);
      grid->addWidget(bar, row, 1);
      grid->addWidget(text, row, 2);
      grid->addWidget(cancel, row, 3);
      ++row;
    }
    static_cast<QVBoxLayout*>(page_->layout())->insertWidget(0, rows_);
    shown_ = ids;
  }
  for (int row = 0; row < static_cast<int>(all.size()); ++row) {
    const Jobs::State& s = *all[row].second;
    auto* bar = rows_->findChild<QProgressBar*>(QString("bar%1").arg(row));
    auto* text = rows_->findChild<QLabel*>(QString("text%1").arg(row));
    bar->setRange(0, 1000);
    bar->setValue(static_cast<int>(1000 * std::max(s.share(), 0.0)));
    text->setText(s.figures());
  }
}

namespace {
const bool registered_jobs_view = register_view<JobsView>(
    {.id = "jobs",
     .title = tr_later("Jobs"),
     .icon = "jobs",
     .order = 200,
     .spot = Spot::below,
     .rank = 8,
     .help = {
         tr_later("The long work that runs beside the window, and what waits for it: replays, searches, files that are "
                  "read, copied or exported, each with how far it is."),
         tr_later("Cancel ends one; what it was working out is not shown then, and nothing else is lost."),
         tr_later("Tab goes from one Cancel to the next, Space presses it.")}});
}  // namespace

}  // namespace tenon::views
