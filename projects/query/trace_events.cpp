// The events of a trace.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "projects/query/query_table.h"
#include "tracing/analyses/trace_analysis.h"

namespace tenon::projects {
namespace {

using traces::EventId;
using traces::Trace;
using tracing::Unit;
using Found = QueryColumn::Found;
using Leads = QueryColumn::Leads;

class TraceEvents final : public QueryRows {
 public:
  explicit TraceEvents(std::shared_ptr<const Trace> t) : trace(std::move(t)) {
    for (const traces::Row& row : trace->rows()) labels_.push_back(row.label());
    steps_ = tracing::trace_steps(*trace);
    if (!steps_.empty() && steps_.front().number < 0) steps_.clear();
  }
  int64_t end() const override { return static_cast<int64_t>(trace->size()); }
  Scan scan(const std::vector<QueryTest>& tests) const override;

  const traces::Lane& lane(int64_t row) const {
    const auto e = static_cast<EventId>(row);
    const auto& lanes = trace->lanes();
    if (lane_ >= lanes.size() || e < lanes[lane_].begin || e >= lanes[lane_].end) lane_ = trace->lane_of(e);
    return lanes[lane_];
  }
  const traces::Row& thread(int64_t row) const { return trace->rows()[lane(row).row]; }
  const std::string& label(int64_t row) const { return labels_[lane(row).row]; }
  int64_t since_begin(int64_t time) const { return time - trace->begin(); }
  /// Nothing where the event began in none.
  const tracing::TraceStep* step(int64_t row) const {
    const auto e = static_cast<EventId>(row);
    const EventId launch = trace->launch_of(e);
    const int64_t time = trace->start(launch == traces::kNone ? e : launch);
    auto after = std::upper_bound(steps_.begin(), steps_.end(), time,
                                  [](int64_t t, const tracing::TraceStep& s) { return t < s.start; });
    return after != steps_.begin() && time < (after - 1)->end ? &*(after - 1) : nullptr;
  }
  std::string arguments(int64_t row) const;

  const std::shared_ptr<const Trace> trace;

 private:
  std::vector<std::string> labels_;  ///< by the trace's rows
  std::vector<tracing::TraceStep> steps_;
  mutable uint32_t lane_ = ~0u;  ///< of the event that was looked at last
};

/// Where a query narrows the time, the events of each lane that may lie in it: on a lane both starts and ends go up.
QueryRows::Scan TraceEvents::scan(const std::vector<QueryTest>& tests) const {
  int64_t least_start = INT64_MIN, most_start = INT64_MAX, least_end = INT64_MIN, most_end = INT64_MAX;
  int64_t least_thread = 0, most_thread = INT64_MAX;
  uint32_t wanted_name = traces::kNone;
  std::vector<bool> categories(trace->categories().size(), true);
  for (const QueryTest& test : tests) {
    if (test.column == "start") test.narrow(least_start, most_start);
    if (test.column == "end") test.narrow(least_end, most_end);
    if (test.column == "thread_id") test.narrow(least_thread, most_thread);
    const auto* text = std::get_if<std::string>(&test.value);
    if (test.column == "name") {
      // A text that no event is called by equals none; a number is compared as its text, by SQLite.
      if (text && (wanted_name = trace->find_name(*text)) == traces::kNone)
        return [all = end()](int64_t) { return all; };
    } else if (text) {
      for (size_t c = 0; c < categories.size(); ++c) {
        const traces::Category& known = trace->categories()[c];
        if (test.column == "category") categories[c] = categories[c] && known.name == *text;
        if (test.column == "kind") categories[c] = categories[c] && traces::name(known.kind) == *text;
      }
    }
  }
  std::vector<std::pair<EventId, EventId>> stretches;
  for (const traces::Lane& l : trace->lanes()) {
    if (l.row < least_thread || l.row > most_thread) continue;
    const auto part = [&](EventId from, EventId to, auto before) {
      while (from < to) {
        const EventId middle = from + (to - from) / 2;
        if (before(middle))
          from = middle + 1;
        else
          to = middle;
      }
      return from;
    };
    EventId from = part(l.begin, l.end, [&](EventId e) { return since_begin(trace->start(e)) < least_start; });
    from = part(from, l.end, [&](EventId e) { return since_begin(trace->end(e)) < least_end; });
    EventId to = part(from, l.end, [&](EventId e) { return since_begin(trace->start(e)) <= most_start; });
    to = part(from, to, [&](EventId e) { return since_begin(trace->end(e)) <= most_end; });
    if (from >= to) continue;
    if (!stretches.empty() && stretches.back().second == from)
      stretches.back().second = to;
    else
      stretches.emplace_back(from, to);
  }
  return [this, stretches = std::move(stretches), wanted_name, categories = std::move(categories)](int64_t from) {
    const traces::Columns& columns = trace->columns();
    auto at = std::upper_bound(stretches.begin(), stretches.end(), from,
                               [](int64_t row, const auto& s) { return row < static_cast<int64_t>(s.second); });
    for (; at != stretches.end(); ++at)
      for (auto e = std::max<int64_t>(from, at->first); e < at->second; ++e)
        if ((wanted_name == traces::kNone || columns.name[static_cast<size_t>(e)] == wanted_name) &&
            categories[columns.category[static_cast<size_t>(e)]])
          return e;
    return end();
  };
}

/// As a JSON object. The reader gives texts without their quotes: what reads as a number, a list or an object is one.
std::string TraceEvents::arguments(int64_t row) const {
  nlohmann::json all = nlohmann::json::object();
  for (auto& [key, value] : traces::arguments(*trace, static_cast<EventId>(row))) {
    nlohmann::json j = nlohmann::json::parse(value, nullptr, false);
    all[key] = j.is_discarded() || j.is_string() ? nlohmann::json(value) : std::move(j);
  }
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void put_event(QueryCell& out, EventId e) {
  if (e != traces::kNone) out.put(static_cast<int64_t>(e));
}

std::vector<QueryColumn> trace_event_columns() {
  using Rows = TraceEvents;
  return QueryColumns<Rows>()
      .add(
          "id", Unit::count, "number of the event in the trace", [](const Rows&, int64_t e, QueryCell& c) { c.put(e); },
          Found::unique, Leads::event)
      .add(
          "name", Unit::text, "of the op, kernel or call",
          [](const Rows& r, int64_t e, QueryCell& c) { c.put_standing(r.trace->event_name(static_cast<EventId>(e))); },
          Found::scanned)
      .add(
          "category", Unit::text, "as the file names it: cpu_op, kernel, cuda_runtime, ...",
          [](const Rows& r, int64_t e, QueryCell& c) {
            c.put_standing(r.trace->category(static_cast<EventId>(e)).name);
          },
          Found::scanned)
      .add(
          "kind", Unit::text, "what the category is, whatever version wrote it: cpu op, kernel, memcpy, runtime, ...",
          [](const Rows& r, int64_t e, QueryCell& c) {
            c.put_standing(traces::name(r.trace->kind(static_cast<EventId>(e))));
          },
          Found::scanned)
      .add(
          "start", Unit::time, "nanoseconds after the trace's first event",
          [](const Rows& r, int64_t e, QueryCell& c) { c.put(r.since_begin(r.trace->start(static_cast<EventId>(e)))); },
          Found::scanned)
      .add("dur", Unit::nanoseconds, "how long it lasted, in nanoseconds",
           [](const Rows& r, int64_t e, QueryCell& c) { c.put(r.trace->duration(static_cast<EventId>(e))); })
      .add(
          "end", Unit::time, "start + dur",
          [](const Rows& r, int64_t e, QueryCell& c) { c.put(r.since_begin(r.trace->end(static_cast<EventId>(e)))); },
          Found::scanned)
      .add("process", Unit::text, "name of the process, where the file gives it, else its number",
           [](const Rows& r, int64_t e, QueryCell& c) {
             c.put_standing(r.thread(e).process.empty() ? r.thread(e).pid : r.thread(e).process);
           })
      .add("thread", Unit::text, "process and thread or stream: \"python / stream 7\"",
           [](const Rows& r, int64_t e, QueryCell& c) { c.put_standing(r.label(e)); })
      .add(
          "thread_id", Unit::count, "id in threads",
          [](const Rows& r, int64_t e, QueryCell& c) { c.put(static_cast<int64_t>(r.lane(e).row)); }, Found::scanned)
      .add("gpu", Unit::count, "1 on a stream of the GPU, else 0",
           [](const Rows& r, int64_t e, QueryCell& c) { c.put(int64_t{r.thread(e).gpu}); })
      .add("depth", Unit::count, "how many events of its thread it lies in; of a stream, how many run beside it",
           [](const Rows& r, int64_t e, QueryCell& c) { c.put(static_cast<int64_t>(r.lane(e).depth)); })
      .add("parent", Unit::count, "id of the event it lies in; NULL for an outermost one",
           [](const Rows& r, int64_t e, QueryCell& c) { put_event(c, r.trace->parent(static_cast<EventId>(e))); })
      .add("launch", Unit::count, "of what ran on the GPU: id of the call that launched it",
           [](const Rows& r, int64_t e, QueryCell& c) { put_event(c, r.trace->launch_of(static_cast<EventId>(e))); })
      .add("step", Unit::count, "number of the ProfilerStep in which it, or its launch, began; NULL outside of all",
           [](const Rows& r, int64_t e, QueryCell& c) {
             if (const auto* s = r.step(e)) c.put(s->number);
           })
      .add("unfinished", Unit::count, "1 where it was begun and never ended",
           [](const Rows& r, int64_t e, QueryCell& c) {
             c.put(int64_t{(r.trace->columns().flags[static_cast<size_t>(e)] & traces::kUnfinished) != 0});
           })
      .add(
          "args", Unit::text,
          "its arguments as a JSON object, read from the file: json_extract(args, '$.\"External id\"'). Slow over many "
          "events",
          [](const Rows& r, int64_t e, QueryCell& c) { c.put(r.arguments(e)); });
}

const bool registered_trace_events = register_query_table(
    QueryKind::trace,
    {"events",
     10,
     "every op, kernel, call and annotation",
     trace_event_columns(),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<TraceEvents>(s.trace); },
     {{"Kernels by time",
       "SELECT name, count(*) AS calls, sum(dur), avg(dur), max(dur)\nFROM events WHERE kind = 'kernel'\nGROUP BY name "
       "ORDER BY sum(dur) DESC LIMIT 20"},
      {"Ops by time",
       "SELECT name, count(*) AS calls, sum(dur), median(dur), percentile(dur, 99)\nFROM events WHERE kind = 'cpu "
       "op'\nGROUP BY name ORDER BY sum(dur) DESC LIMIT 20"},
      {"The longest events", "SELECT id, name, category, thread, start, dur\nFROM events ORDER BY dur DESC LIMIT 50"},
      {"Kernels that waited longest",
       "SELECT k.id, k.name, k.start - l.\"end\" AS dur, l.id AS launched_by\nFROM events k JOIN events l ON l.id = "
       "k.launch\nWHERE k.kind = 'kernel' ORDER BY dur DESC LIMIT 50"}}});

}  // namespace
}  // namespace tenon::projects
