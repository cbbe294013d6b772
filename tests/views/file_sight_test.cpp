// What rows of a query lead to in a memory snapshot and in a model file.
#include "views/query/file_sight.h"

#include <gtest/gtest.h>

#include "tests/views/model_files.h"
#include "tracing/snapshot/snapshot.h"
#include "views/query/query_page.h"

namespace tenon::views {
namespace {

class Sighted : public ::testing::Test {
 protected:
  void read(const Document& d) {
    document_ = d;
    document_.id = 5;
    base_ = std::make_unique<projects::QueryBase>(projects::QuerySubject{.snapshot = d.snapshot, .model = d.model});
  }
  /// What the first row of an answer selects.
  Selection first(const std::string& sql) {
    const projects::QueryResult result = base_->run(sql);
    const Table t = make_table(result, {.document = 5, .file = &document_});
    EXPECT_FALSE(t.rows.empty()) << sql;
    return t.rows.empty() ? Selection() : t.rows[0].selection;
  }
  Document document_;
  std::unique_ptr<projects::QueryBase> base_;
};

TEST_F(Sighted, a_snapshots_rows_lead_to_events_allocations_blocks_segments_and_places) {
  read(read_document(TENON_SOURCE_DIR "/tests/tracing/data/snapshots/training-2.15.pickle.gz",
                     Document::Kind::snapshot));
  const snapshot::Snapshot& s = *document_.snapshot;
  EXPECT_TRUE(first("SELECT action, id FROM events WHERE id = 100").same(Selection::event(5, 100)));
  const Selection life =
      first("SELECT size, id FROM allocations WHERE died IS NULL AND born IS NOT NULL ORDER BY size DESC");
  ASSERT_EQ(life.kind, Selection::Kind::alloc);
  const snapshot::Timeline& line = *document_.timelines[life.allocation_trace()];
  const snapshot::Element e = line.element(life.allocation_element());
  EXPECT_GE(e.died, line.events());
  const std::string there = " WHERE address = " + std::to_string(e.address);
  EXPECT_TRUE(first("SELECT id FROM blocks" + there).same(life)) << "the block that it lives in";
  const Selection born = first("SELECT born FROM allocations" + there + " AND died IS NULL");
  EXPECT_EQ(s.events.address[static_cast<size_t>(born.id)], e.address);
  // Every segment whose taking was recorded leads to that event; a free block leads where its segment does.
  const projects::QueryResult segments = base_->run("SELECT id, address FROM segments");
  const Table rows = make_table(segments, {.document = 5, .file = &document_});
  int taken = 0;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const Selection& to = rows.rows[i].selection;
    EXPECT_TRUE(to) << i;
    if (to.kind != Selection::Kind::event) continue;
    ++taken;
    EXPECT_EQ(static_cast<int64_t>(s.events.address[static_cast<size_t>(to.id)]),
              std::get<int64_t>(segments.rows[i][1]));
  }
  EXPECT_GT(taken, 0);
  EXPECT_TRUE(first("SELECT b.id AS block, b.segment FROM blocks b WHERE state = 'inactive'")
                  .same(first("SELECT segment FROM blocks WHERE state = 'inactive'")));
  const Selection place =
      first("SELECT count(*), site FROM events WHERE site IS NOT NULL GROUP BY site ORDER BY 1 DESC");
  EXPECT_EQ(place.kind, Selection::Kind::place);
  EXPECT_EQ(place.document, 5);
  // What names nothing leads nowhere.
  EXPECT_FALSE(first("SELECT 3 AS three, 'nowhere.py:1' AS site FROM events"));
  EXPECT_FALSE(first("SELECT 1000000000 AS event"));
  EXPECT_FALSE(first("SELECT count(*) FROM events"));
}

TEST_F(Sighted, a_model_files_rows_lead_to_its_tensors_and_nodes) {
  read({.kind = Document::Kind::model, .model = testing::blocks_file(3)});
  EXPECT_TRUE(first("SELECT bytes, name FROM tensors WHERE name LIKE 'layers.1%weight'")
                  .same(Selection::file_tensor(5, "layers.1.conv.weight")));
  EXPECT_TRUE(first("SELECT id FROM tensors ORDER BY id DESC").same(Selection::file_tensor(5, "head.weight")));
  EXPECT_TRUE(first("SELECT op, id FROM nodes WHERE op = 'Relu'").same(Selection::file_node(5, 1)));
  EXPECT_TRUE(first("SELECT position, node FROM operands WHERE node = 2").same(Selection::file_node(5, 2)));
  EXPECT_TRUE(first("SELECT tensor FROM operands WHERE tensor IS NOT NULL AND node = 0")
                  .same(Selection::file_tensor(5, "layers.0.conv.weight")));
  EXPECT_FALSE(first("SELECT sum(bytes) FROM tensors"));
}

}  // namespace
}  // namespace tenon::views
