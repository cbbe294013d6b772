#include "tracing/record/memory_snapshot.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/error.h"
#include "core/profile.h"
#include "engine/formats/torch/pickle.h"
#include "engine/nn/module.h"
#include "engine/optim/optimizer.h"
#include "engine/train/session.h"
#include "tracing/record/memory_history.h"

namespace tenon::tracing {

using formats::PickleWriter;

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

}  // namespace tenon::tracing
