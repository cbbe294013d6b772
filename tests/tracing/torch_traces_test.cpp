// Traces that PyTorch's profiler wrote (tests/peers/record_traces.py) against what torch itself said of the same
// recordings.
#include "tests/tracing/findings.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tracing/analyses/ranks.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/source_text.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::tracing {
namespace {

using nlohmann::json;

/// Recordings of other versions are checked the same way: record_traces.py FOLDER, then TENON_TORCH_TRACES=FOLDER.
std::string traces_folder() {
  const char* other = std::getenv("TENON_TORCH_TRACES");
  return other ? other : std::string(TENON_SOURCE_DIR) + "/tests/tracing/torch";
}

struct Recording {
  std::string name;
  json figures;
  std::shared_ptr<const traces::Trace> trace;
};

std::vector<Recording> recordings() {
  std::vector<Recording> all;
  for (const auto& entry : std::filesystem::directory_iterator(traces_folder())) {
    const std::string path = entry.path().string(), end = ".figures.json";
    if (!path.ends_with(end)) continue;
    Recording r;
    r.name = entry.path().filename().string();
    r.name.resize(r.name.size() - end.size());
    std::ifstream in(path);
    r.figures = json::parse(in);
    traces::ReadOptions o;
    o.read_cache = o.write_cache = false;
    r.trace = traces::read_trace(path.substr(0, path.size() - end.size()) + ".json.gz", o);
    all.push_back(std::move(r));
  }
  std::sort(all.begin(), all.end(), [](const Recording& a, const Recording& b) { return a.name < b.name; });
  return all;
}

Finding found_in(const char* analysis, const Recording& r) {
  return tracing::run(analysis, std::vector<std::shared_ptr<const traces::Trace>>{r.trace}, 1000000);
}
int64_t number(const Cell& c) { return std::get<int64_t>(c); }
size_t column(const Table& t, const std::string& name) {
  for (size_t c = 0; c < t.columns.size(); ++c)
    if (t.columns[c].name == name) return c;
  ADD_FAILURE() << t.name << " has no column " << name;
  return 0;
}

// Every row of key_averages(), in both directions. See Note [As key_averages() counts].
TEST(TorchTraces, OpsAndAnnotationsAreThoseOfKeyAverages) {
  size_t compared = 0;
  for (const Recording& r : recordings()) {
    SCOPED_TRACE(r.name);
    const bool whole = r.figures["whole_microseconds"];
    const bool python =
        r.figures.value("python_is_nested", false);  // then Python's functions are no part of torch's self times
    const std::set<std::string> elsewhere = r.figures["ends_elsewhere"];
    std::map<std::string, json> theirs;
    for (const json& op : r.figures["ops"])
      if (op[0] != "[memory]") theirs[op[0]] = op;
    Finding f = found_in("ops", r);
    std::set<std::string> ours;
    int64_t our_sum = 0;
    double their_sum = 0;
    for (const char* name : {"ops", "annotations"}) {
      const Table* t = table_of(f, name);
      if (!t) continue;
      for (const auto& row : t->rows) {
        const auto& op = std::get<std::string>(row[0]);
        SCOPED_TRACE(op);
        ASSERT_TRUE(ours.insert(op).second) << "twice";
        auto it = theirs.find(op);
        ASSERT_NE(it, theirs.end()) << "torch does not have it";
        const int64_t calls = number(row[column(*t, "calls")]), self = number(row[column(*t, "self_ns")]),
                      total = number(row[column(*t, "total_ns")]);
        const double their_self = it->second[2].get<double>() * 1000, their_total = it->second[3].get<double>() * 1000;
        EXPECT_NEAR(static_cast<double>(calls), it->second[1].get<double>(), whole ? 1 : 0);
        EXPECT_NEAR(static_cast<double>(total), their_total, whole ? 1000.0 * static_cast<double>(calls) : 1);
        our_sum += self;
        their_sum += elsewhere.count(op) || python ? static_cast<double>(self) : their_self;
        // Rounded times take an op out of what it lies in, and torch its time from the wrong one: there the sum of all
        // can be compared.
        if (!whole && !elsewhere.count(op) && !python) {
          EXPECT_NEAR(static_cast<double>(self), their_self, 1);
        } else if (!whole) {
          EXPECT_GE(static_cast<double>(self), their_self - 1);
        } else {
          EXPECT_LE(self, total);
        }
        ++compared;
      }
    }
    EXPECT_NEAR(static_cast<double>(our_sum), their_sum, whole ? 500.0 * static_cast<double>(r.trace->size()) : 100);
    for (const auto& [op, figures] : theirs) EXPECT_TRUE(ours.count(op)) << op << " is missing";
  }
  EXPECT_GT(compared, 250u);
}

TEST(TorchTraces, StepsLastAsTorchSays) {
  size_t compared = 0;
  for (const Recording& r : recordings()) {
    SCOPED_TRACE(r.name);
    std::vector<int64_t> theirs = r.figures["steps"], ours;
    for (const TraceStep& s : trace_steps(*r.trace))
      if (s.number >= 0) ours.push_back(s.end - s.start);
    std::sort(ours.begin(), ours.end());
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i)
      EXPECT_NEAR(static_cast<double>(ours[i]), static_cast<double>(theirs[i]),
                  r.figures["whole_microseconds"] ? 1000 : 1);
    if (ours.empty()) continue;
    Finding f = found_in("steps", r);
    const Table* t = table_of(f, "steps");
    ASSERT_TRUE(t);
    for (const auto& row : t->rows) {
      int64_t parts = 0;
      for (const char* phase : {"data_ns", "forward_ns", "backward_ns", "optimizer_ns", "sync_ns", "other_ns"})
        parts += number(row[column(*t, phase)]);
      EXPECT_EQ(parts, number(row[column(*t, "total_ns")]));
      for (const char* phase : {"forward_ns", "backward_ns", "optimizer_ns"})
        EXPECT_GT(number(row[column(*t, phase)]), 0) << phase;
      ++compared;
    }
  }
  EXPECT_GE(compared, 6u);
}

TEST(TorchTraces, CategoriesAndLinksAreThoseOfTheFile) {
  for (const Recording& r : recordings()) {
    SCOPED_TRACE(r.name);
    std::map<std::string, std::pair<int64_t, int64_t>> slices;
    for (traces::EventId e = 0; e < r.trace->size(); ++e) {
      if (r.trace->columns().flags[e] & traces::kInstant) continue;
      auto& [count, sum] = slices[r.trace->category(e).name];
      ++count;
      sum += r.trace->duration(e);
    }
    ASSERT_EQ(slices.size(), r.figures["categories"].size());
    for (const json& c : r.figures["categories"]) {
      EXPECT_EQ(slices[c[0]].first, c[1].get<int64_t>()) << c[0];
      EXPECT_EQ(slices[c[0]].second, c[2].get<int64_t>()) << c[0];
    }
    EXPECT_EQ(r.trace->forward_backward().size(), r.figures["forward_backward"].get<size_t>());
    for (const traces::Link& l : r.trace->forward_backward()) {
      EXPECT_LT(r.trace->start(l.from), r.trace->start(l.to));
      EXPECT_EQ(r.trace->kind(l.from), traces::EventKind::cpu_op);
      EXPECT_EQ(r.trace->kind(l.to), traces::EventKind::cpu_op);
    }
    EXPECT_FALSE(r.trace->truncated());
    for (const traces::Repair& repair : r.trace->repairs())
      EXPECT_TRUE(repair.kind == "invalid UTF-8" || repair.kind == "control characters") << repair.kind;
  }
}

TEST(TorchTraces, MemoryIsWhatTheProfilerCounted) {
  size_t compared = 0;
  for (const Recording& r : recordings()) {
    SCOPED_TRACE(r.name);
    const json& m = r.figures["memory"];
    ASSERT_EQ(r.trace->memory().size(), m["events"].get<size_t>());
    if (r.trace->memory().empty()) continue;
    ++compared;
    int64_t bytes = 0;
    for (const traces::MemoryEvent& e : r.trace->memory()) bytes += e.bytes;
    EXPECT_EQ(bytes, m["bytes"]);
    if (!r.figures["whole_microseconds"]) {  // torch gives its ops the bytes by these times
      EXPECT_EQ(bytes, m["bytes_of_torch"]);
    }
    const Finding f = found_in("memory", r);
    const Table* t = table_of(f, "devices");
    ASSERT_TRUE(t);
    ASSERT_EQ(t->rows.size(), 1u);
    EXPECT_EQ(std::get<std::string>(t->rows[0][0]), "CPU");
    EXPECT_EQ(number(t->rows[0][column(*t, "peak_bytes")]), m["peak"]);
    EXPECT_EQ(number(t->rows[0][column(*t, "allocated_bytes")]), m["taken"]);
  }
  EXPECT_GE(compared, 2u);
}

// By the parents that Python's functions name, where ours go by time.
TEST(TorchTraces, ModulesLieInEachOtherAsPythonsFunctionsDo) {
  size_t compared = 0;
  for (const Recording& r : recordings()) {
    SCOPED_TRACE(r.name);
    if (r.figures["modules"].empty()) continue;
    Finding f = found_in("modules", r);
    const Table* t = table_of(f, "modules");
    ASSERT_TRUE(t);
    EXPECT_EQ(t->rows.size(), r.figures["modules"].size());
    for (const auto& row : t->rows) {
      const json& theirs = r.figures["modules"][std::get<std::string>(row[0])];
      ASSERT_FALSE(theirs.is_null()) << std::get<std::string>(row[0]);
      EXPECT_EQ(number(row[column(*t, "calls")]), theirs["calls"]);
      EXPECT_EQ(number(row[column(*t, "total_ns")]), theirs["total_ns"]);
      EXPECT_EQ(number(row[column(*t, "self_ns")]), theirs["self_ns"]);
      ++compared;
    }
  }
  EXPECT_GT(compared, 10u);
}

// Two processes of one machine have one clock: what is estimated from their collectives lies within what these scatter.
TEST(TorchTraces, RanksOfOneMachineHaveOneClock) {
  std::map<std::string, std::vector<Recording>> sessions;
  for (Recording& r : recordings())
    if (size_t at = r.name.find("-distributed-rank"); at != std::string::npos)
      sessions[r.name.substr(0, at)].push_back(r);
  ASSERT_FALSE(sessions.empty());
  for (const auto& [version, ranks] : sessions) {
    SCOPED_TRACE(version);
    ASSERT_EQ(ranks.size(), 2u);
    EXPECT_EQ(ranks[0].trace->rank(), 0);
    EXPECT_EQ(ranks[1].trace->rank(), 1);
    auto offsets = align_clocks({ranks[0].trace, ranks[1].trace});
    EXPECT_EQ(offsets[1].matched, 6u);  // two broadcasts and four all-reduces
    EXPECT_LE(std::abs(offsets[1].ahead_ns), std::max<int64_t>(2 * offsets[1].spread_ns, 1000000));
    TraceRequest both;
    both.traces = {ranks[0].trace, ranks[1].trace};
    Finding f = trace_analyses().at("ranks").run(both);
    const Table* t = table_of(f, "ranks");
    ASSERT_TRUE(t);
    for (const auto& row : t->rows) {
      EXPECT_GT(number(row[column(*t, "communication_ns")]), 0);
      EXPECT_GT(number(row[column(*t, "busy_ns")]), 0);
      EXPECT_LT(number(row[column(*t, "busy_ns")]), number(row[column(*t, "step_ns")]));
    }
  }
}

// As each version lays its files out: one field a line or several, keys before and behind the events.
TEST(TorchTraces, AnyPrefixOpensWithWhatItHolds) {
  for (const Recording& r : recordings()) {
    SCOPED_TRACE(r.name);
    const std::string text(traces::SourceText::open(r.trace->path())->bytes());
    const size_t begin = text.find("\"traceEvents\""), end = text.rfind("Record Window End");
    ASSERT_NE(begin, std::string::npos);
    ASSERT_NE(end, std::string::npos);
    size_t before = 0;
    for (size_t k = 0; k <= 50; ++k) {
      const size_t cut = begin + 20 + (end - begin - 20) * k / 50;
      auto t = traces::parse_trace(text.substr(0, cut));
      ASSERT_TRUE(t->truncated()) << cut;
      // What the cut leaves of an event may be enough to be one.
      ASSERT_GE(t->size() + 1, before) << cut;
      ASSERT_LE(t->size(), r.trace->size()) << cut;
      for (const traces::Repair& repair : t->repairs())
        ASSERT_TRUE(repair.kind == "events cut short" || repair.kind == "invalid UTF-8" ||
                    repair.kind == "flows without their other half")
            << repair.kind << " at " << cut;
      before = t->size();
    }
    EXPECT_GE(before + 2, r.trace->size());
  }
}

// The whole text of an event can be had, and its arguments are those the profiler wrote.
TEST(TorchTraces, EveryEventsTextIsAnEvent) {
  for (const Recording& r : recordings()) {
    SCOPED_TRACE(r.name);
    for (traces::EventId e = 0; e < r.trace->size(); ++e) {
      const std::string text = r.trace->event_text(e);
      ASSERT_TRUE(text.starts_with("{") && text.ends_with("}")) << text;
      if (r.trace->kind(e) == traces::EventKind::cpu_op) {
        EXPECT_FALSE(traces::argument(*r.trace, e, "External id").empty()) << text;
      }
    }
  }
}

}  // namespace
}  // namespace tenon::tracing
