#include "views/query/query_editor_view.h"

#include <QKeyEvent>

#include "views/canvas/glyphs.h"
#include "views/frame/word_offer.h"
#include "views/query/query_completion.h"

namespace tenon::views {

QueryEditor::QueryEditor(QWidget* parent)
    : TextEditor(parent),
      words_(new WordOffer(
          this, "query.words", [this](bool asked) { offer(asked); }, [this](const QString& word) { take(word); })) {
  setFont(face_font(Face::mono));
  setFrameShape(QFrame::NoFrame);
  setTabChangesFocus(true);
  setLineWrapMode(QPlainTextEdit::WidgetWidth);
}

void QueryEditor::set_theme(ThemeName) { setFont(face_font(Face::mono)); }

void QueryEditor::replace_text(const QString& text) {
  QTextCursor all(document());
  all.select(QTextCursor::Document);
  all.insertText(text);
  moveCursor(QTextCursor::End);
}

void QueryEditor::insert_name(const QString& name) {
  const QString before = text().left(textCursor().position());
  const bool apart = before.isEmpty() || before.back().isSpace() || before.back() == '.' || before.back() == '(';
  insertPlainText((apart ? "" : " ") + name);
}

void QueryEditor::keyPressEvent(QKeyEvent* e) {
  const bool open = words_->is_open();
  if (words_->takes(e)) return e->ignore();
  const bool enter = e->key() == Qt::Key_Return || e->key() == Qt::Key_Enter;
  if (enter && e->modifiers().testFlag(Qt::ControlModifier)) {
    if (on_run) on_run();
    return;
  }
  if (e->key() == Qt::Key_Escape) return e->ignore();  // the view stops what it asked
  if (words_->asks(e)) return;
  QPlainTextEdit::keyPressEvent(e);
  words_->typed(e, '.', open);
}

void QueryEditor::focusOutEvent(QFocusEvent* e) {
  QPlainTextEdit::focusOutEvent(e);
  words_->left(e);
}

bool QueryEditor::focusNextPrevChild(bool next) {
  return !words_->is_open() && QPlainTextEdit::focusNextPrevChild(next);
}

/// While one types, a single letter and a word that is whole ask for nothing.
void QueryEditor::offer(bool asked) {
  const QByteArray sql = text().toUtf8();
  const auto cursor = static_cast<size_t>(text().left(textCursor().position()).toUtf8().size());
  const Completion found =
      complete_query(kind_, std::string_view(sql.constData(), static_cast<size_t>(sql.size())), cursor);
  const bool behind_dot = found.begin == cursor;
  const bool wants = asked || behind_dot || (cursor - found.begin > 1 && !found.whole);
  if (found.words.empty() || !wants) return words_->hide();
  words_->show(found.words, cursorRect());
}

void QueryEditor::take(const QString& word) {
  QTextCursor c = textCursor();
  const QString before = text().left(c.position());
  const QByteArray sql = before.toUtf8();
  const Completion found = complete_query(kind_, std::string_view(sql.constData(), static_cast<size_t>(sql.size())),
                                          static_cast<size_t>(sql.size()));
  const int begin = static_cast<int>(QString::fromUtf8(sql.left(static_cast<qsizetype>(found.begin))).size());
  c.setPosition(begin, QTextCursor::KeepAnchor);
  c.insertText(word);
  setTextCursor(c);
}

}  // namespace tenon::views
