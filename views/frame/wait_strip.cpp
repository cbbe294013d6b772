#include "views/frame/wait_strip.h"

#include <QHBoxLayout>
#include <QToolButton>

#include "views/frame/theme.h"
#include "views/frame/widgets.h"

namespace tenon::views {

WaitStrip::WaitStrip(QWidget* parent) : QFrame(parent), label_(new QLabel(this)) {
  setObjectName("wait");
  set_style(this, "surface", "bar");
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(8, 2, 4, 2);
  label_->setObjectName("wait.text");
  label_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);  // cut off rather than the view made wider
  row->addWidget(label_, 1);
  auto* cancel = new QToolButton(this);
  cancel->setObjectName("wait.cancel");
  cancel->setText(tr("Cancel"));
  row->addWidget(cancel);
  connect(cancel, &QToolButton::clicked, this, [this] {
    if (!jobs_) return;
    jobs_->cancel_tag(tag_);
    if (auto told = cancelled_) told();
  });
  timer_.setInterval(500);  // each change of its words composes the window anew, the canvas beside it too
  connect(&timer_, &QTimer::timeout, this, &WaitStrip::refresh);
  hide();
}

void WaitStrip::wait_for(Jobs& jobs, const QString& tag, const QString& seen, std::function<void()> cancelled) {
  jobs_ = &jobs;
  tag_ = tag;
  seen_ = seen;
  cancelled_ = std::move(cancelled);
  timer_.start();
  refresh();
}

void WaitStrip::stop() {
  jobs_ = nullptr;
  timer_.stop();
  hide();
}

void WaitStrip::refresh() {
  std::shared_ptr<Jobs::State> job;
  if (jobs_)
    for (const auto& j : jobs_->list())
      if (j->tag == tag_ && !j->cancelled) job = j;
  setVisible(job != nullptr);
  if (!job) return timer_.stop();
  const QString text = tr("This is still %1. %2: %3").arg(seen_, job->title, job->figures());
  if (label_->text() == text) return;
  label_->setText(text);
  label_->setToolTip(text);
}

}  // namespace tenon::views
