#include "tracing/memory_snapshot.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <unordered_map>

#include "core/error.h"
#include "core/profile.h"
#include "engine/formats/pickle.h"
#include "engine/nn/module.h"
#include "engine/optim/optimizer.h"
#include "engine/train/session.h"
#include "tracing/memory_history.h"

namespace tenon::tracing {

using formats::PickleWriter;
using formats::PyRef;
using formats::PyValue;

namespace {

void frames(PickleWriter& w, const AllocEvent& e) {
  w.text("frames");
  w.begin_list();
  auto frame = [&](const std::string& name, const std::string& file, int64_t line) {
    w.begin_dict();
    w.text("name");
    w.text(name);
    w.text("filename");
    w.text(file);
    w.text("line");
    w.integer(line);
    w.end_dict();
  };
  std::string module = module_path(e.origin.module).empty() ? "model" : module_path(e.origin.module);
  if (e.op) frame(interned_name(e.op), module, e.origin.seq);
  frame(fmt::format("{} ({})", name(e.origin.phase), name(e.origin.category)), module, 0);
  w.end_list();
}

void entry(PickleWriter& w, const char* action, const AllocEvent& e) {
  w.begin_dict();
  w.text("action");
  w.text(action);
  w.text("addr");
  w.integer(static_cast<int64_t>(e.address));
  w.text("size");
  w.integer(std::abs(e.bytes));
  w.text("stream");
  w.integer(0);
  w.text("time_us");
  w.integer(e.time_ns / 1000);
  frames(w, e);
  w.end_dict();
}

}  // namespace

MemoryRecording record_memory(TrainingSession& session, int64_t count) {
  MemoryRecording r;
  MemoryHistory memory(session.group());
  for (const auto& p : session.model().parameters()) memory.alive_before(p.tensor, Category::parameter, 0);
  for (const auto& b : session.model().buffers()) memory.alive_before(b.tensor, Category::buffer, 0);
  for (const auto& s : session.optimizer().state()) memory.alive_before(s.tensor, Category::optimizer, 0);
  int64_t start = now_ns();
  for (int64_t i = 0; i < count && !session.finished(); ++i) {
    int64_t begin = now_ns() - start;
    StepResult s = session.step();
    r.steps.push_back({s.step, begin, now_ns() - start});
  }
  r.events = memory.events(start);
  return r;
}

std::string snapshot_pickle(const MemoryRecording& r) {
  PickleWriter w;
  w.begin_dict();
  // The pool has no segments below its blocks: each block that is alive at the end is a segment of its own.
  w.text("segments");
  w.begin_list();
  std::vector<size_t> live = r.events.empty() ? std::vector<size_t>() : live_at(r.events, r.events.size() - 1);
  for (size_t i : live) {
    const AllocEvent& e = r.events[i];
    w.begin_dict();
    auto put = [&](const char* key, int64_t v) {
      w.text(key);
      w.integer(v);
    };
    put("device", 0);
    put("address", static_cast<int64_t>(e.address));
    for (const char* key : {"total_size", "allocated_size", "active_size", "requested_size"}) put(key, e.bytes);
    put("stream", 0);
    w.text("segment_type");
    w.text(e.bytes > (1 << 20) ? "large" : "small");
    w.text("is_expandable");
    w.boolean(false);
    frames(w, e);
    w.text("blocks");
    w.begin_list();
    w.begin_dict();
    put("address", static_cast<int64_t>(e.address));
    put("size", e.bytes);
    put("requested_size", e.bytes);
    w.text("state");
    w.text("active_allocated");
    frames(w, e);
    w.end_dict();
    w.end_list();
    w.end_dict();
  }
  w.end_list();
  w.text("device_traces");
  w.begin_list();
  w.begin_list();
  for (const AllocEvent& e : r.events) {
    if (e.bytes >= 0) {
      entry(w, "alloc", e);
    } else {
      entry(w, "free_requested", e);
      entry(w, "free_completed", e);
    }
  }
  w.end_list();
  w.end_list();
  w.text("allocator_settings");
  w.begin_dict();
  w.text("PYTORCH_CUDA_ALLOC_CONF");
  w.text("");
  w.text("expandable_segments");
  w.boolean(false);
  w.end_dict();
  w.text("external_annotations");
  w.begin_list();
  for (const auto& s : r.steps)
    for (bool end : {false, true}) {
      w.begin_dict();
      w.text("stage");
      w.text(end ? "END" : "START");
      w.text("name");
      w.text(fmt::format("step {}", s.step));
      w.text("device");
      w.integer(0);
      w.text("time_us");
      w.integer((end ? s.end_ns : s.start_ns) / 1000);
      w.end_dict();
    }
  w.end_list();
  w.end_dict();
  return w.finish();
}

namespace {

std::string innermost(const PyValue& entry) {
  const auto* list = entry.list("frames");
  if (!list || list->empty()) return "(no stack)";
  const PyValue& f = *list->front();
  return fmt::format("{} {}:{}", f.text("name", "?"), f.text("filename", "?"), f.integer("line"));
}

void add_segment(SnapshotInfo& info, const PyValue& segment) {
  ++info.segments;
  info.reserved_bytes += segment.integer("total_size");
  if (const auto* blocks = segment.list("blocks"))
    for (const PyRef b : *blocks)
      if (b->text("state").rfind("active", 0) == 0) {
        ++info.active_blocks;
        info.active_bytes += b->integer("size");
      }
}

struct Live {
  int64_t bytes = 0;
  std::string frame;
};

// Walks one device's trace. A block freed without an alloc was alive before the trace began, and so counts from the start.
void add_trace(SnapshotInfo& info, const PyValue::List& trace) {
  std::unordered_map<int64_t, Live> live;
  int64_t before = 0, now = 0, top = 0;
  size_t top_event = 0;
  std::unordered_map<int64_t, int64_t> seen;
  auto freed = [](const std::string& a) { return a == "free" || a == "free_completed"; };
  for (const PyRef e : trace) {
    std::string action = e->text("action");
    int64_t addr = e->integer("addr");
    if (action == "alloc") seen[addr] = 1;
    else if (freed(action) && !seen[addr]) before += e->integer("size");
    else if (freed(action)) seen[addr] = 0;
  }
  now = top = before;
  for (size_t i = 0; i < trace.size(); ++i) {
    const PyValue& e = *trace[i];
    std::string action = e.text("action");
    ++info.events;
    if (action == "alloc") {
      ++info.allocs;
      now += e.integer("size");
      live[e.integer("addr")].bytes = e.integer("size");
    } else if (freed(action)) {
      ++info.frees;
      now -= e.integer("size");
      live.erase(e.integer("addr"));
    } else if (action == "oom") {
      ++info.out_of_memory;
    }
    if (now > top) {
      top = now;
      top_event = i;
    }
  }
  if (top <= info.peak_bytes) return;
  info.peak_bytes = top;
  info.peak_event = static_cast<int64_t>(top_event);
  live.clear();
  for (size_t i = 0; i <= top_event && i < trace.size(); ++i) {
    const PyValue& e = *trace[i];
    std::string action = e.text("action");
    if (action == "alloc") live[e.integer("addr")] = {e.integer("size"), innermost(e)};
    else if (freed(action)) live.erase(e.integer("addr"));
  }
  std::map<std::string, SnapshotInfo::Site> sites;
  for (const auto& [addr, l] : live) {
    auto& s = sites[l.frame];
    s.frame = l.frame;
    s.bytes += l.bytes;
    ++s.blocks;
  }
  int64_t known = 0;
  info.at_peak.clear();
  for (auto& [frame, s] : sites) {
    known += s.bytes;
    info.at_peak.push_back(s);
  }
  if (top > known) info.at_peak.push_back({"(taken before the trace began)", top - known, 0});
  std::stable_sort(info.at_peak.begin(), info.at_peak.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
}

}  // namespace

SnapshotInfo snapshot_info(std::string_view pickle) {
  const formats::Pickle root = formats::read_pickle(pickle);
  SnapshotInfo info;
  const PyValue::List* segments = root->as<PyValue::List>();  // before 2.0 the whole was the list
  if (!segments) segments = root->list("segments");
  const PyValue::List* traces = root->list("device_traces");
  if (!segments && !traces) throw Error("not a memory snapshot: neither segments nor device_traces are in it");
  if (segments)
    for (const PyRef s : *segments) add_segment(info, *s);
  if (traces)
    for (const PyRef t : *traces) {
      ++info.devices;
      if (const auto* list = std::get_if<PyValue::List>(&t->value)) add_trace(info, *list);
    }
  return info;
}

}  // namespace tenon::tracing
