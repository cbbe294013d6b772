#include "views/query/query_editor_view.h"

#include <QAbstractItemView>
#include <QCompleter>
#include <QKeyEvent>
#include <QScrollBar>
#include <QStringListModel>

#include "views/canvas/glyphs.h"
#include "views/query/query_completion.h"

namespace tenon::views {

QueryEditor::QueryEditor(QWidget* parent)
    : QPlainTextEdit(parent), completer_(new QCompleter(this)), words_(new QStringListModel(this)) {
  setFont(face_font(Face::mono));
  setFrameShape(QFrame::NoFrame);
  setTabChangesFocus(true);
  setLineWrapMode(QPlainTextEdit::WidgetWidth);
  completer_->setModel(words_);
  completer_->setWidget(this);
  completer_->setCompletionMode(QCompleter::UnfilteredPopupCompletion);
  completer_->popup()->setObjectName("query.words");
  connect(completer_, QOverload<const QString&>::of(&QCompleter::activated), this, &QueryEditor::take);
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
  if (completer_->popup()->isVisible()) switch (e->key()) {
      case Qt::Key_Return:
      case Qt::Key_Enter:
      case Qt::Key_Escape:
      case Qt::Key_Tab:
      case Qt::Key_Backtab:
        if (e->modifiers() == Qt::NoModifier) return e->ignore();  // the list takes them
        completer_->popup()->hide();
        break;
      default:
        break;
    }
  const bool enter = e->key() == Qt::Key_Return || e->key() == Qt::Key_Enter;
  if (enter && e->modifiers().testFlag(Qt::ControlModifier)) {
    if (on_run) on_run();
    return;
  }
  if (e->key() == Qt::Key_Escape) return e->ignore();  // the view stops what it asked
  if (e->key() == Qt::Key_Space && e->modifiers() == Qt::ControlModifier) return offer(true);
  QPlainTextEdit::keyPressEvent(e);
  const QString typed = e->text();
  const bool word = !typed.isEmpty() && (typed[0].isLetterOrNumber() || typed[0] == '_' || typed[0] == '.');
  if (word || (e->key() == Qt::Key_Backspace && completer_->popup()->isVisible()))
    offer(false);
  else if (e->key() != Qt::Key_Shift && e->key() != Qt::Key_Control)
    completer_->popup()->hide();
}

void QueryEditor::focusOutEvent(QFocusEvent* e) {
  QPlainTextEdit::focusOutEvent(e);
  if (e->reason() != Qt::PopupFocusReason) completer_->popup()->hide();
}

bool QueryEditor::focusNextPrevChild(bool next) {
  return !completer_->popup()->isVisible() && QPlainTextEdit::focusNextPrevChild(next);
}

/// While one types, a single letter and a word that is whole ask for nothing.
void QueryEditor::offer(bool asked) {
  const QByteArray sql = text().toUtf8();
  const auto cursor = static_cast<size_t>(text().left(textCursor().position()).toUtf8().size());
  const Completion found =
      complete_query(kind_, std::string_view(sql.constData(), static_cast<size_t>(sql.size())), cursor);
  const bool behind_dot = found.begin == cursor;
  const bool wants = asked || behind_dot || (cursor - found.begin > 1 && !found.whole);
  if (found.words.empty() || !wants) return completer_->popup()->hide();
  QStringList words;
  for (const std::string& w : found.words) words << QString::fromStdString(w);
  words_->setStringList(words);
  QRect at = cursorRect();
  at.setWidth(completer_->popup()->sizeHintForColumn(0) + completer_->popup()->verticalScrollBar()->sizeHint().width() +
              16);
  completer_->complete(at);
  completer_->popup()->setCurrentIndex(completer_->completionModel()->index(0, 0));
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
