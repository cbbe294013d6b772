#include "tracing/snapshot/allocator_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "core/error.h"
#include "core/number.h"

namespace tenon::snapshot {
namespace {

[[noreturn]] void fail(const std::string& part) {
  throw Error::usage(
      fmt::format("\"{}\" is no allocator setting", part),
      "known are expandable_segments:True, max_split_size_mb:N, roundup_power2_divisions:N or [1:4,256:8,>:1], "
      "garbage_collection_threshold:0.8, large_segment_size_mb:N, max_non_split_rounding_mb:N, and ideal");
}

/// A whole number of MiB, at least `least`.
int64_t megabytes(const std::string& part, const std::string& value, int64_t least) {
  char* rest = nullptr;
  const int64_t v = std::strtoll(value.c_str(), &rest, 10);
  if (value.empty() || *rest || v < least || v > (int64_t{1} << 24)) fail(fmt::format("{} (at least {})", part, least));
  return v << 20;
}

// AcceleratorAllocatorConfig::parseRoundUpPower2Divisions(). A list names the intervals that begin at so many MiB: the
// first one named stands for all below it too, ">" for all above the last; those between two that are named are not
// rounded.
void parse_roundup(std::array<int64_t, 16>& divisions, const std::string& part, const std::string& value) {
  auto number = [&](const char* from, char** end) {
    const int64_t v = std::strtoll(from, end, 10);
    if (*end == from || v < 0 || (v & (v - 1))) fail(part + " (a power of 2)");
    return v;
  };
  char* p = nullptr;
  if (value.empty() || value[0] != '[') {
    divisions.fill(number(value.c_str(), &p));
    if (*p || divisions[0] == 0) fail(part + " (a power of 2)");
    return;
  }
  size_t last = 0;
  bool first = true;
  for (const char* at = value.c_str() + 1; *at && *at != ']';) {
    const bool above = *at == '>';
    int64_t boundary = 0;
    if (above)
      p = const_cast<char*>(at + 1);
    else
      boundary = number(at, &p);
    if (*p != ':' || (!above && boundary == 0)) fail(part);
    const int64_t d = number(p + 1, &p);
    if (above) {
      std::fill(divisions.begin() + static_cast<long>(std::min(last + 1, divisions.size())), divisions.end(), d);
    } else {
      const auto index = std::min<size_t>(static_cast<size_t>(std::bit_width(static_cast<uint64_t>(boundary))) - 1,
                                          divisions.size() - 1);
      if (first) std::fill(divisions.begin(), divisions.begin() + static_cast<long>(index), d);
      first = false;
      divisions[index] = d;
      last = index;
    }
    at = *p == ',' ? p + 1 : p;
    if (*p != ',' && *p != ']') fail(part);
  }
}

// What PyTorch knows and the model need not: it changes no decision of the allocator that is modelled.
bool without_effect(const std::string& key) {
  for (const char* known :
       {"backend", "release_lock_on_cudamalloc", "release_lock_on_hipmalloc", "throw_on_cudamalloc_oom",
        "graph_capture_record_stream_reuse", "expandable_segments_handle_type", "expandable_segments_reserve",
        "expandable_segments_reserve_by_class", "per_process_memory_fraction"})
    if (key == known) return true;
  return key.starts_with("pinned_");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> setting_parts(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> parts;
  for (size_t at = 0; at < text.size();) {
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
    const size_t colon = part.find(':');
    parts.emplace_back(part.substr(0, colon), colon == std::string::npos ? "" : part.substr(colon + 1));
  }
  return parts;
}

AllocatorSettings AllocatorSettings::parse(const std::string& text) {
  AllocatorSettings s;
  for (const auto& [key, value] : setting_parts(text)) {
    const std::string part = value.empty() ? key : key + ":" + value;
    if (key == "expandable_segments") {
      if (value != "True" && value != "False") fail(part);
      s.expandable_segments = value == "True";
    } else if (key == "max_split_size_mb") {
      s.max_split_size = megabytes(part, value, 20);
    } else if (key == "max_non_split_rounding_mb") {
      s.max_non_split_rounding = megabytes(part, value, 20);
    } else if (key == "large_segment_size_mb") {
      s.large_segment_size = megabytes(part, value, 2);
    } else if (key == "garbage_collection_threshold") {
      const double share = number_of(value).value_or(0);
      if (!(share > 0 && share < 1)) fail(part + " (between 0 and 1)");
      s.garbage_collection_threshold = share;
    } else if (key == "roundup_power2_divisions") {
      parse_roundup(s.roundup_power2_divisions, part, value);
    } else if (key == "ideal") {
      s.ideal = true;
    } else if (!without_effect(key)) {
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
    if (key == "max_split_size") s.max_split_size = std::atoll(value.c_str()) > 0 ? std::atoll(value.c_str()) : -1;
    if (key == "garbage_collection_threshold") s.garbage_collection_threshold = number_of(value).value_or(0);
    if (key == "roundup_power2_divisions") {
      // "{1: 0, 2: 4, ...}": the interval from so many MiB on, and its divisions.
      for (const char* p = value.c_str(); *p;) {
        char* end = nullptr;
        const int64_t from = std::strtoll(p, &end, 10);
        if (end == p) {
          ++p;
          continue;
        }
        p = end;
        if (*p != ':') continue;
        const int64_t d = std::strtoll(p + 1, &end, 10);
        const auto index = from > 0 ? static_cast<size_t>(std::bit_width(static_cast<uint64_t>(from))) - 1 : 16;
        if (index < s.roundup_power2_divisions.size() && d >= 0 && (d & (d - 1)) == 0)
          s.roundup_power2_divisions[index] = d;
        p = end;
      }
    }
  }
  return s;
}

std::string AllocatorSettings::text() const {
  if (ideal) return "ideal";
  std::string t;
  auto add = [&](const std::string& part) { t += (t.empty() ? "" : ",") + part; };
  if (expandable_segments) add("expandable_segments:True");
  if (max_split_size >= 0) add(fmt::format("max_split_size_mb:{}", max_split_size >> 20));
  if (max_non_split_rounding >= 0) add(fmt::format("max_non_split_rounding_mb:{}", max_non_split_rounding >> 20));
  if (large_segment_size != int64_t{20} << 20) add(fmt::format("large_segment_size_mb:{}", large_segment_size >> 20));
  const auto& d = roundup_power2_divisions;
  if (std::all_of(d.begin(), d.end(), [&](int64_t v) { return v == d[0]; })) {
    if (d[0]) add(fmt::format("roundup_power2_divisions:{}", d[0]));
  } else {
    size_t tail = d.size();
    while (tail > 1 && d[tail - 1] == d.back()) --tail;
    std::string list = fmt::format("1:{}", d[0]);
    for (size_t i = 1; i <= tail && i < d.size(); ++i)
      if (d[i] || i == tail) list += fmt::format(",{}:{}", int64_t{1} << i, d[i]);
    add(fmt::format("roundup_power2_divisions:[{},>:{}]", list, d.back()));
  }
  if (garbage_collection_threshold > 0)
    add(fmt::format("garbage_collection_threshold:{}", garbage_collection_threshold));
  return t.empty() ? "default" : t;
}

// round_size(), AcceleratorAllocatorConfig::roundup_power2_divisions(size) and roundup_power2_next_division().
int64_t AllocatorSettings::rounded(int64_t size) const {
  if (size < kMinBlock) return kMinBlock;
  const auto bits = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(size))) - 1;
  const int64_t divisions =
      roundup_power2_divisions[std::min<size_t>(bits > 20 ? bits - 20 : 0, roundup_power2_divisions.size() - 1)];
  if (divisions > 1 && size > kMinBlock * divisions) {
    const int64_t floor = int64_t{1} << bits;
    if (size == floor) return size;
    const int64_t step = floor / divisions;
    if (step == 0) return floor << 1;
    const int64_t cut = size & ~(step - 1);
    return cut == size ? size : cut + step;
  }
  return (size + kMinBlock - 1) / kMinBlock * kMinBlock;
}

int64_t AllocatorSettings::segment_for(int64_t size) const {
  if (size <= kSmallSize) return kSmallBuffer;
  if (size < kMinLargeAlloc) return large_segment_size;
  return (size + kRoundLarge - 1) / kRoundLarge * kRoundLarge;
}

}  // namespace tenon::snapshot
