// What is pasted into an editor: words, and what a program offers that has none, or has ended.
#include "views/frame/text_editor.h"

#include <gtest/gtest.h>

#include <QClipboard>
#include <QGuiApplication>
#include <QTest>

#include "tests/views/shell/window_fixture.h"

namespace tenon::views {
namespace {

class Pasting : public testing::WindowTest {
 protected:
  TextEditor* shown(const char* view, const char* name) {
    EXPECT_TRUE(window_->commands().run(QString("view.") + view));
    settle();
    auto* editor = part<TextEditor>(name);
    editor->setFocus();
    return editor;
  }
  static void offer(QMimeData* data, QClipboard::Mode mode) { QGuiApplication::clipboard()->setMimeData(data, mode); }
  static void middle_click(TextEditor* editor) {
    QTest::mouseClick(editor->viewport(), Qt::MiddleButton, {}, editor->cursorRect().center());
  }
};

TEST_F(Pasting, nothing_offered_changes_nothing_and_words_come_in) {
  open_spirals();
  for (const auto& [view, name] : {std::pair("code", "code.source"), std::pair("query", "query.sql")}) {
    TextEditor* editor = shown(view, name);
    until([&] { return !bench_->jobs.has("code"); });
    settle();
    editor->moveCursor(QTextCursor::Start);
    const QString before = editor->toPlainText();
    offer(new QMimeData, QClipboard::Clipboard);
    QTest::keyClick(editor, Qt::Key_V, Qt::ControlModifier);
    EXPECT_EQ(editor->toPlainText(), before) << name;
    if (QGuiApplication::clipboard()->supportsSelection()) {
      offer(new QMimeData, QClipboard::Selection);
      middle_click(editor);
      EXPECT_EQ(editor->toPlainText(), before) << name;
      QGuiApplication::clipboard()->setText("# by the middle button\n", QClipboard::Selection);
      middle_click(editor);
      EXPECT_TRUE(editor->toPlainText().contains("# by the middle button")) << name;
    }
    QGuiApplication::clipboard()->setText("# by a key\n");
    QTest::keyClick(editor, Qt::Key_V, Qt::ControlModifier);
    EXPECT_TRUE(editor->toPlainText().contains("# by a key")) << name;
  }
}

}  // namespace
}  // namespace tenon::views
