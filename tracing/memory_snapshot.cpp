#include "tracing/memory_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/error.h"
#include "engine/formats/gzip.h"
#include "tracing/pickle.h"

namespace tenon::tracing {
namespace {

/// Names the viewer groups by.
const char* torch_category(Category c) {
  switch (c) {
    case Category::parameter: return "PARAMETER";
    case Category::gradient: return "GRADIENT";
    case Category::activation: return "ACTIVATION";
    case Category::optimizer: return "OPTIMIZER_STATE";
    case Category::data: return "INPUT";
    case Category::workspace: return "TEMPORARY";
    case Category::buffer:
    case Category::other: break;
  }
  return "unknown";
}

/// Address ranges that the trace ever used, joined where they touch or overlap: the segments of the snapshot.
std::map<uint64_t, uint64_t> used_ranges(const std::vector<AllocEvent>& events) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const AllocEvent& e : events) ranges.emplace_back(e.address, e.address + static_cast<uint64_t>(std::abs(e.bytes)));
  std::sort(ranges.begin(), ranges.end());
  std::map<uint64_t, uint64_t> joined;
  for (const auto& [from, to] : ranges) {
    if (from == to) continue;
    auto last = joined.empty() ? joined.end() : std::prev(joined.end());
    if (last != joined.end() && from <= last->second)
      last->second = std::max(last->second, to);
    else
      joined.emplace(from, to);
  }
  return joined;
}

class Writer {
 public:
  explicit Writer(const std::vector<OpRecord>& ops) : ops_(ops) {}

  std::string write(const std::vector<AllocEvent>& events) {
    std::map<uint64_t, const AllocEvent*> live;
    for (const AllocEvent& e : events) {
      if (e.bytes > 0) live[e.address] = &e;
      if (e.bytes < 0) live.erase(e.address);
    }
    p_.begin_dict();
    p_.key("segments");
    p_.begin_list();
    for (const auto& [from, to] : used_ranges(events)) segment(from, to, live);
    p_.end_list();
    p_.key("device_traces");
    p_.begin_list();
    p_.begin_list();
    for (const AllocEvent& e : events) {
      if (e.bytes == 0) continue;
      if (e.bytes > 0) {
        entry("alloc", e);
      } else {
        entry("free_requested", e);
        entry("free_completed", e);
      }
    }
    p_.end_list();
    p_.end_list();
    p_.key("allocator_settings");
    p_.begin_dict();
    p_.key("PYTORCH_CUDA_ALLOC_CONF");
    p_.text("");
    p_.key("max_split_size");
    p_.integer(-1);
    p_.key("garbage_collection_threshold");
    p_.real(0);
    p_.key("expandable_segments");
    p_.boolean(false);
    p_.end_dict();
    p_.key("external_annotations");
    p_.begin_list();
    p_.end_list();
    p_.end_dict();
    return p_.finish();
  }

 private:
  void field(const char* key, int64_t n) {
    p_.key(key);
    p_.integer(n);
  }
  void field(const char* key, const std::string& s) {
    p_.key(key);
    p_.text(s);
  }

  /// Frame lists are written once for each op and shared afterwards.
  void frames(const Origin& o) {
    p_.key("frames");
    const uint64_t id = uint64_t{o.seq} << 32 | uint64_t{o.module} << 16 | static_cast<uint64_t>(o.phase);
    if (const auto at = frames_.find(id); at != frames_.end()) return p_.again(at->second);
    const std::string module = module_path(o.module);
    p_.begin_list();
    auto frame = [&](const std::string& what, const std::string& file, int64_t line) {
      p_.begin_dict();
      field("filename", file);
      field("line", line);
      field("name", what);
      p_.end_dict();
    };
    if (o.seq > 0 && o.seq <= ops_.size()) frame(ops_[o.seq - 1].name, module.empty() ? "model" : module, o.seq);
    if (!module.empty()) frame(module, "model", 0);
    frame(name(o.phase), "training step", 0);
    p_.end_list();
    frames_.emplace(id, p_.remember());
  }

  void entry(const char* action, const AllocEvent& e) {
    p_.begin_dict();
    field("action", action);
    p_.key("addr");
    p_.integer(static_cast<int64_t>(e.address));
    field("size", std::abs(e.bytes));
    field("stream", 0);
    field("time_us", e.time_ns / 1000);
    field("compile_context", "N/A");
    field("user_metadata", "");
    field("category", torch_category(e.origin.category));
    frames(e.origin);
    p_.end_dict();
  }

  void block(uint64_t address, int64_t size, const AllocEvent* owner) {
    p_.begin_dict();
    field("address", static_cast<int64_t>(address));
    field("size", size);
    field("requested_size", owner ? size : 0);
    field("state", owner ? "active_allocated" : "inactive");
    if (owner) {
      frames(owner->origin);
    } else {
      p_.key("frames");
      p_.begin_list();
      p_.end_list();
    }
    p_.end_dict();
  }

  void segment(uint64_t from, uint64_t to, const std::map<uint64_t, const AllocEvent*>& live) {
    int64_t active = 0;
    for (auto at = live.lower_bound(from); at != live.end() && at->first < to; ++at) active += at->second->bytes;
    const auto total = static_cast<int64_t>(to - from);
    p_.begin_dict();
    field("device", 0);
    field("address", static_cast<int64_t>(from));
    field("total_size", total);
    field("allocated_size", active);
    field("active_size", active);
    field("requested_size", active);
    field("stream", 0);
    field("segment_type", total < (1 << 20) ? "small" : "large");
    p_.key("segment_pool_id");
    p_.pair(0, 0);
    p_.key("is_expandable");
    p_.boolean(false);
    p_.key("frames");
    p_.begin_list();
    p_.end_list();
    p_.key("blocks");
    p_.begin_list();
    uint64_t position = from;
    for (auto at = live.lower_bound(from); at != live.end() && at->first < to; ++at) {
      if (at->first > position) block(position, static_cast<int64_t>(at->first - position), nullptr);
      block(at->first, at->second->bytes, at->second);
      position = at->first + static_cast<uint64_t>(at->second->bytes);
    }
    if (position < to) block(position, static_cast<int64_t>(to - position), nullptr);
    p_.end_list();
    p_.end_dict();
  }

  const std::vector<OpRecord>& ops_;
  PickleWriter p_;
  std::unordered_map<uint64_t, uint32_t> frames_;
};

SnapshotEvent read_event(const PickleValue& v) {
  SnapshotEvent e;
  e.action = v.text("action");
  e.address = static_cast<uint64_t>(v.integer("addr"));
  e.size = v.integer("size");
  e.time_us = v.integer("time_us");
  e.category = v.text("category");
  const PickleValue* frames = v.find("frames");
  if (const auto* list = frames ? frames->list() : nullptr; list && !list->empty()) {
    const PickleValue& f = list->front();
    e.where = fmt::format("{} ({}{})", f.text("name", "?"), f.text("filename", "?"), f.integer("line") ? fmt::format(":{}", f.integer("line")) : "");
  }
  return e;
}

}  // namespace

std::string memory_snapshot(const std::vector<AllocEvent>& events, const std::vector<OpRecord>& ops) { return Writer(ops).write(events); }

Snapshot read_snapshot(std::string_view bytes, const std::string& name) {
  std::string unpacked;
  if (formats::is_gzip(bytes)) {
    unpacked = formats::gunzip(bytes, name);
    bytes = unpacked;
  }
  const auto file = read_pickle(bytes, name);
  Snapshot s;
  // Older PyTorch pickled the bare list of segments.
  const PickleValue* segments = file->root.list() ? &file->root : file->root.find("segments");
  if (!segments || !segments->list()) throw Error(fmt::format("{} is not a memory snapshot: it has no segments", name));
  for (const PickleValue& v : *segments->list()) {
    SnapshotSegment g;
    g.device = static_cast<int>(v.integer("device"));
    g.address = static_cast<uint64_t>(v.integer("address"));
    g.total = v.integer("total_size");
    g.type = v.text("segment_type");
    uint64_t next = g.address;
    const PickleValue* blocks = v.find("blocks");
    if (blocks && blocks->list())
      for (const PickleValue& b : *blocks->list()) {
        SnapshotBlock block;
        block.size = b.integer("size");
        block.requested = b.integer("requested_size", block.size);
        block.address = static_cast<uint64_t>(b.integer("address", static_cast<int64_t>(next)));
        const std::string state = b.text("state");
        block.active = state == "active_allocated";
        block.pending_free = state == "active_pending_free" || state == "active_awaiting_free";
        next = block.address + static_cast<uint64_t>(block.size);
        g.blocks.push_back(block);
      }
    s.segments.push_back(std::move(g));
  }
  const PickleValue* traces = file->root.find("device_traces");
  if (traces && traces->list())
    for (const PickleValue& device : *traces->list()) {
      s.traces.emplace_back();
      if (device.list())
        for (const PickleValue& e : *device.list()) s.traces.back().push_back(read_event(e));
    }
  return s;
}

SnapshotTimeline timeline(const Snapshot& s, size_t device) {
  SnapshotTimeline t;
  if (device >= s.traces.size()) return t;
  const auto& events = s.traces[device];
  struct Live {
    int64_t size;
    size_t event;
  };
  std::unordered_map<uint64_t, Live> live;
  std::vector<std::pair<size_t, int64_t>> changes;  // event, bytes
  for (size_t i = 0; i < events.size(); ++i) {
    const SnapshotEvent& e = events[i];
    if (e.action == "alloc") {
      live[e.address] = {e.size, i};
      changes.emplace_back(i, e.size);
    } else if (e.action == "free" || e.action == "free_completed") {
      const auto at = live.find(e.address);
      if (at == live.end()) {
        t.before += e.size;  // taken before the recording began
        changes.emplace_back(i, -e.size);
      } else {
        changes.emplace_back(i, -at->second.size);
        live.erase(at);
      }
    }
  }
  for (const auto& segment : s.segments)
    if (segment.device == static_cast<int>(device))
      for (const auto& b : segment.blocks)
        if (b.active && !live.contains(b.address)) t.before += b.requested;
  int64_t now = t.peak = t.before;
  for (const auto& [event, bytes] : changes) {
    now += bytes;
    if (now > t.peak) {
      t.peak = now;
      t.peak_event = event;
    }
  }
  t.at_end = now;
  live.clear();
  for (size_t i = 0; i <= t.peak_event && i < events.size(); ++i) {
    if (events[i].action == "alloc") live[events[i].address] = {events[i].size, i};
    if (events[i].action == "free" || events[i].action == "free_completed") live.erase(events[i].address);
  }
  for (const auto& [address, l] : live) t.live_at_peak.push_back(events[l.event]);
  std::sort(t.live_at_peak.begin(), t.live_at_peak.end(), [](const SnapshotEvent& a, const SnapshotEvent& b) { return a.size != b.size ? a.size > b.size : a.address < b.address; });
  return t;
}

}  // namespace tenon::tracing
