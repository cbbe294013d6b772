#pragma once
#include <QMimeData>
#include <QPlainTextEdit>

namespace tenon::views {

/// Words to be edited. What is pasted may come from a program that has ended meanwhile, or that offers nothing: Qt
/// 6.4's own editor then reads the first of no formats.
class TextEditor : public QPlainTextEdit {
  Q_OBJECT
 public:
  using QPlainTextEdit::QPlainTextEdit;

 protected:
  void insertFromMimeData(const QMimeData* source) override {
    const QString text = source ? source->text() : QString();
    if (isReadOnly() || text.isEmpty()) return;
    textCursor().insertText(text);
    ensureCursorVisible();
  }
};

}  // namespace tenon::views
