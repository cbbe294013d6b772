#include "views/shell/tour.h"

#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>
#include <algorithm>

#include "tracing/record/step_record.h"
#include "views/frame/theme.h"
#include "views/shared/format.h"

namespace tenon::views {

Tour::Tour(Workbench& bench, Commands& commands, QWidget* parent)
    : QToolBar(tr("Tour"), parent), bench_(bench), commands_(commands) {
  setObjectName("tour");
  setMovable(false);
  setContextMenuPolicy(Qt::PreventContextMenu);
  auto* frame = new QFrame(this);
  set_style(frame, "surface", "banner");
  set_style(frame, "tone", "notice");
  frame->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  auto* row = new QHBoxLayout(frame);
  row->setContentsMargins(12, 4, 6, 4);
  text_ = new QLabel(frame);
  text_->setObjectName("tour.text");
  text_->setWordWrap(true);
  row->addWidget(text_, 1);
  action_ = new QToolButton(frame);
  action_->setObjectName("tour.action");
  set_style(action_, "primary", "true");
  connect(action_, &QToolButton::clicked, this, [this] {
    if (auto act = act_) act();
  });
  row->addWidget(action_);
  leave_ = new QToolButton(frame);
  leave_->setObjectName("tour.leave");
  leave_->setText(tr("Leave the tour"));
  connect(leave_, &QToolButton::clicked, this, &Tour::leave);
  row->addWidget(leave_);
  addWidget(frame);
  hide();
  connect(&bench, &Workbench::state_changed, this, &Tour::refresh);
  connect(&bench, &Workbench::status_changed, this, &Tour::refresh);
  connect(&bench, &Workbench::step_changed, this, &Tour::refresh);
}

void Tour::start() {
  running_ = true;
  refresh();
  action_->setFocus();
}

void Tour::leave() {
  running_ = false;
  refresh();
  if (on_seen) on_seen();
}

void Tour::refresh() {
  if (isHidden() == running_) setVisible(running_);
  if (!running_) return;
  auto text = [](int64_t n) { return QString::fromStdString(format_grouped(n)); };
  const int64_t steps = bench_.shown_steps();
  if (!bench_.has_project()) {
    say(tr("Step 1 of 3: make a small project. Its data is generated, so it needs no files; you choose where it goes."),
        tr("Make it…"), make_project);
  } else if (bench_.training()) {
    say(tr("Step 2 of 3: it trains, %1 steps so far. The curves follow in Training; stop it once you have seen "
           "enough.")
            .arg(text(bench_.status().step)),
        tr("Stop"), [this] { commands_.run("run.stop"); });
  } else if (steps < 1) {
    say(tr("Step 2 of 3: train it. What it is told stands in Recipe, the model in Model builder."), tr("Train"),
        [this] {
          commands_.run("layout.train");
          commands_.run("run.train");
        });
  } else if (bench_.loading_step()) {
    say(tr("Step 3 of 3: the step is run again, bit for bit, with every instrument on."));
  } else if (!bench_.links()) {
    const int64_t step = std::max<int64_t>(1, steps / 2);
    say(tr("Step 3 of 3: look into a step. Drag the slider above, click into the curves, or take one from the middle."),
        tr("Look at step %1").arg(text(step)), [this, step] {
          commands_.run("layout.profile");
          bench_.select(Selection::step(step, "tour"));
        });
  } else {
    say(
        tr("That is step %1 with everything in it. Click an op in the Timeline: its tensors, gradients and bytes "
           "follow in the other views. F1 says what a view shows.")
            .arg(text(bench_.links().record()->step)),
        tr("Done"), [this] { leave(); }, true);
  }
}

void Tour::say(const QString& text, const QString& button, std::function<void()> act, bool last) {
  const QWidget* keys = window()->focusWidget();
  const bool held = keys && (keys == action_ || keys == leave_);
  if (text_->text() != text) text_->setText(text);
  if (action_->text() != button) action_->setText(button);
  action_->setVisible(!button.isEmpty());
  leave_->setVisible(!last);
  if (held) (button.isEmpty() ? leave_ : action_)->setFocus();  // a button that goes leaves the keys to its neighbour
  act_ = std::move(act);
  fit();
}

/// As tall as its words need: a label that breaks lines asks a toolbar for those of a narrow one.
void Tour::fit() {
  constexpr int kAround = 42;  // margins and spaces
  int buttons = kAround;
  for (const QToolButton* b : {action_, leave_})
    if (!b->isHidden()) buttons += b->sizeHint().width();
  buttons = std::max(buttons, action_->isHidden() ? 160 : 290);
  const QRect room(0, 0, std::max(120, width() - buttons), 1000);
  const int height = text_->fontMetrics().boundingRect(room, Qt::TextWordWrap, text_->text()).height() + 6;
  if (text_->minimumHeight() != height) text_->setFixedHeight(height);
}

void Tour::resizeEvent(QResizeEvent* e) {
  QToolBar::resizeEvent(e);
  fit();
}

}  // namespace tenon::views
