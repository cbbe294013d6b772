#include "tracing/trace/trace_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "tracing/trace/file_key.h"
#include "tracing/trace/scanner.h"
#include "tracing/trace/source_text.h"

namespace tenon::traces {

const char* name(EventKind k) {
  static constexpr const char* names[kKinds] = {"other",    "cpu op",  "annotation", "python",         "runtime",
                                                "kernel",   "memcpy",  "memset",     "gpu annotation", "gpu sync",
                                                "overhead", "instant", "async"};
  return names[static_cast<int>(k)];
}

std::string Row::label() const {
  std::string p = process.empty() ? pid : process, t = thread.empty() ? tid : thread;
  if (gpu && thread.empty()) t = "stream " + tid;
  if (p.empty()) return t.empty() ? "(no thread)" : t;
  return p + " / " + t;
}

std::string_view Trace::text(uint32_t name) const {
  if (name >= name_ends_.size()) return {};
  uint64_t begin = name ? name_ends_[name - 1] : 0;
  return name_bytes_.substr(begin, name_ends_[name] - begin);
}

uint32_t Trace::find_name(std::string_view wanted) const {
  for (uint32_t i = 0; i < name_ends_.size(); ++i)
    if (text(i) == wanted) return i;
  return kNone;
}

uint32_t Trace::lane_of(EventId e) const {
  auto it = std::upper_bound(lanes_.begin(), lanes_.end(), e, [](EventId id, const Lane& l) { return id < l.end; });
  return static_cast<uint32_t>(it - lanes_.begin());
}

std::pair<EventId, EventId> Trace::range(uint32_t lane, int64_t from, int64_t to) const {
  const Lane& l = lanes_[lane];
  auto s = columns_.start.begin();
  // Events of a lane do not overlap: only the last one that starts before `from` may reach into it.
  auto first = static_cast<EventId>(std::lower_bound(s + l.begin, s + l.end, from) - s);
  if (first > l.begin && end(first - 1) > from) --first;
  auto last = static_cast<EventId>(std::lower_bound(s + first, s + l.end, to) - s);
  return {first, last};
}

EventId Trace::at(uint32_t lane, int64_t time) const {
  const Lane& l = lanes_[lane];
  auto s = columns_.start.begin();
  auto after = static_cast<EventId>(std::upper_bound(s + l.begin, s + l.end, time) - s);
  if (after == l.begin) return kNone;
  EventId e = after - 1;
  return end(e) > time || (start(e) == time && duration(e) == 0) ? e : kNone;
}

EventId Trace::parent(EventId e) const {
  uint32_t lane = lane_of(e);
  if (lanes_[lane].depth == 0) return kNone;
  const Lane& outer = lanes_[lane - 1];
  auto s = columns_.start.begin();
  auto after = static_cast<EventId>(std::upper_bound(s + outer.begin, s + outer.end, start(e)) - s);
  return after == outer.begin ? kNone : after - 1;
}

EventId Trace::launch_of(EventId gpu_event) const {
  auto it = std::lower_bound(launches_.begin(), launches_.end(), gpu_event,
                             [](const Link& l, EventId e) { return l.to < e; });
  return it != launches_.end() && it->to == gpu_event ? it->from : kNone;
}

namespace {

constexpr uint32_t kBlock = 64;

void join(Summary& into, const Summary& s, int64_t longest_into, int64_t longest_s) {
  if (into.count == 0) {
    into = s;
    return;
  }
  into.start = std::min(into.start, s.start);
  into.end = std::max(into.end, s.end);
  into.busy += s.busy;
  if (longest_s > longest_into) into.longest = s.longest;
  into.count += s.count;
  into.flags |= s.flags;
}

}  // namespace

void Trace::finish_levels() {
  auto of = [&](EventId e) { return Summary{start(e), end(e), duration(e), e, 1, columns_.flags[e]}; };
  levels_.clear();
  Level first;
  for (const Lane& l : lanes_) {
    first.first.push_back(static_cast<uint32_t>(first.blocks.size()));
    for (EventId b = l.begin; b < l.end; b += kBlock) {
      Summary block;
      for (EventId e = b; e < std::min(l.end, b + kBlock); ++e)
        join(block, of(e), block.count ? duration(block.longest) : -1, duration(e));
      first.blocks.push_back(block);
    }
  }
  first.first.push_back(static_cast<uint32_t>(first.blocks.size()));
  levels_.push_back(std::move(first));
  while (levels_.back().blocks.size() > lanes_.size() * 2 && levels_.size() < 6) {
    const Level& below = levels_.back();
    Level up;
    for (size_t l = 0; l < lanes_.size(); ++l) {
      up.first.push_back(static_cast<uint32_t>(up.blocks.size()));
      for (uint32_t b = below.first[l]; b < below.first[l + 1]; b += kBlock) {
        Summary block;
        for (uint32_t i = b; i < std::min(below.first[l + 1], b + kBlock); ++i)
          join(block, below.blocks[i], block.count ? duration(block.longest) : -1, duration(below.blocks[i].longest));
        up.blocks.push_back(block);
      }
    }
    up.first.push_back(static_cast<uint32_t>(up.blocks.size()));
    levels_.push_back(std::move(up));
  }
}

std::vector<Summary> Trace::summarise(uint32_t lane, int64_t from, int64_t to, size_t buckets) const {
  auto [first, last] = range(lane, from, to);
  std::vector<Summary> out;
  size_t count = last - first;
  auto of = [&](EventId e) { return Summary{start(e), end(e), duration(e), e, 1, columns_.flags[e]}; };
  if (count <= buckets) {
    for (EventId e = first; e < last; ++e) out.push_back(of(e));
    return out;
  }
  // Merge neighbours that fall into one bucket of time, whole blocks at once where they fit into it.
  const int64_t width = std::max<int64_t>(1, (to - from) / static_cast<int64_t>(std::max<size_t>(1, buckets)));
  const EventId base = lanes_[lane].begin;
  int64_t bucket = INT64_MIN;
  auto add = [&](const Summary& s) {
    int64_t b = (s.start - from) / width;
    if (b != bucket || out.empty()) {
      out.push_back(s);
      bucket = b;
    } else {
      join(out.back(), s, duration(out.back().longest), duration(s.longest));
    }
  };
  for (EventId e = first; e < last;) {
    uint32_t step = 1;
    const Summary* whole = nullptr;
    uint32_t span = kBlock;
    for (const Level& level : levels_) {
      if ((e - base) % span || e + span > last) break;
      const Summary& s = level.blocks[level.first[lane] + (e - base) / span];
      if ((s.start - from) / width != (s.end - from) / width) break;
      whole = &s;
      step = span;
      if (span > UINT32_MAX / kBlock) break;
      span *= kBlock;
    }
    add(whole ? *whole : of(e));
    e += step;
  }
  return out;
}

std::string Trace::metadata(std::string_view key) const {
  for (const auto& [k, v] : metadata_)
    if (k == key) return v;
  return {};
}

std::string Trace::event_text(EventId e) const {
  if (made_arguments_) return made_text(e);
  if (text_of_) return text_of_(e);
  std::shared_ptr<const SourceText> source;
  {
    std::lock_guard lock(opening_);
    if (key_ && !unchanged(*key_)) {
      source_ = nullptr;
      return {};
    }
    if (!source_ && key_) source_ = SourceText::open_like(path_, *key_, source_bytes_);
    source = source_;
  }
  if (!source) return {};
  std::string_view text = source->bytes();
  uint64_t at = columns_.source[e];
  if (at >= text.size() || text[at] != '{') return {};
  std::string extent(event_extent(text, at));
  // Events lie all over the file, and the system maps sixteen pages round each: whoever reads many would come to hold
  // the whole of it.
  constexpr uint32_t kBetweenForgets = 1000;
  static std::atomic<uint32_t> reads{0};
  if (++reads % kBetweenForgets == 0) source->forget(0, text.size());
  return extent;
}

std::vector<std::pair<std::string, std::string>> arguments(const Trace& trace, EventId e) {
  return decode_arguments(trace.event_text(e));
}

std::string argument(const Trace& trace, EventId e, std::string_view key) {
  for (auto& [k, v] : arguments(trace, e))
    if (k == key) return v;
  return {};
}

std::shared_ptr<Trace::Shared> Trace::shared_place(const std::type_info& type) const {
  std::lock_guard lock(sharing_);
  std::shared_ptr<Shared>& place = shared_[type];
  if (!place) place = std::make_shared<Shared>();
  return place;
}

}  // namespace tenon::traces
