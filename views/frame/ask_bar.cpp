#include "views/frame/ask_bar.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/frame/theme.h"
#include "views/frame/widgets.h"

namespace tenon::views {

AskBar::AskBar(const QString& name, const QString& words, QLineEdit* line, QWidget* parent) : QWidget(parent) {
  auto* box = new QVBoxLayout(this);
  box->setContentsMargins(12, 6, 8, 6);
  box->setSpacing(2);
  row_ = new QHBoxLayout;
  row_->setSpacing(6);
  auto* label = new QLabel(words, this);
  set_style(label, "voice", "secondary");
  label->setBuddy(line);
  row_->addWidget(label);
  row_->addWidget(line, 1);
  box->addLayout(row_);
  answer_ = new ElidedLabel({}, this);
  answer_->setObjectName(name + ".answer");
  set_style(answer_, "voice", "small");
  box->addWidget(answer_);
}

QToolButton* AskBar::add_button(const QString& name, const QString& text, const QString& tip,
                                const std::function<void()>& run) {
  auto* button = new QToolButton(this);
  button->setObjectName(name);
  button->setText(text);
  button->setToolTip(tip);
  if (run) connect(button, &QToolButton::clicked, this, run);
  row_->addWidget(button);
  return button;
}

}  // namespace tenon::views
