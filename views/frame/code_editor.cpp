#include "views/frame/code_editor.h"

#include <QKeyEvent>
#include <QRegularExpression>
#include <QSyntaxHighlighter>
#include <QTextBlock>

#include "views/canvas/glyphs.h"

namespace tenon::views {

namespace {
constexpr int kIndent = 4;

QString leading(const QString& line) {
  qsizetype n = 0;
  while (n < line.size() && line[n] == ' ') ++n;
  return line.left(n);
}
}  // namespace

/// Words of Python, numbers, strings and comments.
class CodeColours : public QSyntaxHighlighter {
 public:
  using QSyntaxHighlighter::QSyntaxHighlighter;
  void set_theme(ThemeName theme) {
    theme_ = theme;
    rehighlight();
  }

 protected:
  void highlightBlock(const QString& line) override {
    static const QRegularExpression words(
        "\\b(?:class|def|return|for|in|if|elif|else|import|from|as|pass|not|and|or|is|None|True|False)\\b");
    static const QRegularExpression numbers("\\b\\d[\\d_]*(?:\\.\\d*)?(?:e[+-]?\\d+)?\\b");
    static const QRegularExpression own("\\bself\\b|\\bsuper\\b");
    static const QRegularExpression modules("\\bnn\\.\\w+|\\btorch(?:\\.\\w+)*|\\bF\\.\\w+");
    paint(words, line, Ink::accent, true);
    paint(modules, line, Ink::accent, false);
    paint(own, line, Ink::secondary, false);
    paint(numbers, line, Ink::warning_text, false);
    // Strings and comments, over whatever stands in them.
    int from = 0;
    setCurrentBlockState(0);
    if (previousBlockState() == 1) {
      const qsizetype end = line.indexOf("\"\"\"");
      setFormat(0, static_cast<int>(end < 0 ? line.size() : end + 3), format(Ink::good_text));
      if (end < 0) return setCurrentBlockState(1);
      from = static_cast<int>(end) + 3;
    }
    for (int i = from; i < line.size(); ++i) {
      if (line[i] == '#') return setFormat(i, static_cast<int>(line.size()) - i, format(Ink::secondary));
      if (line[i] != '"' && line[i] != '\'') continue;
      const bool three = line.mid(i, 3) == "\"\"\"";
      const QString quote = three ? QString("\"\"\"") : QString(line[i]);
      qsizetype end = line.indexOf(quote, i + quote.size());
      setFormat(i, static_cast<int>((end < 0 ? line.size() : end + quote.size()) - i), format(Ink::good_text));
      if (end < 0) {
        if (three) setCurrentBlockState(1);
        return;
      }
      i = static_cast<int>(end + quote.size()) - 1;
    }
  }

 private:
  QTextCharFormat format(Ink ink, bool strong = false) const {
    QTextCharFormat f;
    f.setForeground(qcolor(ink, theme_));
    if (strong) f.setFontWeight(QFont::DemiBold);
    return f;
  }
  void paint(const QRegularExpression& what, const QString& line, Ink ink, bool strong) {
    for (auto it = what.globalMatch(line); it.hasNext();) {
      const auto m = it.next();
      setFormat(static_cast<int>(m.capturedStart()), static_cast<int>(m.capturedLength()), format(ink, strong));
    }
  }
  ThemeName theme_ = ThemeName::dark;
};

CodeEditor::CodeEditor(QWidget* parent) : TextEditor(parent), colours_(new CodeColours(document())) {
  setFont(face_font(Face::mono));
  setFrameShape(QFrame::NoFrame);
  setLineWrapMode(QPlainTextEdit::NoWrap);
}

void CodeEditor::set_theme(ThemeName theme) {
  theme_ = theme;
  setFont(face_font(Face::mono));
  colours_->set_theme(theme);
  paint_marks();
}

void CodeEditor::replace_text(const QString& text) {
  const int at = textCursor().blockNumber(), column = textCursor().positionInBlock();
  QTextCursor all(document());
  all.select(QTextCursor::Document);
  all.insertText(text);
  const QTextBlock block = document()->findBlockByNumber(std::min(at, blockCount() - 1));
  QTextCursor cursor(block);
  cursor.setPosition(block.position() + std::min(column, std::max(0, block.length() - 1)));
  setTextCursor(cursor);
}

void CodeEditor::mark(const QList<int>& selected, int bad) {
  if (selected == selected_ && bad == bad_) return;
  selected_ = selected;
  bad_ = bad;
  paint_marks();
}

void CodeEditor::paint_marks() {
  QList<QTextEdit::ExtraSelection> marks;
  auto add = [&](int line, Ink ink, double alpha, bool underline) {
    const QTextBlock block = document()->findBlockByNumber(line - 1);
    if (line < 1 || !block.isValid()) return;
    QTextEdit::ExtraSelection s;
    QColor colour = qcolor(ink, theme_);
    if (underline) {
      s.format.setUnderlineStyle(QTextCharFormat::WaveUnderline);
      s.format.setUnderlineColor(colour);
    }
    colour.setAlphaF(static_cast<float>(alpha));
    s.format.setBackground(colour);
    s.format.setProperty(QTextFormat::FullWidthSelection, true);
    s.cursor = QTextCursor(block);
    if (underline) s.cursor.movePosition(QTextCursor::EndOfBlock, QTextCursor::KeepAnchor);
    marks << s;
  };
  for (int line : selected_) add(line, Ink::accent, 0.22, false);
  add(bad_, Ink::bad, 0.22, true);
  setExtraSelections(marks);
}

void CodeEditor::show_line(int line) {
  const QTextBlock block = document()->findBlockByNumber(line - 1);
  if (!block.isValid()) return;
  setTextCursor(QTextCursor(block));
  ensureCursorVisible();
}

void CodeEditor::indent(bool more) {
  QTextCursor cursor = textCursor();
  if (!cursor.hasSelection() && more) {
    const int column = cursor.positionInBlock();
    insertPlainText(QString(kIndent - column % kIndent, ' '));
    return;
  }
  const int last = document()->findBlock(cursor.selectionEnd()).blockNumber();
  int at = document()->findBlock(cursor.selectionStart()).blockNumber();
  cursor.beginEditBlock();
  for (; at <= last; ++at) {
    QTextCursor line(document()->findBlockByNumber(at));
    if (more) {
      if (!line.block().text().isEmpty()) line.insertText(QString(kIndent, ' '));
      continue;
    }
    const qsizetype n = std::min<qsizetype>(kIndent, leading(line.block().text()).size());
    for (qsizetype i = 0; i < n; ++i) line.deleteChar();
  }
  cursor.endEditBlock();
}

void CodeEditor::keyPressEvent(QKeyEvent* e) {
  if (isReadOnly()) return QPlainTextEdit::keyPressEvent(e);
  const bool plain = e->modifiers() == Qt::NoModifier || e->modifiers() == Qt::KeypadModifier;
  if (plain && (e->key() == Qt::Key_Return || e->key() == Qt::Key_Enter)) {
    const QString before = textCursor().block().text().left(textCursor().positionInBlock());
    QString blanks = leading(before);
    if (before.trimmed().endsWith(':')) blanks += QString(kIndent, ' ');
    insertPlainText("\n" + blanks);
    ensureCursorVisible();
    return;
  }
  if (e->key() == Qt::Key_Tab && plain) return indent(true);
  if (e->key() == Qt::Key_Backtab) return indent(false);
  if (e->key() == Qt::Key_Escape) {  // Tab types here: this is the way on
    e->accept();
    QWidget::focusNextPrevChild(true);
    return;
  }
  QPlainTextEdit::keyPressEvent(e);
}

}  // namespace tenon::views
