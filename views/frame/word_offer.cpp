#include "views/frame/word_offer.h"

#include <QAbstractItemView>
#include <QCompleter>
#include <QKeyEvent>
#include <QScrollBar>
#include <QStringListModel>
#include <utility>

namespace tenon::views {

WordOffer::WordOffer(QWidget* field, const QString& name, std::function<void(bool)> offer,
                     std::function<void(const QString&)> take)
    : QObject(field), completer_(new QCompleter(this)), words_(new QStringListModel(this)), offer_(std::move(offer)) {
  completer_->setModel(words_);
  completer_->setWidget(field);
  completer_->setCompletionMode(QCompleter::UnfilteredPopupCompletion);
  completer_->popup()->setObjectName(name);
  connect(completer_, QOverload<const QString&>::of(&QCompleter::activated), this, std::move(take));
}

bool WordOffer::is_open() const { return completer_->popup()->isVisible(); }
void WordOffer::hide() { completer_->popup()->hide(); }

void WordOffer::show(const std::vector<std::string>& words, QRect at) {
  QStringList all;
  for (const std::string& w : words) all << QString::fromStdString(w);
  words_->setStringList(all);
  const auto* list = completer_->popup();
  at.setWidth(list->sizeHintForColumn(0) + list->verticalScrollBar()->sizeHint().width() + 16);
  completer_->complete(at);
  completer_->popup()->setCurrentIndex(completer_->completionModel()->index(0, 0));
}

bool WordOffer::takes(const QKeyEvent* e) {
  if (!is_open()) return false;
  switch (e->key()) {
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Escape:
    case Qt::Key_Tab:
    case Qt::Key_Backtab:
      if (e->modifiers() == Qt::NoModifier) return true;
      hide();
      return false;
    default:
      return false;
  }
}

bool WordOffer::asks(const QKeyEvent* e) {
  if (e->key() != Qt::Key_Space || e->modifiers() != Qt::ControlModifier) return false;
  offer_(true);
  return true;
}

void WordOffer::typed(const QKeyEvent* e, QChar opener, bool was_open) {
  const QString text = e->text();
  const bool word = !text.isEmpty() && (text[0].isLetterOrNumber() || text[0] == '_' || text[0] == opener);
  if (word || (e->key() == Qt::Key_Backspace && was_open))
    offer_(false);
  else if (e->key() != Qt::Key_Shift && e->key() != Qt::Key_Control)
    hide();
}

void WordOffer::left(const QFocusEvent* e) {
  if (e->reason() != Qt::PopupFocusReason) hide();
}

}  // namespace tenon::views
