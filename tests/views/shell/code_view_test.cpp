// The model as source beside its graph: an edit of either is one of the other, with real keys and clicks.
#include <gtest/gtest.h>

#include <QClipboard>
#include <QFile>
#include <QGuiApplication>
#include <QLabel>
#include <QTest>
#include <QTextBlock>
#include <QToolButton>

#include "engine/formats/python/reader.h"
#include "engine/formats/python/writer.h"
#include "projects/project.h"
#include "tests/views/shell/window_fixture.h"
#include "views/builder/builder_model.h"
#include "views/frame/code_editor.h"

namespace tenon::views {
namespace {

class CodeViewTest : public testing::WindowTest {
 protected:
  CodeEditor* editor() { return window_->findChild<CodeEditor*>("code.source"); }
  BuilderModel& builder() { return bench_->model<BuilderModel>(); }
  QString said() { return window_->findChild<QLabel*>("code.said")->accessibleName(); }
  QString text() { return editor()->toPlainText(); }
  void show_code() {
    ASSERT_TRUE(window_->commands().run("view.code"));
    settle();
    until([&] { return text().contains("class "); });
  }
  /// Chooses `was` as a person would by a search, and types over it.
  void type_over(const QString& was, const QString& now) {
    editor()->moveCursor(QTextCursor::Start);
    ASSERT_TRUE(editor()->find(was)) << was.toStdString() << " in\n" << text().toStdString();
    editor()->setFocus();
    QTest::keyClicks(editor(), now);
  }
  int64_t out_features(const char* layer) {
    const LayerSpec* l = builder().spec().find(layer);
    const AttrValue* v = l ? l->find("out_features") : nullptr;
    return v ? std::get<int64_t>(*v) : -1;
  }
};

TEST_F(CodeViewTest, what_is_typed_is_an_edit_of_the_graph_and_the_other_way_round) {
  open_spirals();
  show_code();
  EXPECT_EQ(text().toStdString(), python::write_model(builder().spec()));
  EXPECT_EQ(said().toStdString(), "The graph and the source say the same");
  const ModelSpec before = builder().spec();
  std::string first;
  for (const LayerSpec& l : before.layers)
    if (l.type == "Linear" && first.empty()) first = l.name;
  const int64_t width = out_features(first.c_str());
  ASSERT_GT(width, 0);

  // A wider layer, and the next one that reads it.
  type_over(QString("nn.Linear(2, %1)").arg(width), "nn.Linear(2, 24)");
  until([&] { return out_features(first.c_str()) == 24; });
  EXPECT_TRUE(said().contains("in_features")) << said().toStdString();
  type_over(QString("nn.Linear(%1, ").arg(width), "nn.Linear(24, ");
  until([&] { return builder().errors().empty(); });
  EXPECT_EQ(said().toStdString(), "The graph and the source say the same");
  EXPECT_EQ(builder().undo_text(), "Edit the source");

  // The graph's own undo writes the source anew.
  builder().undo();
  builder().undo();
  settle();
  until([&] { return text().toStdString() == python::write_model(before); });
  ASSERT_TRUE(builder().set_attr(first, "out_features", int64_t{40}));
  settle();
  until([&] { return text().contains("nn.Linear(2, 40)"); });
}

TEST_F(CodeViewTest, a_line_that_is_not_read_is_said_and_changes_nothing) {
  open_spirals();
  show_code();
  const ModelSpec before = builder().spec();
  type_over("nn.Linear(", "nn.Liner(");
  until([&] { return said().startsWith("line "); });
  EXPECT_TRUE(said().contains("there is no layer nn.Liner (did you mean Linear")) << said().toStdString();
  EXPECT_EQ(builder().spec(), before);
  bool marked = false;
  for (const auto& s : editor()->extraSelections()) marked |= s.cursor.block().text().contains("nn.Liner(");
  EXPECT_TRUE(marked);
  // An edit of the graph does not throw away what was typed.
  ASSERT_TRUE(builder().set_comment(before.layers[1].name, "a word"));
  settle();
  EXPECT_TRUE(text().contains("nn.Liner("));
  press("code.again");
  settle();
  EXPECT_FALSE(text().contains("nn.Liner("));
  EXPECT_TRUE(text().contains("# a word"));
}

TEST_F(CodeViewTest, the_cursor_and_the_selection_are_one) {
  open_spirals();
  show_code();
  std::string last;
  for (const LayerSpec& l : builder().spec().layers)
    if (l.type == "Linear") last = l.name;
  bench_->select(Selection::module(last));
  settle();
  ASSERT_FALSE(editor()->extraSelections().isEmpty());
  EXPECT_TRUE(editor()->extraSelections()[0].cursor.block().text().contains("nn.Linear"));
  // The first line that makes a layer.
  int line = 0;
  const QStringList lines = text().split('\n');
  while (line < lines.size() && !lines[line].contains("nn.Linear")) ++line;
  editor()->setFocus();
  QTextCursor to(editor()->document()->findBlockByNumber(line));
  click(editor()->viewport(), editor()->cursorRect(to).center() + QPoint(60, 0));
  settle();
  EXPECT_EQ(bench_->bus.current().kind, Selection::Kind::module);
  EXPECT_EQ(builder().spec().find(bench_->bus.current().name)->type, "Linear");
  EXPECT_NE(bench_->bus.current().name, last);
}

TEST_F(CodeViewTest, the_source_is_copied_saved_and_read_from_a_file) {
  open_spirals();
  show_code();
  ASSERT_TRUE(window_->commands().run("code.copy_model"));
  EXPECT_EQ(QGuiApplication::clipboard()->text(), text());
  const QString path = file_ + ".py";
  QString other = text();
  other.replace("nn.Tanh()", "nn.ReLU()");
  if (other == text()) other.replace("nn.ReLU()", "nn.GELU()");
  ASSERT_NE(other, text());
  QFile file(path);
  ASSERT_TRUE(file.open(QIODevice::WriteOnly));
  file.write(other.toUtf8());
  file.close();
  answer(path);
  press("code.open");
  settle();
  EXPECT_EQ(text(), other);
  EXPECT_EQ(python::difference(builder().spec(), python::read_model(other.toStdString()).model), "");
}

TEST_F(CodeViewTest, enter_and_tab_indent_and_escape_leaves) {
  open_spirals();
  show_code();
  editor()->setFocus();
  type_over("def forward(self, x):", "def forward(self, x):");
  QTest::keyClick(editor(), Qt::Key_Return);
  EXPECT_EQ(editor()->textCursor().positionInBlock(), 8);
  QTest::keyClick(editor(), Qt::Key_Tab);
  EXPECT_EQ(editor()->textCursor().positionInBlock(), 12);
  QTest::keyClick(editor(), Qt::Key_Backtab);
  EXPECT_EQ(editor()->textCursor().positionInBlock(), 8);
  QTest::keyClick(editor(), Qt::Key_Escape);
  EXPECT_FALSE(editor()->hasFocus());
}

}  // namespace
}  // namespace tenon::views
