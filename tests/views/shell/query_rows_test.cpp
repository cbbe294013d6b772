// Rows of a query over a memory snapshot or a model file select what they are about, as they do of a trace.
#include <gtest/gtest.h>

#include <QLabel>
#include <QPlainTextEdit>
#include <QTest>

#include "engine/formats/model_file.h"
#include "projects/query/query_base.h"
#include "tests/views/model_files.h"
#include "tests/views/shell/drop.h"
#include "tests/views/shell/window_fixture.h"
#include "tracing/snapshot/snapshot.h"
#include "views/frame/table_list.h"

namespace tenon::views {
namespace {

class QueryRowsOf : public testing::WindowTest {
 protected:
  void open_to_ask(const QString& file) {
    make_window();
    testing::drop_files(window_.get(), {file});
    settle();
    ASSERT_EQ(bench_->documents().size(), 1u) << (problems_.empty() ? "" : problems_.back());
    ASSERT_TRUE(window_->commands().run("view.query"));
    settle();
  }
  const Document& document() { return bench_->documents().back(); }
  TableList* list() { return window_->findChild<TableList*>("query.table"); }
  /// Asks, and clicks the first row.
  Selection first_of(const QString& sql) {
    auto* editor = window_->findChild<QPlainTextEdit*>("query.sql");
    editor->setFocus();
    QTest::keyClick(editor, Qt::Key_A, Qt::ControlModifier);
    editor->insertPlainText(sql);
    QTest::keyClick(editor, Qt::Key_Return, Qt::ControlModifier);
    settle();
    if (list()->shown_rows() == 0) {
      ADD_FAILURE() << sql.toStdString() << ": " << window_->findChild<QLabel*>("query.said")->text().toStdString();
      return {};
    }
    const QModelIndex at = list()->model()->index(0, 0);
    list()->scrollTo(at);
    QTest::mouseClick(list()->viewport(), Qt::LeftButton, {}, list()->visualRect(at).center());
    settle();
    return bench_->bus.current();
  }
  int64_t number_of(const QString& sql) {
    projects::QueryBase base({.snapshot = document().snapshot, .model = document().model});
    return std::get<int64_t>(base.run(sql.toStdString()).rows.at(0).at(0));
  }
};

TEST_F(QueryRowsOf, a_snapshot_lead_to_events_allocations_blocks_segments_and_places) {
  open_to_ask(TENON_SOURCE_DIR "/tests/tracing/data/snapshots/training-2.15.pickle.gz");
  const snapshot::Snapshot& s = *document().snapshot;
  const Selection event = first_of("select action, id from events where id = 100");
  EXPECT_TRUE(event.same(Selection::event(document().id, 100)));
  // The allocation that an event made, by its own row and by its block.
  const Selection life =
      first_of("select id from allocations where died is null and born is not null order by size desc");
  ASSERT_EQ(life.kind, Selection::Kind::alloc);
  const snapshot::Element e = document().timelines[life.allocation_trace()]->element(life.allocation_element());
  EXPECT_GE(e.died, document().timelines[life.allocation_trace()]->events());
  const Selection block = first_of(QString("select id, size from blocks where address = %1").arg(e.address));
  EXPECT_TRUE(block.same(life)) << to_text(block) << " " << to_text(life);
  const Selection born =
      first_of(QString("select born from allocations where address = %1 and died is null").arg(e.address));
  EXPECT_EQ(born.kind, Selection::Kind::event);
  // A segment leads to the event that took it.
  const Selection taken = first_of("select id from segments where stack is not null");
  ASSERT_EQ(taken.kind, Selection::Kind::event) << to_text(taken);
  const int64_t address = number_of("select address from segments where stack is not null");
  EXPECT_EQ(static_cast<int64_t>(s.events.address[static_cast<size_t>(taken.id)]), address);
  // What is summed up by its line of code leads there.
  const Selection place =
      first_of("select count(*), site from events where site is not null group by site order by 1 desc");
  ASSERT_EQ(place.kind, Selection::Kind::place);
  EXPECT_EQ(place.name, list()->table().rows[0].cells[1].text);
  // Numbers that name nothing lead nowhere.
  first_of("select 3 as stack_number");
  EXPECT_TRUE(bench_->bus.current().same(place));
}

TEST_F(QueryRowsOf, a_model_file_lead_to_its_tensors_and_nodes) {
  const QString file = dir_.filePath("blocks.onnx");
  formats::save_onnx(file.toStdString(), testing::blocks_model(3));
  open_to_ask(file);
  const int id = document().id;
  EXPECT_EQ(list()->shown_rows(), 7) << "the first example is answered at once";
  const Selection tensor = first_of("select bytes, name from tensors where name like 'layers.1%weight'");
  EXPECT_TRUE(tensor.same(Selection::file_tensor(id, "layers.1.conv.weight"))) << to_text(tensor);
  const Selection by_number = first_of("select id from tensors order by id desc");
  EXPECT_TRUE(by_number.same(Selection::file_tensor(id, "head.weight"))) << to_text(by_number);
  const Selection node = first_of("select id, op from nodes where op = 'Relu'");
  EXPECT_TRUE(node.same(Selection::file_node(id, 1))) << to_text(node);
}

}  // namespace
}  // namespace tenon::views
