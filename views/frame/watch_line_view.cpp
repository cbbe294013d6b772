#include "views/frame/watch_line_view.h"

#include <QKeyEvent>

#include "views/canvas/glyphs.h"
#include "views/frame/word_offer.h"
#include "views/shared/watch_words.h"

namespace tenon::views {

WatchLine::WatchLine(QWidget* parent)
    : QLineEdit(parent),
      words_(new WordOffer(
          this, "watch.words", [this](bool asked) { offer(asked); }, [this](const QString& word) { take(word); })) {
  setFont(face_font(Face::mono));
}

void WatchLine::keyPressEvent(QKeyEvent* e) {
  const bool open = words_->is_open();
  if (words_->takes(e)) return e->ignore();
  if (words_->asks(e)) return;
  QLineEdit::keyPressEvent(e);
  words_->typed(e, '(', open);
}

void WatchLine::focusOutEvent(QFocusEvent* e) {
  QLineEdit::focusOutEvent(e);
  words_->left(e);
}

bool WatchLine::focusNextPrevChild(bool next) { return !words_->is_open() && QLineEdit::focusNextPrevChild(next); }

/// While one types, a single letter and a word that is whole ask for nothing.
void WatchLine::offer(bool asked) {
  const std::string typed = text().left(cursorPosition()).toStdString();
  const WatchWords found = watch_words(typed, typed.size(), layers_);
  const bool opened = !typed.empty() && typed.back() == '(';
  if (found.words.empty() || !(asked || opened || (typed.size() - found.begin > 1 && !found.whole)))
    return words_->hide();
  words_->show(found.words, cursorRect());
}

void WatchLine::take(const QString& word) {
  const std::string typed = text().left(cursorPosition()).toStdString();
  const WatchWords found = watch_words(typed, typed.size(), layers_);
  const auto begin = static_cast<int>(QString::fromStdString(typed.substr(0, found.begin)).size());
  setSelection(begin, cursorPosition() - begin);
  insert(word);
}

}  // namespace tenon::views
