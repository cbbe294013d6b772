#pragma once
#include <functional>

#include "views/frame/text_editor.h"
#include "views/frame/theme.h"

namespace tenon::views {

class CodeColours;

/// Where a model is read and written as Python. Enter keeps the indentation, Tab and Shift+Tab move lines by four
/// blanks; where it is read-only, they do as elsewhere.
class CodeEditor : public TextEditor {
  Q_OBJECT
 public:
  explicit CodeEditor(QWidget* parent = nullptr);
  void set_theme(ThemeName theme);
  /// In place of what stands there, as one step that Ctrl+Z takes back; the cursor stays in its line.
  void replace_text(const QString& text);
  /// Marks lines, counted from 1: those of what is selected, and one with a fault (0: none).
  void mark(const QList<int>& selected, int bad);
  int line() const { return textCursor().blockNumber() + 1; }
  void show_line(int line);

 protected:
  void keyPressEvent(QKeyEvent* e) override;
  bool focusNextPrevChild(bool next) override { return isReadOnly() && QWidget::focusNextPrevChild(next); }

 private:
  void indent(bool more);
  void paint_marks();

  CodeColours* colours_;
  ThemeName theme_ = ThemeName::dark;
  QList<int> selected_;
  int bad_ = 0;
};

}  // namespace tenon::views
