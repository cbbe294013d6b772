// What a trace holds beside its events.
#include "projects/query/query_table.h"
#include "tracing/analyses/trace_analysis.h"

namespace tenon::projects {
namespace {

using traces::Trace;
using tracing::Unit;
using Found = QueryColumn::Found;
using Leads = QueryColumn::Leads;

/// Rows of which the trace has a list.
struct TraceParts : QueryRows {
  TraceParts(std::shared_ptr<const Trace> of, size_t rows) : trace(std::move(of)), rows_(static_cast<int64_t>(rows)) {}
  int64_t end() const override { return rows_; }
  std::shared_ptr<const Trace> trace;

 private:
  int64_t rows_;
};
using Parts = TraceParts;
template <class List>
const auto& part_at(const List& list, int64_t row) {
  return list[static_cast<size_t>(row)];
}

const bool registered_trace_threads = register_query_table(
    QueryKind::trace,
    {"threads",
     20,
     "threads of the CPU and streams of the GPU",
     QueryColumns<Parts>()
         .add(
             "id", Unit::count, "thread_id of events", [](const Parts&, int64_t i, QueryCell& c) { c.put(i); },
             Found::unique)
         .add("thread", Unit::text, "process and thread or stream, as events have it",
              [](const Parts& p, int64_t i, QueryCell& c) { c.put(part_at(p.trace->rows(), i).label()); })
         .add("pid", Unit::text, "as the file writes it",
              [](const Parts& p, int64_t i, QueryCell& c) { c.put_standing(part_at(p.trace->rows(), i).pid); })
         .add("tid", Unit::text, "as the file writes it",
              [](const Parts& p, int64_t i, QueryCell& c) { c.put_standing(part_at(p.trace->rows(), i).tid); })
         .add("gpu", Unit::count, "1: a stream of the GPU",
              [](const Parts& p, int64_t i, QueryCell& c) { c.put(int64_t{part_at(p.trace->rows(), i).gpu}); })
         .add("lanes", Unit::count, "how many events lie in one another, or run side by side, at most",
              [](const Parts& p, int64_t i, QueryCell& c) { c.put(int64_t{part_at(p.trace->rows(), i).lanes}); })
         .add("events", Unit::count, "how many it has",
              [](const Parts& p, int64_t i, QueryCell& c) {
                c.put(static_cast<int64_t>(part_at(p.trace->rows(), i).events));
              }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
       return std::make_unique<TraceParts>(s.trace, s.trace->rows().size());
     },
     {{"How busy threads are",
       "SELECT thread, count(*) AS events, sum(dur)\nFROM events WHERE depth = 0\nGROUP BY thread ORDER BY sum(dur) "
       "DESC"}}});

using StepList = QueryList<tracing::TraceStep>;
/// With the trace's begin, from which the steps' times are told.
struct TraceSteps final : StepList {
  TraceSteps(std::vector<tracing::TraceStep> steps, int64_t from) : StepList(std::move(steps)), begin(from) {}
  int64_t begin;
};

const bool registered_trace_steps = register_query_table(
    QueryKind::trace,
    {"steps",
     30,
     "the ProfilerSteps; none where the trace has no such annotations",
     QueryColumns<TraceSteps>()
         .add("step", Unit::count, "its number",
              [](const TraceSteps& s, int64_t i, QueryCell& c) { c.put(s[i].number); })
         .add(
             "start", Unit::time, "nanoseconds after the trace's first event",
             [](const TraceSteps& s, int64_t i, QueryCell& c) { c.put(s[i].start - s.begin); }, Found::sorted)
         .add("dur", Unit::nanoseconds, "in nanoseconds",
              [](const TraceSteps& s, int64_t i, QueryCell& c) { c.put(s[i].end - s[i].start); })
         .add("end", Unit::time, "start + dur",
              [](const TraceSteps& s, int64_t i, QueryCell& c) { c.put(s[i].end - s.begin); })
         .add("thread_id", Unit::count, "id in threads of the annotation's",
              [](const TraceSteps& s, int64_t i, QueryCell& c) { c.put(int64_t{s[i].row}); }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
       auto steps = tracing::trace_steps(*s.trace);
       if (!steps.empty() && steps.front().number < 0) steps.clear();
       return std::make_unique<TraceSteps>(std::move(steps), s.trace->begin());
     },
     {{"Kernels of each step",
       "SELECT step, count(*) AS kernels, sum(dur)\nFROM events WHERE kind = 'kernel' AND step IS NOT NULL\nGROUP BY "
       "step"}}});

struct TraceLinks final : Parts {
  explicit TraceLinks(std::shared_ptr<const Trace> t) : Parts(t, t->launches().size() + t->forward_backward().size()) {}
  bool is_launch(int64_t i) const { return i < static_cast<int64_t>(trace->launches().size()); }
  const traces::Link& link(int64_t i) const {
    return is_launch(i) ? part_at(trace->launches(), i)
                        : part_at(trace->forward_backward(), i - static_cast<int64_t>(trace->launches().size()));
  }
};

const bool registered_trace_links = register_query_table(
    QueryKind::trace,
    {"links",
     40,
     "events that belong together: a call and what it launched on the GPU, an op forward and one of its backward pass",
     QueryColumns<TraceLinks>()
         .add("kind", Unit::text, "launch, or backward",
              [](const TraceLinks& l, int64_t i, QueryCell& c) {
                c.put_standing(l.is_launch(i) ? "launch" : "backward");
              })
         .add("source", Unit::count, "id of the call, or of the op forward",
              [](const TraceLinks& l, int64_t i, QueryCell& c) { c.put(int64_t{l.link(i).from}); })
         .add("target", Unit::count, "id of what ran on the GPU, or of the op of the backward pass",
              [](const TraceLinks& l, int64_t i, QueryCell& c) { c.put(int64_t{l.link(i).to}); }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<TraceLinks>(s.trace); },
     {{"Longest backward of ops",
       "SELECT f.id AS event, f.name, f.dur, sum(b.dur) AS backward_ns\nFROM links l JOIN events f ON f.id = l.source "
       "JOIN events b ON b.id = l.target\nWHERE l.kind = 'backward' GROUP BY f.id ORDER BY backward_ns DESC LIMIT "
       "50"}}});

/// One value of one counter.
struct TraceCounters final : Parts {
  explicit TraceCounters(std::shared_ptr<const Trace> t) : Parts(t, 0) {
    for (const traces::Counter& counter : t->counters())
      for (size_t i = 0; i < counter.time.size(); ++i) values.emplace_back(&counter, i);
  }
  int64_t end() const override { return static_cast<int64_t>(values.size()); }
  std::vector<std::pair<const traces::Counter*, size_t>> values;
};

const bool registered_trace_counters = register_query_table(
    QueryKind::trace,
    {"counters", 50, "values of counters over time",
     QueryColumns<TraceCounters>()
         .add("counter", Unit::text, "its name",
              [](const TraceCounters& t, int64_t i, QueryCell& c) { c.put_standing(part_at(t.values, i).first->name); })
         .add("time", Unit::time, "nanoseconds after the trace's first event",
              [](const TraceCounters& t, int64_t i, QueryCell& c) {
                const auto& [counter, n] = part_at(t.values, i);
                c.put(counter->time[n] - t.trace->begin());
              })
         .add("value", Unit::number, "NULL where it is no number",
              [](const TraceCounters& t, int64_t i, QueryCell& c) {
                const auto& [counter, n] = part_at(t.values, i);
                c.put(counter->value[n]);
              }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> { return std::make_unique<TraceCounters>(s.trace); }});

const bool registered_trace_memory = register_query_table(
    QueryKind::trace,
    {"memory", 60, "allocations and frees that PyTorch's profiler recorded (profile_memory=True)",
     QueryColumns<Parts>()
         .add("time", Unit::time, "nanoseconds after the trace's first event",
              [](const Parts& p, int64_t i, QueryCell& c) {
                c.put(part_at(p.trace->memory(), i).time - p.trace->begin());
              })
         .add("bytes", Unit::bytes, "that were taken; negative: freed",
              [](const Parts& p, int64_t i, QueryCell& c) { c.put(part_at(p.trace->memory(), i).bytes); })
         .add("allocated", Unit::bytes, "in use afterwards; NULL where it is not told",
              [](const Parts& p, int64_t i, QueryCell& c) {
                if (const int64_t n = part_at(p.trace->memory(), i).allocated; n >= 0) c.put(n);
              })
         .add("reserved", Unit::bytes, "held by the allocator afterwards; NULL where it is not told",
              [](const Parts& p, int64_t i, QueryCell& c) {
                if (const int64_t n = part_at(p.trace->memory(), i).reserved; n >= 0) c.put(n);
              })
         .add("address", Unit::count, "printf('%x', address) writes it as debuggers do",
              [](const Parts& p, int64_t i, QueryCell& c) {
                c.put(static_cast<int64_t>(part_at(p.trace->memory(), i).address));
              })
         .add("gpu", Unit::count, "1 on a GPU, 0 on the CPU",
              [](const Parts& p, int64_t i, QueryCell& c) {
                c.put(int64_t{part_at(p.trace->memory(), i).device_type != 0});
              })
         .add("device", Unit::count, "its number",
              [](const Parts& p, int64_t i, QueryCell& c) { c.put(int64_t{part_at(p.trace->memory(), i).device}); }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
       return std::make_unique<TraceParts>(s.trace, s.trace->memory().size());
     }});

const bool registered_trace_metadata = register_query_table(
    QueryKind::trace,
    {"metadata", 70, "what the file says beside its events",
     QueryColumns<Parts>()
         .add("key", Unit::text, "outermost key of the file",
              [](const Parts& p, int64_t i, QueryCell& c) { c.put_standing(part_at(p.trace->metadata(), i).first); })
         .add("value", Unit::text, "as JSON, a few kilobytes at most",
              [](const Parts& p, int64_t i, QueryCell& c) { c.put_standing(part_at(p.trace->metadata(), i).second); }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
       return std::make_unique<TraceParts>(s.trace, s.trace->metadata().size());
     }});

const bool registered_trace_repairs = register_query_table(
    QueryKind::trace,
    {"repairs", 80, "what of the file was mended or passed over when it was read",
     QueryColumns<Parts>()
         .add("kind", Unit::text, "what was wrong",
              [](const Parts& p, int64_t i, QueryCell& c) { c.put_standing(part_at(p.trace->repairs(), i).kind); })
         .add("count", Unit::count, "how often",
              [](const Parts& p, int64_t i, QueryCell& c) {
                c.put(static_cast<int64_t>(part_at(p.trace->repairs(), i).count));
              })
         .add("first_byte", Unit::count, "where in the file's text it was first",
              [](const Parts& p, int64_t i, QueryCell& c) {
                c.put(static_cast<int64_t>(part_at(p.trace->repairs(), i).first_byte));
              }),
     [](const QuerySubject& s) -> std::unique_ptr<QueryRows> {
       return std::make_unique<TraceParts>(s.trace, s.trace->repairs().size());
     }});

}  // namespace
}  // namespace tenon::projects
