#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.h"
#include "tracing/snapshot/allocator_model.h"

namespace tenon::snapshot {

AllocatorSettings AllocatorSettings::parse(const std::string& text) {
  AllocatorSettings s;
  auto fail = [&](const std::string& part) {
    throw Error::usage(fmt::format("\"{}\" is no allocator setting", part),
                       "known are expandable_segments:True, max_split_size_mb:N, roundup_power2_divisions:N or [1:4,256:8], garbage_collection_threshold:0.8, and ideal");
  };
  size_t at = 0;
  while (at < text.size()) {
    // A list in brackets holds commas of its own.
    size_t end = at;
    int depth = 0;
    while (end < text.size() && (text[end] != ',' || depth)) {
      depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
      ++end;
    }
    std::string part = text.substr(at, end - at);
    std::erase(part, ' ');
    at = end + 1;
    if (part.empty()) continue;
    size_t colon = part.find(':');
    std::string key = part.substr(0, colon), value = colon == std::string::npos ? "" : part.substr(colon + 1);
    char* rest = nullptr;
    if (key == "expandable_segments") {
      if (value != "True" && value != "False") fail(part);
      s.expandable_segments = value == "True";
    } else if (key == "max_split_size_mb") {
      s.max_split_size = std::strtoll(value.c_str(), &rest, 10) << 20;
      if (value.empty() || *rest || s.max_split_size < int64_t{20} << 20) fail(part + " (at least 20)");
    } else if (key == "garbage_collection_threshold") {
      s.garbage_collection_threshold = std::strtod(value.c_str(), &rest);
      if (value.empty() || *rest || !(s.garbage_collection_threshold > 0 && s.garbage_collection_threshold < 1)) fail(part + " (between 0 and 1)");
    } else if (key == "roundup_power2_divisions") {
      if (!value.empty() && value[0] == '[') {
        for (size_t i = 1; i < value.size();) {
          char* p;
          int64_t from = value[i] == '>' ? 0 : std::strtoll(value.c_str() + i, &p, 10);
          if (value[i] == '>') p = const_cast<char*>(value.c_str() + i + 1);
          if (*p != ':') fail(part);
          int64_t divisions = std::strtoll(p + 1, &p, 10);
          if (divisions < 0 || (divisions & (divisions - 1))) fail(part + " (a power of 2)");
          // Of all that is as large as the last one named, or larger.
          if (value[i] == '>') s.roundup_by_megabyte[s.roundup_by_megabyte.empty() ? 0 : s.roundup_by_megabyte.rbegin()->first] = divisions;
          else s.roundup_by_megabyte[from] = divisions;
          i = static_cast<size_t>(p - value.c_str()) + 1;
        }
      } else {
        s.roundup_power2_divisions = std::strtoll(value.c_str(), &rest, 10);
        if (value.empty() || *rest || s.roundup_power2_divisions < 1 || (s.roundup_power2_divisions & (s.roundup_power2_divisions - 1))) fail(part + " (a power of 2)");
      }
    } else if (key == "ideal") {
      s.ideal = true;
    } else if (key != "backend" && key != "pinned_use_cuda_host_register" && key != "pinned_num_register_threads" && key != "release_lock_on_cudamalloc") {
      fail(part);
    }
  }
  return s;
}

AllocatorSettings AllocatorSettings::of(const Snapshot& snapshot) {
  AllocatorSettings s;
  for (const auto& [key, value] : snapshot.settings) {
    if (key == "PYTORCH_CUDA_ALLOC_CONF" && !value.empty() && value != "None") {
      try {
        s = parse(value);
      } catch (const Error&) {  // a setting of a newer version: the others below still tell most
      }
    }
    if (key == "expandable_segments") s.expandable_segments = value == "true";
    if (key == "max_split_size" && std::atoll(value.c_str()) > 0) s.max_split_size = std::atoll(value.c_str());
    if (key == "garbage_collection_threshold") s.garbage_collection_threshold = std::atof(value.c_str());
  }
  return s;
}

std::string AllocatorSettings::text() const {
  if (ideal) return "ideal";
  std::string t;
  auto add = [&](const std::string& part) { t += (t.empty() ? "" : ",") + part; };
  if (expandable_segments) add("expandable_segments:True");
  if (max_split_size >= 0) add(fmt::format("max_split_size_mb:{}", max_split_size >> 20));
  if (roundup_power2_divisions) add(fmt::format("roundup_power2_divisions:{}", roundup_power2_divisions));
  if (!roundup_by_megabyte.empty()) {
    std::string list;
    for (auto [from, d] : roundup_by_megabyte) list += fmt::format("{}{}:{}", list.empty() ? "" : ",", from, d);
    add("roundup_power2_divisions:[" + list + "]");
  }
  if (garbage_collection_threshold > 0) add(fmt::format("garbage_collection_threshold:{}", garbage_collection_threshold));
  return t.empty() ? "default" : t;
}

Replay replay(const Snapshot& s, size_t which, const AllocatorSettings& settings, int64_t limit) {
  Replay r;
  AllocatorModel model(settings, limit);
  Timeline timeline(s, which);
  const DeviceTrace& trace = s.traces.at(which);
  const Events& e = s.events;
  std::unordered_map<uint64_t, uint64_t> place;  // the file's address to the model's
  int64_t allocated = 0;
  auto stream = [&](uint32_t id) { return id < s.streams.size() ? s.streams[id] : 0; };
  auto take = [&](uint64_t address, int64_t size, uint32_t on, size_t at) {
    uint64_t got = model.alloc(size, stream(on));
    if (got == AllocatorModel::kFailed) {
      r.failed = true;
      r.failed_at = at;
      r.failed_size = size;
      r.free_at_failure = model.free_bytes();
      r.largest_free_at_failure = model.largest_free();
      return false;
    }
    place[address] = got;
    allocated = model.allocated();
    r.peak_allocated = std::max(r.peak_allocated, allocated);
    return true;
  };
  bool going = true;
  for (uint32_t id = 0; id < timeline.elements() && going; ++id)
    if (const Element x = timeline.element(id); x.before) going = take(x.address, x.bytes, x.stream, 0);
  for (size_t i = trace.begin; i < trace.end && going; ++i) {
    switch (e.action[i]) {
      case Action::alloc: going = take(e.address[i], e.size[i], e.stream[i], i - trace.begin); break;
      case Action::free:
      case Action::free_completed: {
        auto it = place.find(e.address[i]);
        if (it == place.end()) break;
        model.free(it->second);
        place.erase(it);
        break;
      }
      case Action::oom: {
        // What failed was recorded as no allocation. With a limit it is tried; the program went on without it, so it is given back.
        if (limit == 0) break;
        uint64_t got = model.alloc(e.size[i], stream(e.stream[i]));
        if (got == AllocatorModel::kFailed) {
          r.failed = true;
          r.failed_at = i - trace.begin;
          r.failed_size = e.size[i];
          r.free_at_failure = model.free_bytes();
          r.largest_free_at_failure = model.largest_free();
          going = false;
        } else {
          model.free(got);
        }
        break;
      }
      default: break;
    }
  }
  r.peak_reserved = model.peak_reserved();
  r.segment_events = model.segment_events();
  return r;
}

}  // namespace tenon::snapshot
