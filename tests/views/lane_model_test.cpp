// Opened traces in the timeline: lanes of any size, and what the window knows of their events.
#include "views/timeline/lane_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/random.h"
#include "tests/views/scenes.h"
#include "tests/views/step_fixture.h"
#include "tracing/trace/trace_reader.h"
#include "views/details/details_model.h"
#include "views/timeline/timeline_model.h"

namespace tenon::views {
namespace {

constexpr Size kSize{1000, 480};

std::string slice(const std::string& category, const std::string& name, int thread, double start, double length,
                  const std::string& args = "") {
  return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
                     category, name, thread, start, length, args);
}
std::shared_ptr<const traces::Trace> trace_of(const std::vector<std::string>& events) {
  return traces::parse_trace(fmt::format(R"({{"traceEvents":[{}]}})", fmt::join(events, ",\n")));
}
/// An op that holds two, a call that launches a kernel, and a second thread.
std::shared_ptr<const traces::Trace> small_trace() {
  return trace_of({slice("cpu_op", "aten::linear", 1, 100, 400, R"("External id":7,"Input Dims":[[4,8]])"),
                   slice("cpu_op", "aten::t", 1, 120, 80), slice("cpu_op", "aten::addmm", 1, 220, 240),
                   slice("cuda_runtime", "cudaLaunchKernel", 1, 300, 50, R"("correlation":9)"),
                   slice("kernel", "sgemm", 70, 420, 300, R"("correlation":9,"stream":70)"),
                   slice("cpu_op", "aten::relu", 2, 600, 200), slice("cpu_op", "aten::t", 2, 820, 20)});
}
/// Hundreds of thousands of events on a few threads, most of them far below a pixel.
std::shared_ptr<const traces::Trace> large(int events) {
  std::vector<std::string> all;
  const Philox random{11, 3};
  std::vector<double> at(4, 0);
  for (int i = 0; i < events; ++i) {
    const size_t thread = static_cast<size_t>(i) % at.size();
    const double length = 0.5 + static_cast<double>(random.below(static_cast<uint64_t>(i) * 2, 1000)) / 100;
    all.push_back(slice("cpu_op", i % 997 == 0 ? "rare" : "op" + std::to_string(i % 50), static_cast<int>(thread) + 1,
                        at[thread], length));
    at[thread] += length + (i % 5000 < 4 ? 4000 : 0.2);
  }
  return trace_of(all);
}
Document document_of(std::shared_ptr<const traces::Trace> trace, int id = 1) {
  return {id, Document::Kind::trace, "t.json", "t.json", std::move(trace)};
}
traces::EventId named(const traces::Trace& t, const std::string& name, int which = 0) {
  for (traces::EventId e = 0; e < t.size(); ++e)
    if (t.event_name(e) == name && which-- == 0) return e;
  return traces::kNone;
}
bool stands(const Scene& s, const std::string& text) {
  const auto texts = s.texts();
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

TEST(OpenedTrace, IsDrawnAndAClickSelectsItsEvent) {
  TimelineModel m;
  const Document d = document_of(small_trace());
  m.set_document(&d);
  const Scene& s = m.frame(kSize);
  EXPECT_TRUE(stands(s, "sgemm") || stands(s, "sgemm  300 µs")) << s.dump();
  EXPECT_TRUE(s.overlaps().empty()) << s.overlaps().front();
  Selection chosen;
  m.on_select = [&](const Selection& sel) { chosen = sel; };
  const auto kernel = named(*d.trace, "sgemm");
  const Point p = center_of(s, {LaneModel::event, kernel});
  m.pointer({PointerEvent::Type::press, Button::left, p.x, p.y, {}});
  m.pointer({PointerEvent::Type::release, Button::left, p.x, p.y, {}});
  EXPECT_TRUE(chosen.same(Selection::event(1, kernel))) << to_text(chosen);
  EXPECT_NE(m.last().tip_at(p.x, p.y).find("300 µs"), std::string::npos) << m.last().tip_at(p.x, p.y);
  // Selected elsewhere it is scrolled into sight; one of another document is not its own.
  m.axis().show(m.axis().full_lo, m.axis().full_lo + 1000);
  m.set_selection(Selection::event(1, kernel, "elsewhere"));
  EXPECT_LE(m.axis().lo, static_cast<double>(d.trace->start(kernel) - d.trace->begin()));
  EXPECT_GE(m.axis().hi, static_cast<double>(d.trace->end(kernel) - d.trace->begin()));
  EXPECT_EQ(m.selected_event(), kernel);
  m.set_selection(Selection::event(2, kernel));
  EXPECT_EQ(m.selected_event(), traces::kNone);
}

TEST(OpenedTrace, TimesCountFromItsFirstEventExactly) {
  // Microseconds since 1970, a nanosecond apart: a double of nanoseconds would put them a quarter of a microsecond off.
  const double day = 1712195495550000.0;
  std::string text = "[";
  for (int i = 0; i < 4; ++i)
    text += fmt::format(R"({{"ph":"X","cat":"cpu_op","name":"op{}","pid":1,"tid":1,"ts":{:.0f}.{:03d},"dur":0.002}},)",
                        i, day, 100 + 3 * i);
  text.back() = ']';
  TimelineModel m;
  const Document d = document_of(traces::parse_trace(text));
  m.set_document(&d);
  EXPECT_EQ(m.axis().full_lo, 0);
  EXPECT_EQ(m.axis().full_hi, 11);
  const Scene& s = m.frame(kSize);
  EXPECT_TRUE(stands(s, "0 ns")) << s.dump();
  const float first = center_of(s, {LaneModel::event, 0}).x, second = center_of(s, {LaneModel::event, 1}).x;
  EXPECT_NEAR(second - first, 3 / m.axis().per_pixel(), 1.5);
}

TEST(OpenedTrace, KeysZoomMeasureAndGoFromEventToEvent) {
  TimelineModel m;
  const Document d = document_of(small_trace());
  m.set_document(&d);
  m.on_select = [&](const Selection& s) { m.set_selection(s); };
  m.frame(kSize);
  EXPECT_TRUE(m.key({"W", "w", {}}));
  EXPECT_FALSE(m.axis().fitted());
  EXPECT_TRUE(m.key({"F", "f", {}}));
  EXPECT_TRUE(m.axis().fitted());
  EXPECT_TRUE(m.wheel({500, 100, 0, 2, {}}));
  EXPECT_FALSE(m.axis().fitted());
  m.set_selection(Selection::event(1, named(*d.trace, "aten::t")));
  EXPECT_TRUE(m.key({"N", "n", {}}));
  EXPECT_EQ(m.selected_event(), named(*d.trace, "aten::t", 1)) << "the next of the same name, on another thread";
  EXPECT_TRUE(m.key({"N", "n", {}}));
  EXPECT_EQ(m.selected_event(), named(*d.trace, "aten::t")) << "and round again";
  EXPECT_TRUE(m.key({"Right", "", {}}));
  EXPECT_EQ(m.selected_event(), named(*d.trace, "aten::addmm")) << "its neighbour on the lane";
  m.set_filter({.name = "aten"});
  EXPECT_EQ(m.found(), 5);
  m.set_selection({});
  for (const char* name : {"aten::linear", "aten::t", "aten::addmm", "aten::relu"}) {
    EXPECT_TRUE(m.key({"N", "n", {}}));
    EXPECT_EQ(m.selected_event(), named(*d.trace, name)) << name << " in order of time";
  }
  EXPECT_TRUE(m.key({"M", "m", {}}));
  m.set_filter({.name = "nothing"});
  EXPECT_EQ(m.found(), 0);
  EXPECT_TRUE(m.key({"N", "n", {}})) << "nothing to find is no fault";
}

TEST(OpenedTrace, AFilterLeavesAThreadAStretchAndAName) {
  TimelineModel m;
  const Document d = document_of(small_trace());
  m.set_document(&d);
  EXPECT_EQ(m.found(), 7);
  auto names = [&] {
    std::set<std::string> found;
    double calls = 0;
    for (const auto& row : m.names().rows) found.insert(row.cells[0].text), calls += row.cells[2].key;
    EXPECT_EQ(calls, static_cast<double>(m.found()));
    return found;
  };
  const int64_t second = d.trace->row_of(named(*d.trace, "aten::relu"));
  m.set_filter({.row = second});
  EXPECT_EQ(names(), (std::set<std::string>{"aten::relu", "aten::t"}));
  m.set_filter({.from = 120'000, .to = 200'000});  // 220 to 300 us of the file
  EXPECT_EQ(names(), (std::set<std::string>{"aten::linear", "aten::addmm"})) << "what ends or begins there is outside";
  m.set_filter({.name = "ATEN::T", .row = second});
  EXPECT_EQ(names(), (std::set<std::string>{"aten::t"}));
  EXPECT_EQ(m.found(), 1);
  m.on_select = [&](const Selection& s) { m.set_selection(s); };
  m.next_match(1);
  EXPECT_EQ(m.selected_event(), named(*d.trace, "aten::t", 1)) << "the one of the thread that is left";
  // In the picture the rest is dim.
  auto bright = [&] {
    int n = 0;
    for (const auto& p : m.frame(kSize).prims())
      n += p.kind == Scene::Kind::rect && p.alpha == 1 && (p.fill == Ink::series0 || p.fill == Ink::series2);
    return n;
  };
  EXPECT_EQ(bright(), 1);
  m.set_filter({.row = 99});
  EXPECT_EQ(m.found(), 0);
  EXPECT_EQ(bright(), 0);
  m.set_filter({});
  EXPECT_EQ(bright(), 6);
}

/// Two pictures of the same stretch: at most a rectangle a pixel column on each lane, and no event is lost.
TEST(OpenedTrace, ALargeOneDrawsNoMoreThanAPixelCanShow) {
  TimelineModel m;
  const Document d = document_of(large(200'000));
  m.set_document(&d);
  ASSERT_EQ(d.trace->size(), 200'000u);
  const int64_t begin = d.trace->begin();
  const Philox random{5, 9};
  for (int i = 0; i < 24; ++i) {
    if (i > 0) {
      const double span = (m.axis().full_hi - m.axis().full_lo) / static_cast<double>(int64_t{1} << (i % 12));
      const double at = m.axis().full_lo + static_cast<double>(random.below(static_cast<uint64_t>(i) * 2, 1000)) /
                                               1000 * (m.axis().full_hi - m.axis().full_lo);
      m.axis().show(at, at + span);
    }
    const Scene& s = m.frame(kSize);
    std::map<int, int> rects;  // by the height they lie at
    for (const auto& p : s.prims())
      if (p.kind == Scene::Kind::rect && p.fill != Ink::none) ++rects[static_cast<int>(p.box.y)];
    for (const auto& [y, n] : rects) EXPECT_LE(n, static_cast<int>(m.axis().w) + 2) << "at height " << y;
    // Every event in sight lies under a rectangle.
    size_t seen = 0;
    for (const auto& t : s.targets())
      if (t.hit.kind == LaneModel::event) ++seen;
    for (uint32_t l = 0; l < d.trace->lanes().size(); ++l) {
      const auto [first, last] =
          d.trace->range(l, begin + static_cast<int64_t>(m.axis().lo), begin + static_cast<int64_t>(m.axis().hi));
      if (last > first) {
        EXPECT_GT(seen, 0u);
      }
      for (traces::EventId e = first; e < last; e += 1 + (last - first) / 50) {
        const double middle = static_cast<double>(d.trace->start(e) + d.trace->end(e) - 2 * begin) / 2;
        if (middle <= m.axis().lo || middle >= m.axis().hi) continue;
        const float x = m.axis().to_px(middle);
        const bool covered = std::any_of(s.prims().begin(), s.prims().end(), [&](const Scene::Prim& p) {
          return p.kind == Scene::Kind::rect && x >= p.box.x - 1.5f && x <= p.box.right() + 1.5f;
        });
        EXPECT_TRUE(covered) << "event " << e;
      }
    }
  }
}

TEST(OpenedTrace, ASearchLightsUpRunsThatHoldWhatIsFound) {
  TimelineModel m;
  const Document d = document_of(large(50'000));
  m.set_document(&d);
  m.set_filter({.name = "rare"});
  int brute = 0;
  for (traces::EventId e = 0; e < d.trace->size(); ++e) brute += d.trace->event_name(e) == "rare";
  EXPECT_EQ(m.found(), brute);
  auto bright = [&] {
    int n = 0;
    for (const auto& p : m.frame(kSize).prims())
      n += p.kind == Scene::Kind::rect && p.alpha == 1 && p.fill == Ink::series0;
    return n;
  };
  const int lit = bright();
  EXPECT_GT(lit, 0);
  EXPECT_LE(lit, brute);
  m.set_filter({.name = "there is none of this"});
  EXPECT_EQ(bright(), 0);
  m.set_filter({});
  EXPECT_GT(bright(), lit);
}

TEST(OpenedTrace, TheStepComesBackAsItWasSeen) {
  TimelineModel m;
  m.set_step(testing::small_links());
  m.frame(kSize);
  m.axis().show(100'000, 300'000);
  const Document d = document_of(small_trace());
  m.set_document(&d);
  EXPECT_TRUE(m.shows_document());
  EXPECT_NE(m.summary().find("7 events"), std::string::npos) << m.summary();
  m.frame(kSize);
  m.axis().show(m.axis().full_lo, m.axis().full_lo + 5000);
  m.set_document(nullptr);
  EXPECT_FALSE(m.shows_document());
  EXPECT_EQ(m.axis().lo, 100'000);
  EXPECT_EQ(m.axis().hi, 300'000);
  EXPECT_TRUE(stands(m.frame(kSize), "training"));
  m.set_document(&d);
  EXPECT_EQ(m.axis().hi, m.axis().full_lo + 5000);
  // Another step that is loaded meanwhile is there on the way back, whole.
  m.set_step(testing::small_links());
  EXPECT_TRUE(m.shows_document());
  m.set_document(nullptr);
  EXPECT_TRUE(m.axis().fitted());
  m.set_step({});
  EXPECT_TRUE(m.empty());
  m.frame(kSize);
}

TEST(OpenedTrace, DetailsTellAnEventAndItsKin) {
  const Document d = document_of(small_trace());
  const std::vector<std::pair<std::string, std::string>> arguments{{"Input Dims", "[[4,8]]"}};
  auto text_of = [&](const Selection& s) {
    DetailsSources from;
    from.document = &d;
    from.arguments = &arguments;
    const Details details = details_of(s, from);
    std::string all = details.title + "|" + details.subtitle + "\n";
    for (const auto& section : details.sections)
      for (const auto& row : section.rows) all += row.name + "=" + row.value + "\n";
    return all;
  };
  const std::string kernel = text_of(Selection::event(1, named(*d.trace, "sgemm")));
  for (const char* want : {"sgemm|event of t.json", "duration=300 µs", "category=kernel",
                           "launched by=cudaLaunchKernel", "Input Dims=[[4,8]]"})
    EXPECT_NE(kernel.find(want), std::string::npos) << want << "\n" << kernel;
  EXPECT_NE(text_of(Selection::event(1, named(*d.trace, "aten::addmm"))).find("within=aten::linear"),
            std::string::npos);
  EXPECT_NE(text_of(Selection::of_document(1)).find("events=7"), std::string::npos);
  Selection range = Selection::range(0, 1e15);
  range.document = 1;
  EXPECT_NE(text_of(range).find("range of t.json"), std::string::npos);
  for (int64_t id : {int64_t{-1}, int64_t{7}, int64_t{1} << 40})
    EXPECT_EQ(text_of(Selection::event(1, id)), "|\n") << "what is not there has no details";
}

TEST(OpenedTrace, NamesAddUp) {
  TimelineModel m;
  const Document d = document_of(small_trace());
  m.set_document(&d);
  const Table t = m.names();
  ASSERT_EQ(t.rows.size(), 6u);
  for (const auto& row : t.rows)
    if (row.cells[0].text == "aten::t") {
      EXPECT_EQ(row.cells[2].key, 2);
      EXPECT_EQ(row.cells[3].key, 100'000);
      EXPECT_TRUE(row.selection.same(Selection::event(1, named(*d.trace, "aten::t"))));
    }
}

TEST(Selections, OfAClosedDocumentLeaveTheHistory) {
  SelectionBus bus;
  bus.select(Selection::op(1));
  bus.select(Selection::event(1, 5));
  bus.select(Selection::op(1));
  bus.select(Selection::event(2, 6));
  bus.select(Selection::event(1, 7));
  int told = 0;
  bus.listen([&](const Selection&) { ++told; });
  bus.forget_document(1);
  EXPECT_TRUE(bus.current().same(Selection::event(2, 6)));
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(bus.can_go_forward());
  bus.back();
  EXPECT_TRUE(bus.current().same(Selection::op(1))) << "what was the same before and after stands once";
  bus.back();
  EXPECT_FALSE(bus.current());
  EXPECT_FALSE(bus.can_go_back());
  bus.forget_document(2);
  EXPECT_TRUE(bus.can_go_forward());
  for (const Selection& s : {Selection::event(3, 12), Selection::of_document(2)})
    EXPECT_TRUE(parse_selection(to_text(s)).same(s)) << to_text(s);
  EXPECT_FALSE(parse_selection("event:3@"));
  EXPECT_FALSE(parse_selection("event:3@x"));
}

}  // namespace
}  // namespace tenon::views
