#include "views/frame/widgets.h"

#include <QDialog>
#include <QHBoxLayout>
#include <QPainter>
#include <QProgressBar>
#include <QThread>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <functional>
#include <utility>

#include "views/canvas/glyphs.h"
#include "views/frame/bar_layout.h"

namespace tenon::views {

EmptyState::EmptyState(QWidget* parent)
    : QWidget(parent),
      label_(new QLabel(this)),
      figures_(new QLabel(this)),
      bar_(new QProgressBar(this)),
      button_(new QPushButton(this)) {
  set_style(this, "surface", "panel");
  setAttribute(Qt::WA_StyledBackground);
  auto* box = new QVBoxLayout(this);
  box->addStretch();
  label_->setAlignment(Qt::AlignCenter);
  label_->setWordWrap(true);
  label_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  set_style(label_, "voice", "secondary");
  box->addWidget(label_);
  box->addSpacing(8);
  bar_->setTextVisible(false);
  bar_->setFixedWidth(240);
  bar_->setAccessibleName(tr("Progress"));
  figures_->setObjectName("waiting.figures");
  figures_->setFont(face_font(Face::mono_small));
  figures_->setAlignment(Qt::AlignCenter);
  set_style(figures_, "voice", "secondary");
  box->addWidget(bar_, 0, Qt::AlignHCenter);
  box->addWidget(figures_);
  box->addSpacing(4);
  bar_->setRange(0, 1000);
  bar_->hide();
  figures_->hide();
  progress_.setInterval(250);  // each change composes the window anew, canvases and all
  connect(&progress_, &QTimer::timeout, this, &EmptyState::show_progress);
  auto* row = new QHBoxLayout;
  row->addStretch();
  row->addWidget(button_);
  row->addStretch();
  box->addLayout(row);
  box->addStretch();
  set_style(button_, "primary", "true");
  connect(button_, &QPushButton::clicked, this, [this] {
    if (auto run = run_) run();  // it may put another one in its place
  });
}
void EmptyState::wait_for(Jobs& jobs, std::function<bool(const Jobs::State&)> which, const QString& what,
                          std::function<void()> cancelled) {
  QString title;
  for (const auto& job : jobs.list())
    if (which(*job) && title.isEmpty()) title = job->title;
  say(title.isEmpty() ? what : title + ": " + what, tr("Cancel"), [&jobs, which, cancelled] {
    for (const auto& job : jobs.list())
      if (which(*job)) jobs.cancel(job->id);
    if (cancelled) cancelled();
  });
  waits_for_ = &jobs;
  which_ = std::move(which);
  progress_.start();
  if (show_progress()) return;
  bar_->hide();
  figures_->hide();
}

bool EmptyState::show_progress() {
  for (const auto& job : waits_for_->list()) {
    if (!which_(*job)) continue;
    bar_->setValue(static_cast<int>(1000 * std::max(job->share(), 0.0)));
    figures_->setText(job->figures());
    bar_->show();
    figures_->show();
    return true;
  }
  progress_.stop();  // it has ended, and what comes of it is on its way
  return false;
}

void EmptyState::set(const QString& sentence, const QString& button, std::function<void()> run) {
  progress_.stop();
  bar_->hide();
  figures_->hide();
  say(sentence, button, std::move(run));
}

/// Whoever waits is told so again and again: nothing is laid out anew where the words are the same.
void EmptyState::say(const QString& sentence, const QString& button, std::function<void()> run) {
  label_->setText(sentence);
  button_->setText(button);
  button_->setVisible(!button.isEmpty());
  run_ = std::move(run);
}

ViewBar::ViewBar(QWidget* parent) : QFrame(parent) {
  set_style(this, "surface", "bar");
  auto* row = new BarLayout(this);
  row->setContentsMargins(8, 3, 8, 3);
  row->setSpacing(6);
  setFixedHeight(36);
}
void ViewBar::add(QWidget* w, int stretch) { static_cast<BarLayout*>(layout())->add(w, stretch); }
void ViewBar::add_stretch() { static_cast<BarLayout*>(layout())->addStretch(1); }
void ViewBar::add_label(const QString& text) {
  // A narrow window shortens sentences before it hides controls; the name of a control stays whole.
  QLabel* l = text.size() < 16 ? new QLabel(text, this) : new ElidedLabel(text, this);
  set_style(l, "voice", "secondary");
  add(l);
}

QToolButton* ViewBar::add_button(const QString& name, const QString& text, const QString& tip,
                                 const std::function<void()>& run) {
  auto* button = new QToolButton(this);
  button->setObjectName(name);
  button->setText(text);
  button->setToolTip(tip);
  connect(button, &QToolButton::clicked, this, run);
  add(button);
  return button;
}

QToolButton* ViewBar::add_page(const QString& name, const QString& text, const QString& tip,
                               const std::function<void()>& show) {
  QToolButton* button = add_button(name, text, tip, show);
  button->setCheckable(true);
  return button;
}

QPushButton* add_dialog_buttons(QDialog* dialog, QVBoxLayout* box, const QString& name, const QString& text) {
  auto* row = new QHBoxLayout;
  row->addStretch(1);
  auto* cancel = new QPushButton(dialog->tr("Cancel"), dialog);
  cancel->setAutoDefault(false);
  QObject::connect(cancel, &QPushButton::clicked, dialog, &QDialog::reject);
  row->addWidget(cancel);
  auto* go = new QPushButton(text, dialog);
  go->setObjectName(name);
  go->setAutoDefault(false);
  set_style(go, "primary", "true");
  row->addWidget(go);
  box->addLayout(row);
  return go;
}

void discard(QWidget* w) {
  w->hide();
  auto* timer = new QTimer(w);
  QObject::connect(timer, &QTimer::timeout, w, [w, timer] {
    // A tooltip, say, that the widget shows from its own loop: asked again a little later.
    if (QThread::currentThread()->loopLevel() > 1) return timer->setInterval(50);
    timer->stop();
    w->deleteLater();
  });
  timer->start(0);
}

ElidedLabel::ElidedLabel(const QString& text, QWidget* parent) : QLabel(parent) { set_text(text); }
void ElidedLabel::set_text(const QString& text) {
  if (text == full_) return;
  full_ = text;
  setToolTip(text);
  setAccessibleName(text);
  updateGeometry();
  update();
}
QSize ElidedLabel::sizeHint() const {
  return {fontMetrics().horizontalAdvance(full_) + 2, QLabel::sizeHint().height()};
}
void ElidedLabel::paintEvent(QPaintEvent*) {
  QPainter p(this);
  p.setPen(palette().color(foregroundRole()));
  const bool sentence = full_.contains(' ') && !full_.startsWith('/') && !full_.startsWith('~');
  QString said = full_;  // of parts the last go whole, and the first alone is cut
  while (sentence && fontMetrics().horizontalAdvance(said) > width() && said.contains(" · "))
    said.truncate(said.lastIndexOf(" · "));
  const QString text = fontMetrics().elidedText(said, sentence ? Qt::ElideRight : Qt::ElideMiddle, width());
  p.drawText(rect(), int(alignment() | Qt::AlignVCenter), text);
}

}  // namespace tenon::views
