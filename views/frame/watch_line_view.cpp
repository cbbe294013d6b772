#include "views/frame/watch_line_view.h"

#include <QAbstractItemView>
#include <QCompleter>
#include <QKeyEvent>
#include <QScrollBar>
#include <QStringListModel>

#include "views/canvas/glyphs.h"
#include "views/shared/watch_words.h"

namespace tenon::views {

WatchLine::WatchLine(QWidget* parent)
    : QLineEdit(parent), completer_(new QCompleter(this)), words_(new QStringListModel(this)) {
  setFont(face_font(Face::mono));
  completer_->setModel(words_);
  completer_->setWidget(this);
  completer_->setCompletionMode(QCompleter::UnfilteredPopupCompletion);
  completer_->popup()->setObjectName("watch.words");
  connect(completer_, QOverload<const QString&>::of(&QCompleter::activated), this, &WatchLine::take);
}

void WatchLine::keyPressEvent(QKeyEvent* e) {
  const bool open = completer_->popup()->isVisible();
  if (open) switch (e->key()) {
      case Qt::Key_Return:
      case Qt::Key_Enter:
      case Qt::Key_Escape:
      case Qt::Key_Tab:
      case Qt::Key_Backtab:
        return e->ignore();  // the list takes them
      default:
        break;
    }
  if (e->key() == Qt::Key_Space && e->modifiers() == Qt::ControlModifier) return offer(true);
  QLineEdit::keyPressEvent(e);
  const QString typed = e->text();
  const bool word = !typed.isEmpty() && (typed[0].isLetterOrNumber() || typed[0] == '_' || typed[0] == '(');
  if (word || (e->key() == Qt::Key_Backspace && open))
    offer(false);
  else if (e->key() != Qt::Key_Shift && e->key() != Qt::Key_Control)
    completer_->popup()->hide();
}

void WatchLine::focusOutEvent(QFocusEvent* e) {
  QLineEdit::focusOutEvent(e);
  if (e->reason() != Qt::PopupFocusReason) completer_->popup()->hide();
}

bool WatchLine::focusNextPrevChild(bool next) {
  return !completer_->popup()->isVisible() && QLineEdit::focusNextPrevChild(next);
}

/// While one types, a single letter and a word that is whole ask for nothing.
void WatchLine::offer(bool asked) {
  const std::string typed = text().left(cursorPosition()).toStdString();
  const WatchWords found = watch_words(typed, typed.size(), layers_);
  const bool opened = !typed.empty() && typed.back() == '(';
  if (found.words.empty() || !(asked || opened || (typed.size() - found.begin > 1 && !found.whole)))
    return completer_->popup()->hide();
  QStringList words;
  for (const std::string& w : found.words) words << QString::fromStdString(w);
  words_->setStringList(words);
  QRect at = cursorRect();
  at.setWidth(completer_->popup()->sizeHintForColumn(0) + completer_->popup()->verticalScrollBar()->sizeHint().width() +
              16);
  completer_->complete(at);
  completer_->popup()->setCurrentIndex(completer_->completionModel()->index(0, 0));
}

void WatchLine::take(const QString& word) {
  const std::string typed = text().left(cursorPosition()).toStdString();
  const WatchWords found = watch_words(typed, typed.size(), layers_);
  const auto begin = static_cast<int>(QString::fromStdString(typed.substr(0, found.begin)).size());
  setSelection(begin, cursorPosition() - begin);
  insert(word);
}

}  // namespace tenon::views
