#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/random.h"
#include "engine/templates/templates.h"
#include "engine/train/session.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/record/memory_snapshot.h"
#include "tracing/record/own_trace.h"
#include "tracing/snapshot/snapshot.h"
#include "tracing/trace/trace_maker.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {
namespace {

TrainingSession& session() {
  static TrainingSession s(find_template("spirals").model, find_template("spirals").recipe);
  return s;
}

TEST(Snapshot, OfOursOpensAndEveryPrefixToo) {
  std::string good = snapshot_pickle(record_memory(session(), 1));
  auto whole = snapshot::parse_snapshot(good);
  EXPECT_FALSE(whole->truncated);
  size_t opened = 0;
  for (size_t n = good.size() / 50; n < good.size(); n += 1 + good.size() / 1200) {
    try {
      auto part = snapshot::parse_snapshot(good.substr(0, n));
      EXPECT_TRUE(part->truncated);
      EXPECT_LE(part->events.size_(), whole->events.size_() + 1);
      ++opened;
    } catch (const Error&) {  // cut before the first row was whole
    }
  }
  EXPECT_GT(opened, 1000u);
  Philox random{5, 6};
  for (uint64_t i = 0; i < 2000; ++i) {
    std::string bad = good.substr(0, 4000);
    for (uint64_t k = 0; k < 4; ++k)
      bad[random.below(i * 8 + k * 2, bad.size())] = static_cast<char>(random.word(i * 100 + k));
    try {
      snapshot::parse_snapshot(bad);
    } catch (const Error&) {
    }
  }
}

TEST(Snapshot, AnEventThatNamesItselfAsItsFramesIsReadWhole) {
  auto text = [](std::string_view s) { return "\x8c" + std::string(1, static_cast<char>(s.size())) + std::string(s); };
  const std::string nothing("K\0s", 3), itself("h\0s", 3);
  std::string pickle = "\x80\x04}" + text("device_traces") + "]]}q" + std::string(1, 0);
  pickle += text("action") + text("alloc") + "s" + text("addr") + nothing + text("stream") + nothing;
  pickle += text("frames") + itself + text("forward_frames") + itself + text("category") + text("kept") + "saas.";
  auto s = snapshot::parse_snapshot(pickle);
  ASSERT_EQ(s->events.size_(), 1u);
  EXPECT_EQ(s->events.stack[0], snapshot::kNone);
  ASSERT_EQ(s->events.category.size(), 1u);
  EXPECT_EQ(s->text(s->events.category[0]), "kept");
}

TEST(Snapshot, FiguresAreTheRecordings) {
  MemoryRecording r = record_memory(session(), 2);
  auto s = snapshot::parse_snapshot(snapshot_pickle(r));
  int64_t allocs = 0, live = 0, peak = 0, reserved = 0;
  for (const AllocEvent& e : r.events) {
    allocs += e.bytes >= 0;
    live += e.bytes;
    peak = std::max(peak, live);
  }
  ASSERT_EQ(s->traces.size(), 1u);
  snapshot::Timeline t(*s, 0);
  EXPECT_EQ(std::count(s->events.action.begin(), s->events.action.end(), snapshot::Action::alloc), allocs);
  EXPECT_EQ(t.peak_bytes(), peak);
  EXPECT_EQ(t.bytes(t.events() - 1), live);
  for (const auto& g : s->segments) reserved += g.total;
  EXPECT_EQ(reserved, live);
  int64_t at_peak = 0;
  for (uint32_t id : t.live(t.peak())) at_peak += t.element(id).bytes;
  EXPECT_EQ(at_peak, peak);
}

TEST(OwnTrace, IsJsonWithEveryEvent) {
  OwnTrace p = record_profile(session(), 3, "a \"quoted\" run\\");
  auto j = nlohmann::json::parse(traces::chrome_json(*p.store));
  EXPECT_EQ(j.at("traceName"), "a \"quoted\" run\\");
  size_t ops = 0, steps = 0;
  for (const auto& e : j.at("traceEvents")) {
    if (e.at("ph") != "X") continue;
    EXPECT_GE(e.at("dur").get<double>(), 0);
    ops += e.at("cat") == "cpu_op";
    steps += e.at("name").get<std::string>().rfind("ProfilerStep#", 0) == 0;
  }
  size_t expected = 0;
  for (const OpEvent& e : *p.ops) expected += e.seq != 0;
  EXPECT_EQ(ops, expected);
  EXPECT_GT(ops, 30u);
  EXPECT_EQ(steps, 3u);
}

TEST(OwnTrace, LinksAnOpToItsGradient) {
  const OwnTrace p = record_profile(session(), 3, "run");
  std::map<std::string, size_t> linked;
  for (const traces::Link& l : p.store->forward_backward()) {
    EXPECT_EQ(p.op(l.from).phase, Phase::forward);
    EXPECT_EQ(p.op(l.to).phase, Phase::backward);
    EXPECT_LT(p.store->end(l.from), p.store->start(l.to));
    EXPECT_EQ(p.op(l.from).module, p.op(l.to).module) << p.store->event_name(l.from);
    ++linked[std::string(p.store->event_name(l.from))];
  }
  EXPECT_GT(linked["linear"], 0u);
  EXPECT_EQ(linked["linear"] % 3, 0u) << "in each of the three steps";
}

// What was recorded here and what is read from its file are one kind of store, and the same one.
TEST(OwnTrace, IsTheStoreThatItsFileBecomes) {
  OwnTrace p = record_profile(session(), 3, "run");
  auto read = traces::parse_trace(traces::chrome_json(*p.store));
  EXPECT_TRUE(read->repairs().empty());
  ASSERT_EQ(read->size(), p.store->size());
  for (traces::EventId e = 0; e < read->size(); ++e) {
    EXPECT_EQ(read->start(e), p.store->start(e));
    EXPECT_EQ(read->duration(e), p.store->duration(e));
    EXPECT_EQ(read->event_name(e), p.store->event_name(e));
    EXPECT_EQ(read->category(e).name, p.store->category(e).name);
    EXPECT_EQ(traces::arguments(*read, e), traces::arguments(*p.store, e));
  }
  ASSERT_EQ(read->forward_backward().size(), p.store->forward_backward().size());
  EXPECT_TRUE(std::equal(read->forward_backward().begin(), read->forward_backward().end(),
                         p.store->forward_backward().begin(),
                         [](const auto& a, const auto& b) { return a.from == b.from && a.to == b.to; }));
  ASSERT_EQ(read->lanes().size(), p.store->lanes().size());
  for (size_t l = 0; l < read->lanes().size(); ++l) EXPECT_EQ(read->lanes()[l].end, p.store->lanes()[l].end);
  auto labels = [](const traces::Trace& t) {
    std::vector<std::string> all;
    for (const traces::Row& r : t.rows())
      if (r.events) all.push_back(r.label());
    return all;
  };
  EXPECT_EQ(labels(*read), labels(*p.store));

  for (const auto& store : {p.store, read}) {
    EXPECT_EQ(trace_steps(*store).size(), 3u);
    TraceRequest r;
    r.traces.push_back(store);
    for (const char* name : {"info", "ops", "steps", "modules", "critical-path", "why"}) {
      Finding f = trace_analyses().at(name).run(r);
      EXPECT_TRUE(f.ok) << name << ": " << f.sentence;
    }
    EXPECT_FALSE(trace_analyses().at("kernels").run(r).ok) << "there is no GPU in it";
  }
}

}  // namespace
}  // namespace tenon::tracing
