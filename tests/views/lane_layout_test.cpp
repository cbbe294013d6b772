#include "views/timeline/lane_layout.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/tracing/made_training.h"
#include "tests/views/scenes.h"
#include "tracing/analyses/trace_story.h"
#include "tracing/trace/trace_reader.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

Document trained_document() {
  Document d{1, Document::Kind::trace, "t.json", "t.json"};
  d.trace = traces::parse_trace(tracing::train({.steps = 3, .op = 20000, .kernel = 9000, .stacks = true}));
  d.curves = std::make_shared<const std::vector<traces::CounterCurve>>(
      std::vector{traces::CounterCurve("power", false, {d.trace->begin(), d.trace->begin() + 1000000}, {1, 3})});
  return d;
}

TEST(LaneLayout, FoldsAThreadToItsOutermostCallsAndAProcessToItsHeading) {
  const Document d = trained_document();
  LaneLayout layout;
  layout.set(d.trace.get(), d.curves.get(), false);
  size_t headings = 0, rows = 0, counters = 0;
  for (const auto& b : layout.bands()) {
    headings += b.kind == LaneLayout::Band::Kind::heading;
    rows += b.kind == LaneLayout::Band::Kind::row;
    counters += b.kind == LaneLayout::Band::Kind::counter;
  }
  EXPECT_EQ(headings, 3u) << "two processes, and the counters";
  EXPECT_EQ(rows, layout.rows());
  EXPECT_EQ(counters, 1u);
  const float whole = layout.height(20);
  size_t deep = 0;
  while (layout.bands()[deep].depths < 3) ++deep;
  const auto& band = layout.bands()[deep];
  const uint32_t inner = band.first + 2;
  layout.toggle(deep);
  EXPECT_FLOAT_EQ(whole - layout.height(20), 20.f * static_cast<float>(band.depths - 1));
  EXPECT_EQ(layout.band_of(inner), static_cast<int>(deep)) << "a folded thread still shows where it is";
  layout.toggle(static_cast<size_t>(band.under));
  EXPECT_EQ(layout.band_of(inner), -1) << "its process is folded";
  const auto left = layout.state();
  layout.reveal(inner);
  EXPECT_FLOAT_EQ(layout.height(20), whole);
  layout.restore(left);
  EXPECT_EQ(layout.band_of(inner), -1);
  layout.fold_all(false);
  layout.fold_all(true);
  EXPECT_FALSE(layout.any_unfolded());
  // What is placed lies below each other, and every lane once.
  layout.fold_all(false);
  float y = 0;
  for (const auto& p : layout.place(0, 20)) {
    EXPECT_GE(p.y, y);
    y = p.y + p.h;
  }
}

TEST(LaneLayout, APinnedRowStandsAboveTheRestAndIsThereWhileItsProcessIsFolded) {
  const Document d = trained_document();
  LaneLayout layout;
  layout.set(d.trace.get(), d.curves.get(), false);
  size_t row = 0, counter = 0;
  for (size_t b = 0; b < layout.bands().size(); ++b) {
    if (layout.bands()[b].kind == LaneLayout::Band::Kind::row) row = b;  // the last
    if (layout.bands()[b].kind == LaneLayout::Band::Kind::counter) counter = b;
  }
  const size_t all = layout.place(0, 20).size();
  const float height = layout.height(20);
  layout.toggle_pin(counter);
  layout.toggle_pin(row);
  layout.toggle_pin(static_cast<size_t>(layout.bands()[row].under));  // a heading is none
  const auto pinned = layout.place_pinned(5, 20, 1000);
  ASSERT_EQ(pinned.size(), 2u) << "in the order of the rows";
  EXPECT_EQ(pinned[0].band, std::min(row, counter));
  EXPECT_FLOAT_EQ(pinned[0].y, 5);
  EXPECT_GE(pinned[1].y, pinned[0].y + pinned[0].h);
  EXPECT_EQ(layout.place(0, 20, 2).size(), all - 2) << "nothing is there twice";
  EXPECT_EQ(layout.place(0, 20).size(), all);
  EXPECT_FLOAT_EQ(layout.height(20), height);
  EXPECT_LT(layout.height(20, 2), height);
  // Where there is room for one of them, the other leads what scrolls.
  ASSERT_EQ(layout.place_pinned(0, 20, pinned[0].h).size(), 1u);
  EXPECT_EQ(layout.place(0, 20, 1).front().band, pinned[1].band);
  layout.toggle(static_cast<size_t>(layout.bands()[row].under));
  EXPECT_EQ(layout.band_of(layout.bands()[row].first), static_cast<int>(row));
  const auto kept = layout.pins();
  layout.unpin_all();
  EXPECT_FALSE(layout.any_pinned());
  EXPECT_EQ(layout.band_of(layout.bands()[row].first), -1);
  layout.restore_pins(kept);
  EXPECT_EQ(layout.pins(), kept);
}

TEST(LaneLayout, EachRankIsAGroupThatFolds) {
  const Document d = trained_document();
  LaneLayout layout;
  layout.set(d.trace.get(), nullptr, false, {{"rank 0", "a.json", 0}, {"rank 1", "b.json", 2}});
  std::vector<size_t> headings;
  for (size_t b = 0; b < layout.bands().size(); ++b)
    if (layout.bands()[b].kind == LaneLayout::Band::Kind::heading) headings.push_back(b);
  ASSERT_EQ(headings.size(), 2u);
  EXPECT_EQ(layout.bands()[headings[0]].title, "rank 0");
  EXPECT_EQ(layout.bands()[headings[1]].title, "rank 1");
  for (const auto& b : layout.bands())
    if (b.kind == LaneLayout::Band::Kind::row) {
      EXPECT_EQ(b.under, static_cast<int>(headings[b.of >= 2]));
    }
}

TEST(LaneLayout, TheLanesOfAStepHaveNoHeadings) {
  const Document d = trained_document();
  LaneLayout layout;
  layout.set(d.trace.get(), nullptr, true);
  for (const auto& b : layout.bands()) EXPECT_EQ(b.kind, LaneLayout::Band::Kind::row);
  EXPECT_EQ(layout.rows(), d.trace->rows().size());
  layout.set(nullptr, nullptr, false);
  EXPECT_TRUE(layout.bands().empty());
  EXPECT_EQ(layout.height(20), 0);
}

// What is pinned stays where it is while the rest scrolls behind it, where nothing of the rest can be hit.
TEST(TimelinePins, StayAtTheTopWhileTheRestScrolls) {
  const Document d = trained_document();
  TimelineModel m;
  m.set_document(&d);
  const traces::EventId kernel = d.trace->launches().front().to;
  m.set_selection(Selection::event(1, kernel, "test"));
  const int band = m.chosen_band();
  ASSERT_GE(band, 0);
  const Size low{900, 260};
  m.frame(low);
  m.key({"P", "", {}});
  const Scene& pinned = m.frame(low);
  const Hit pin{LaneModel::pin, band};
  const Point at = center_of(pinned, pin);
  EXPECT_EQ(m.band_at(at.y), band);
  EXPECT_NE(m.summary().find("pinned: " + m.layout().bands()[static_cast<size_t>(band)].full_title), std::string::npos)
      << m.summary();
  for (int i = 0; i < 30; ++i) m.wheel({100, at.y + 60, 0, -1, {.ctrl = true}});
  const Scene& scrolled = m.frame(low);
  const Point still = center_of(scrolled, pin);
  EXPECT_FLOAT_EQ(still.y, at.y);
  for (float x = 200; x < 880; x += 3) {
    const Hit hit = scrolled.hit_at(x, still.y);
    if (hit.kind == LaneModel::event) {
      EXPECT_EQ(d.trace->row_of(static_cast<traces::EventId>(hit.id)), d.trace->row_of(kernel));
    }
  }
  EXPECT_TRUE(scrolled.overlaps().empty()) << scrolled.overlaps().front();
  m.pointer({PointerEvent::Type::press, Button::left, still.x, still.y, {}});
  m.pointer({PointerEvent::Type::release, Button::left, still.x, still.y, {}});
  EXPECT_FALSE(m.layout().any_pinned());
}

// Every piece and gap of the story can be pointed at, whatever the zoom, and what is drawn stays on the canvas.
TEST(TimelineStory, IsDrawnOverTheLanesAtEveryZoom) {
  const Document d = trained_document();
  TimelineModel m;
  m.set_document(&d);
  m.set_story(std::make_shared<const tracing::TraceStory>(tracing::trace_story(*d.trace)));
  Selection chosen;
  m.on_select = [&](const Selection& s) { chosen = s; };
  m.show_path(true);
  m.show_gaps(true);
  const auto& story = *m.story();
  ASSERT_FALSE(story.gaps.empty());
  for (size_t i : {size_t{0}, story.gaps.size() / 2, story.gaps.size() - 1}) {
    const auto& g = story.gaps[i];
    const double from = static_cast<double>(g.from - d.trace->begin()),
                 to = static_cast<double>(g.to - d.trace->begin());
    m.axis().show(from - (to - from), to + (to - from));
    const Point p = center_of(m.frame({1200, 600}), {LaneModel::gap, static_cast<int64_t>(i)});
    EXPECT_NE(m.last().tip_at(p.x, p.y).find(tracing::because(g.reason)), std::string::npos);
    m.pointer({PointerEvent::Type::press, Button::left, p.x, p.y, {}});
    m.pointer({PointerEvent::Type::release, Button::left, p.x, p.y, {}});
    EXPECT_EQ(chosen.kind, Selection::Kind::range);
    EXPECT_DOUBLE_EQ(chosen.from, from);
    EXPECT_DOUBLE_EQ(chosen.to, to);
  }
  m.fit();
  const Scene& whole = m.frame({1200, 600});
  std::set<int> kinds;
  for (const auto& t : whole.targets()) {
    kinds.insert(t.hit.kind);
    EXPECT_GE(t.box.x, 0);
    EXPECT_LE(t.box.right(), 1201);
  }
  for (int kind : {LaneModel::piece, LaneModel::gap, LaneModel::fold, LaneModel::overview, LaneModel::event})
    EXPECT_TRUE(kinds.contains(kind)) << kind;
  m.show_path(false);
  for (const auto& t : m.frame({1200, 600}).targets()) EXPECT_NE(t.hit.kind, LaneModel::piece);
}

TEST(TimelineStory, AnEventLeadsToWhatItLaunchedAndTheOverviewMoves) {
  const Document d = trained_document();
  TimelineModel m;
  m.set_document(&d);
  ASSERT_FALSE(d.trace->launches().empty());
  const traces::Link first = d.trace->launches().front();
  m.set_selection(Selection::event(1, first.to, "elsewhere"));
  ASSERT_EQ(m.linked().size(), 1u);
  EXPECT_EQ(m.linked()[0].from, first.from);
  m.set_selection(Selection::event(1, first.from, "elsewhere"));
  ASSERT_FALSE(m.linked().empty());
  EXPECT_EQ(m.linked()[0].to, first.to);
  m.fit();
  m.axis().zoom(0, 0.1);
  const Scene& s = m.frame({1200, 600});
  const Point p = center_of(s, {LaneModel::overview, 0});
  m.pointer({PointerEvent::Type::press, Button::left, p.x, p.y, {}});
  EXPECT_NEAR((m.axis().lo + m.axis().hi) / 2, m.axis().full_hi / 2, m.axis().full_hi * 0.01);
  m.pointer({PointerEvent::Type::move, Button::left, p.x + 200, p.y, {}});
  EXPECT_GT((m.axis().lo + m.axis().hi) / 2, m.axis().full_hi * 0.6);
  m.pointer({PointerEvent::Type::release, Button::left, p.x + 200, p.y, {}});
  EXPECT_FALSE(m.axis().fitted());
  // What is marked is what the table counts.
  const auto all = m.names().rows.size();
  m.key({"F", {}});
  m.set_selection(Selection::event(1, first.to, "elsewhere"));
  m.key({"M", {}});
  double from = 0, to = 0;
  ASSERT_TRUE(m.marked(from, to));
  EXPECT_LT(m.names().rows.size(), all);
  m.key({"Esc", {}});
  EXPECT_FALSE(m.marked(from, to));
}

}  // namespace
}  // namespace tenon::views
