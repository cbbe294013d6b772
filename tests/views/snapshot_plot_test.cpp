// The memory view's picture of a snapshot, driven by intents and judged by the scenes it draws; no window.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/tracing/made_snapshot.h"
#include "tests/views/scenes.h"
#include "views/memory/memory_model.h"

namespace tenon::views {
namespace {

constexpr Size kCanvas{1000, 480};

/// Two places take turns, a third keeps what it takes; the peak is in the middle.
Document made_document() {
  snapshot::MadeSnapshot m;
  m.segment(uint64_t{1} << 40, 64 << 20, {});
  std::vector<uint64_t> forward;
  for (int step = 0; step < 30; ++step) {
    for (int i = 0; i < 10; ++i) forward.push_back(m.alloc("forward.py", (step == 15 ? 4 : 1) * 100000 + i));
    m.alloc("leak.py", 20000 + step);
    const uint64_t workspace = m.alloc("conv.py", 300000);
    m.free(workspace);
    for (const uint64_t a : forward) m.free(a);
    forward.clear();
  }
  Document d{.id = 3, .kind = Document::Kind::snapshot, .path = "made.json", .title = "made.json"};
  d.snapshot = m.done();
  d.timelines.push_back(std::make_shared<const snapshot::Timeline>(*d.snapshot, 0));
  return d;
}

struct ShownPlot {
  Document document = made_document();
  MemoryModel model;
  std::vector<Selection> chosen;
  explicit ShownPlot(SnapshotHistory::Asked asked = {.document = 3}) {
    model.on_select = [this](const Selection& s) {
      chosen.push_back(s);
      model.set_selection(s);
    };
    model.set_document(&document);
    model.set_history(read_history(document, asked));
  }
  SnapshotPlot& plot() { return *model.snapshot(); }
  const snapshot::Timeline& timeline() { return *document.timelines[0]; }
};

TEST(SnapshotPlot, begins_at_the_peak_and_says_what_is_alive) {
  ShownPlot s;
  EXPECT_EQ(s.plot().cursor(), s.timeline().peak());
  EXPECT_EQ(s.plot().bytes(), s.timeline().peak_bytes());
  const Table groups = s.plot().groups();
  ASSERT_EQ(groups.rows.size(), 3u);
  EXPECT_EQ(groups.rows.back().cells[0].text, "f (forward.py:1)") << "the largest stands lowest";
  double sum = 0;
  for (const auto& row : groups.rows) sum += row.cells[1].key;
  EXPECT_EQ(static_cast<int64_t>(sum), s.timeline().peak_bytes());
  const Table blocks = s.plot().blocks();
  EXPECT_EQ(blocks.rows.size(), s.timeline().live(s.timeline().peak()).size());
  for (size_t i = 1; i < blocks.rows.size(); ++i)
    EXPECT_GE(blocks.rows[i - 1].cells[1].key, blocks.rows[i].cells[1].key);
  const Scene scene = s.model.frame(kCanvas);
  EXPECT_TRUE(shows(scene, "peak "));
  EXPECT_TRUE(scene.overlaps().empty()) << scene.overlaps().front();
}

TEST(SnapshotPlot, a_click_moves_the_cursor_and_chooses_the_colour_under_it) {
  ShownPlot s;
  const Scene& scene = s.model.frame(kCanvas);
  const Point middle = center_of(scene, {SnapshotPlot::plot, 0});
  ASSERT_GT(middle.x, 0);
  const float low = 340;  // near the ground: what stays, or what is largest
  for (auto type : {PointerEvent::Type::press, PointerEvent::Type::release})
    s.model.pointer({type, Button::left, middle.x, low, {}});
  ASSERT_EQ(s.chosen.size(), 1u);
  EXPECT_EQ(s.chosen[0].kind, Selection::Kind::place);
  EXPECT_EQ(s.chosen[0].document, 3);
  EXPECT_NE(s.plot().cursor(), s.timeline().peak());
  EXPECT_EQ(s.plot().bytes(), s.timeline().bytes(s.plot().cursor()));
  // Through the places by the keys; P goes back to the peak.
  s.model.key({.key = "Up", .text = {}, .mods = {}});
  EXPECT_EQ(s.chosen.size(), 2u);
  s.model.key({.key = "P", .text = {}, .mods = {}});
  EXPECT_EQ(s.plot().cursor(), s.timeline().peak());
  // What happened at the cursor is the allocation that made the peak.
  s.model.key({.key = "Return", .text = {}, .mods = {}});
  ASSERT_EQ(s.chosen.back().kind, Selection::Kind::alloc);
  EXPECT_EQ(s.timeline().element(s.chosen.back().allocation_element()).born, s.timeline().peak());
}

TEST(SnapshotPlot, a_selection_of_another_view_moves_the_cursor_there) {
  ShownPlot s;
  s.model.set_selection(Selection::event(3, 7, "findings"));
  EXPECT_EQ(s.plot().cursor(), 7u);
  const uint32_t leak = [&] {
    for (uint32_t id = 0; id < s.timeline().elements(); ++id)
      if (s.document.snapshot->site(s.timeline().element(id).stack) == "f (leak.py:1)") return id;
    return snapshot::kNone;
  }();
  ASSERT_NE(leak, snapshot::kNone);
  s.model.set_selection(Selection::allocation(3, 0, leak, "findings"));
  EXPECT_EQ(s.plot().cursor(), s.timeline().element(leak).born);
  // Of another file, and of what is not there, nothing changes.
  const size_t at = s.plot().cursor();
  for (const Selection& x :
       {Selection::event(9, 3, "t"), Selection::event(3, 1 << 30, "t"), Selection::event(3, -1, "t"),
        Selection::allocation(3, 5, 1, "t"), Selection::allocation(3, 0, 1u << 31, "t"), Selection::alloc(-1, "t"),
        Selection::place(3, "nobody", "t")}) {
    s.model.set_selection(x);
    EXPECT_EQ(s.plot().cursor(), at) << to_text(x);
    s.model.frame(kCanvas);
  }
}

TEST(SnapshotPlot, is_drawn_on_a_canvas_of_any_size_at_any_zoom_over_events_and_time) {
  for (const bool over_time : {false, true})
    for (const auto by : {snapshot::UsageBy::place, snapshot::UsageBy::size, snapshot::UsageBy::stream}) {
      ShownPlot s({.document = 3, .by = by});
      s.plot().set_over_time(over_time);
      EXPECT_EQ(s.plot().over_time(), over_time);
      for (float w : {0.f, 1.f, 90.f, 300.f, 1000.f})
        for (float h : {0.f, 60.f, 150.f, 480.f}) s.model.frame({w, h});
      for (int i = 0; i < 12; ++i) {
        s.model.frame(kCanvas);
        s.model.key({.key = "W", .text = {}, .mods = {}});
        s.model.key({.key = i % 2 ? "Right" : "D", .text = {}, .mods = {}});
      }
      EXPECT_TRUE(s.model.frame(kCanvas).overlaps().empty());
    }
}

/// The first `events` of a recording of allocations that stay, with a region of the program over a part of it.
Document growing_document(int id, size_t events) {
  nlohmann::json trace = nlohmann::json::array();
  for (size_t i = 0; i < events; ++i)
    trace.push_back({{"action", "alloc"},
                     {"addr", 4096 * (i + 1)},
                     {"size", 1000},
                     {"stream", 0},
                     {"time_us", 1'700'000'000'000'000 + static_cast<int64_t>(i) * 10},
                     {"frames", {{{"filename", "model.py"}, {"line", 1}, {"name", "f"}}}}});
  nlohmann::json marks = nlohmann::json::array();
  for (const auto& [stage, at] : {std::pair{"START", 100}, {"END", 300}})
    marks.push_back(
        {{"stage", stage}, {"name", "forward"}, {"device", 0}, {"time_us", 1'700'000'000'000'000 + at * 10}});
  Document d{.id = id, .kind = Document::Kind::snapshot, .path = "the snapshot", .title = "s"};
  d.snapshot = snapshot::parse_snapshot(nlohmann::json{
      {"segments", nlohmann::json::array()},
      {"device_traces", {trace}},
      {"external_annotations", marks}}.dump());
  d.timelines.push_back(std::make_shared<const snapshot::Timeline>(*d.snapshot, 0));
  return d;
}

TEST(SnapshotPlot, what_was_seen_of_a_beginning_is_seen_of_the_whole) {
  const Document begun = growing_document(Document::kBeginning, 500), whole = growing_document(3, 2000);
  MemoryModel model;
  model.set_beginning(&begun);
  EXPECT_TRUE(model.shows_beginning());
  model.set_history(read_history(begun, {.document = Document::kBeginning}));
  model.frame(kCanvas);
  EXPECT_EQ(model.snapshot()->cursor(), 499u);
  model.snapshot()->axis().show(150, 350);
  model.snapshot()->set_cursor(200);
  model.set_document(&whole);
  EXPECT_FALSE(model.shows_beginning());
  ASSERT_NE(model.snapshot()->history(), nullptr) << "the picture stays until there is one of the whole";
  EXPECT_TRUE(shows(model.frame(kCanvas), "once the whole recording is read"));
  model.set_history(read_history(whole, {.document = 3}));
  EXPECT_EQ(model.snapshot()->events(), 2000u);
  EXPECT_EQ(model.snapshot()->cursor(), 200u);
  EXPECT_DOUBLE_EQ(model.snapshot()->axis().lo, 150);
  EXPECT_DOUBLE_EQ(model.snapshot()->axis().hi, 350);
  // Of another file nothing of it stays.
  Document other = growing_document(4, 1000);
  other.path = "another";
  model.set_document(&other);
  EXPECT_EQ(model.snapshot()->history(), nullptr);
}

TEST(SnapshotPlot, all_of_a_beginning_becomes_all_of_the_whole) {
  const Document begun = growing_document(Document::kBeginning, 500), whole = growing_document(3, 2000);
  MemoryModel model;
  model.set_beginning(&begun);
  model.set_history(read_history(begun, {.document = Document::kBeginning}));
  model.frame(kCanvas);
  model.set_document(&whole);
  model.set_history(read_history(whole, {.document = 3}));
  EXPECT_TRUE(model.snapshot()->axis().fitted());
  EXPECT_EQ(model.snapshot()->cursor(), 1999u) << "where most is alive";
}

TEST(SnapshotPlot, how_a_file_was_left_is_how_it_is_seen_again) {
  const Document d = growing_document(3, 2000);
  Document other = growing_document(4, 1000);
  other.path = "another";
  MemoryModel model;
  model.set_document(&d);
  EXPECT_FALSE(model.snapshots().sight(3));
  model.set_history(read_history(d, {.document = 3}));
  model.frame(kCanvas);
  EXPECT_TRUE(model.snapshots().sight(3)->usual);
  model.snapshot()->set_over_time(true);
  model.snapshot()->axis().show(1e6, 3e6);
  model.snapshot()->set_cursor(150);
  EXPECT_FALSE(model.snapshots().sight(3)->usual);
  model.set_document(&other);
  model.set_history(read_history(other, {.document = 4}));
  EXPECT_FALSE(model.snapshot()->over_time()) << "that was the other's";
  EXPECT_TRUE(model.snapshot()->axis().fitted());
  EXPECT_EQ(model.snapshots().sight(3)->cursor, 150u);
  model.set_document(&d);
  EXPECT_EQ(model.snapshots().begins_at(3, 0, *d.timelines[0]), 150u);
  model.set_history(read_history(d, {.document = 3}));
  EXPECT_TRUE(model.snapshot()->over_time());
  EXPECT_DOUBLE_EQ(model.snapshot()->axis().lo, 1e6);
  EXPECT_DOUBLE_EQ(model.snapshot()->axis().hi, 3e6);
  EXPECT_EQ(model.snapshot()->cursor(), 150u);
  // What was left of a longer recording leads nowhere.
  model.set_document(&other);
  model.snapshots().set_sight(4, {.cursor = 5000});
  model.set_history(read_history(other, {.document = 4}));
  EXPECT_EQ(model.snapshot()->cursor(), other.timelines[0]->peak());
}

TEST(SnapshotPlot, a_bookmark_is_a_flag_that_leads_to_its_moment) {
  const Document d = growing_document(3, 2000);
  MemoryModel model;
  Selection chosen;
  model.on_select = [&](const Selection& s) {
    chosen = s;
    model.set_selection(s);
  };
  model.set_document(&d);
  model.set_history(read_history(d, {.document = 3}));
  model.snapshot()->set_cursor(700);
  Bookmark b = model.snapshots().bookmark_here();
  EXPECT_EQ(b.from, 700);
  b.note = "look here";
  model.set_bookmarks({b, {9000, 9000, "of a longer one"}});
  const Scene& scene = model.frame(kCanvas);
  EXPECT_TRUE(scene.overlaps().empty());
  const Point at = center_of(scene, {SnapshotPlot::bookmark, 0});
  ASSERT_GT(at.x, 0);
  EXPECT_NE(scene.tip_at(at.x, at.y).find("look here"), std::string::npos);
  EXPECT_LT(center_of(scene, {SnapshotPlot::bookmark, 1}).x, 0) << "there is no such event";
  model.snapshot()->set_cursor(20);
  model.pointer({PointerEvent::Type::press, Button::left, at.x, at.y, {}});
  EXPECT_EQ(chosen.kind, Selection::Kind::event);
  EXPECT_EQ(model.snapshot()->cursor(), 700u);
}

TEST(SnapshotPlot, regions_stand_over_the_picture_and_lead_to_their_peak) {
  const Document d = growing_document(3, 1000);
  MemoryModel model;
  model.set_document(&d);
  model.set_history(read_history(d, {.document = 3}));
  const Scene& scene = model.frame(kCanvas);
  EXPECT_TRUE(shows(scene, "forward"));
  EXPECT_TRUE(scene.overlaps().empty()) << scene.overlaps().front();
  const Point at = center_of(scene, {SnapshotPlot::region, 0});
  ASSERT_GT(at.x, 0);
  model.pointer({PointerEvent::Type::press, Button::left, at.x, at.y, {}});
  EXPECT_EQ(model.snapshot()->cursor(), 299u) << "the highest moment within it";
  EXPECT_NE(model.summary().find("within forward"), std::string::npos) << model.summary();
  model.pointer({PointerEvent::Type::double_click, Button::left, at.x, at.y, {}});
  EXPECT_NEAR(model.snapshot()->axis().span(), 199 * 1.06, 1);
  for (float h : {0.f, 60.f, 110.f, 150.f, 480.f}) EXPECT_TRUE(model.frame({400, h}).overlaps().empty()) << h;
}

TEST(SnapshotPlot, the_address_map_tells_gaps_from_blocks) {
  snapshot::MadeSnapshot m;
  const uint64_t kept = m.alloc("weights.py", 1 << 20);
  m.segment(kept, 4 << 20, {{1 << 20, true, "weights.py"}, {3 << 20, false, ""}});
  Document d{.id = 1, .kind = Document::Kind::snapshot, .path = "m", .title = "m"};
  d.snapshot = m.done();
  d.timelines.push_back(std::make_shared<const snapshot::Timeline>(*d.snapshot, 0));
  MemoryModel model;
  model.set_document(&d);
  model.set_history(read_history(d, {.document = 1}));
  EXPECT_TRUE(shows(model.frame(kCanvas), "is being worked out"));
  model.set_map(std::make_shared<const snapshot::AllocatorState>(snapshot::state_after(*d.snapshot, 0, 1)));
  const Scene& scene = model.frame(kCanvas);
  EXPECT_TRUE(shows(scene, "4.00 MiB reserved in 1 segment, 3.00 MiB of it free, the largest piece 3.00 MiB"));
  const Point at = center_of(scene, {SnapshotPlot::block, 0});
  ASSERT_GT(at.x, 0);
  EXPECT_NE(scene.tip_at(at.x, at.y).find("weights.py"), std::string::npos);
}

}  // namespace
}  // namespace tenon::views
