#include "tracing/snapshot/stacked_usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <unordered_map>

#include "core/error.h"
#include "core/parallel.h"

namespace tenon::snapshot {
namespace {

constexpr size_t kMostBands = 64;

/// Classes as the allocator treats them: small requests share segments of 2 MiB, middle ones of 20 MiB, large ones have
/// segments of their own.
constexpr struct {
  int64_t below;
  const char* name;
} kSizes[] = {{int64_t{4} << 10, "below 4 KiB"},
              {int64_t{64} << 10, "4 to 64 KiB"},
              {(int64_t{1} << 20) + 1, "64 KiB to 1 MiB"},
              {int64_t{10} << 20, "1 to 10 MiB"},
              {int64_t{100} << 20, "10 to 100 MiB"},
              {int64_t{1} << 30, "100 MiB to 1 GiB"},
              {INT64_MAX, "1 GiB and more"}};

uint32_t size_class(int64_t bytes) {
  uint32_t c = 0;
  while (c + 1 < std::size(kSizes) && bytes >= kSizes[c].below) ++c;
  return c;
}

/// Numbers for values as they come.
template <class Key>
class Numbering {
 public:
  template <class Name>
  uint32_t of(const Key& key, std::vector<std::string>& names, const Name& name) {
    auto [at, fresh] = numbers_.emplace(key, static_cast<uint32_t>(names.size()));
    if (fresh) names.push_back(name());
    return at->second;
  }

 private:
  std::unordered_map<Key, uint32_t> numbers_;
};

}  // namespace

const char* name(UsageBy by) {
  constexpr const char* kNames[kUsageBys] = {"place", "size", "stream", "category"};
  return kNames[static_cast<int>(by)];
}

UsageGroups usage_groups(const Snapshot& s, const Timeline& t, UsageBy by) {
  UsageGroups g;
  g.of_element.resize(t.elements());
  Numbering<std::string> places;
  Numbering<uint32_t> numbers;
  std::vector<uint32_t> of_stack(s.stacks() + 1, kNone);  // many stacks lead to one place; the last: none recorded
  if (by == UsageBy::size)
    for (const auto& c : kSizes) g.names.emplace_back(c.name);
  for (uint32_t id = 0; id < g.of_element.size(); ++id) {
    uint32_t& group = g.of_element[id];
    if (by == UsageBy::size) {
      group = size_class(t.bytes_of(id));
      continue;
    }
    if (by == UsageBy::place) {
      const uint32_t stack = t.stack_of(id);
      uint32_t& known = of_stack[std::min<size_t>(stack, s.stacks())];
      if (known == kNone) {
        const std::string site = s.site(stack);
        known = places.of(site, g.names, [&] { return site; });
      }
      group = known;
      continue;
    }
    const Element e = t.element(id);
    if (by == UsageBy::stream) {
      group = numbers.of(e.stream, g.names, [&] {
        return fmt::format("stream {}", e.stream < s.streams.size() ? s.streams[e.stream] : 0);
      });
    } else {
      group = numbers.of(e.category, g.names,
                         [&] { return e.category == kNone ? "no category" : std::string(s.text(e.category)); });
    }
  }
  return g;
}

StackedUsage::StackedUsage(const Snapshot& snapshot, const Timeline& timeline, const Options& options)
    : timeline_(&timeline) {
  {
    const UsageGroups groups = usage_groups(snapshot, timeline, options.by);
    choose(options, groups.of_element, groups.names);
  }
  add_up(options);
}

/// A group has a band for what it holds at the peak, or at any of some moments between: what is large only while the
/// rest is small is seen, too.
void StackedUsage::choose(const Options& options, const std::vector<uint32_t>& of_element,
                          const std::vector<std::string>& names) {
  constexpr size_t kMoments = 24;
  std::vector<int64_t> at_peak(names.size()), most(names.size()), now(names.size());
  const size_t events = timeline_->events();
  for (size_t m = 0; m <= kMoments && events > 0; ++m) {
    const size_t at = m == 0 ? timeline_->peak() : events * m / kMoments - 1;
    if (m > 0 && events * m / kMoments == 0) continue;
    std::fill(now.begin(), now.end(), 0);
    for (const uint32_t id : timeline_->live(at)) now[of_element[id]] += timeline_->bytes_of(id);
    for (size_t g = 0; g < now.size(); ++g) most[g] = std::max(most[g], now[g]);
    if (m == 0) at_peak = now;
  }
  std::vector<uint32_t> order(names.size());
  std::iota(order.begin(), order.end(), 0u);
  auto before = [&](const std::vector<int64_t>& bytes) {
    return [&](uint32_t a, uint32_t b) { return bytes[a] != bytes[b] ? bytes[a] > bytes[b] : names[a] < names[b]; };
  };
  std::sort(order.begin(), order.end(), before(most));
  const auto pinned = std::find(names.begin(), names.end(), options.pinned) - names.begin();
  const bool pins = pinned < static_cast<ptrdiff_t>(names.size());
  std::erase_if(order, [&](uint32_t g) { return most[g] == 0 || (pins && g == static_cast<uint32_t>(pinned)); });
  order.resize(std::min({order.size(), options.bands, kMostBands}));
  std::sort(order.begin(), order.end(), before(at_peak));
  if (pins) order.insert(order.begin(), static_cast<uint32_t>(pinned));

  std::vector<uint8_t> band(names.size(), static_cast<uint8_t>(order.size()));
  for (size_t i = 0; i < order.size(); ++i) {
    band[order[i]] = static_cast<uint8_t>(i);
    bands_.push_back({names[order[i]], at_peak[order[i]], false});
  }
  if (order.size() < names.size()) {
    int64_t rest = 0;
    for (size_t g = 0; g < names.size(); ++g)
      if (band[g] == order.size()) rest += at_peak[g];
    bands_.push_back({"everything else", rest, true});
  }
  of_element_.resize(of_element.size());
  for (size_t i = 0; i < of_element.size(); ++i) of_element_[i] = band[of_element[i]];
}

int64_t StackedUsage::apply(size_t event, std::vector<int64_t>& now) const {
  int64_t more = 0;
  for (const Timeline::Change& c : timeline_->changes(event))
    if (c.element != kNone) {
      now[of_element_[c.element]] += c.bytes;
      more += c.bytes;
    }
  return more;
}

/// Pieces of the events are added up side by side, each from what is alive before it.
void StackedUsage::add_up(const Options& options) {
  const size_t events = timeline_->events(), blocks = (events + kEventsOfBlock - 1) / kEventsOfBlock;
  before_.resize(blocks * bands_.size());
  at_top_.resize(blocks * bands_.size());
  tops_.resize(blocks);
  constexpr size_t kPiece = 1 << 18;
  static_assert(kPiece % kEventsOfBlock == 0);
  std::mutex reporting;
  uint64_t done = 0;
  parallel_for(static_cast<int64_t>(events), kPiece, [&](int64_t begin, int64_t end) {
    add_up_piece(static_cast<size_t>(begin), static_cast<size_t>(end));
    const std::lock_guard lock(reporting);
    done += static_cast<uint64_t>(end - begin);
    if (options.progress && !options.progress(done, events)) throw Error("cancelled");
  });
}

void StackedUsage::add_up_piece(size_t from, size_t to) {
  const size_t n = bands_.size();
  std::vector<int64_t> now(n);
  const auto add = [&](uint32_t id) { now[of_element_[id]] += timeline_->bytes_of(id); };
  if (from == 0)
    std::for_each(timeline_->before().begin(), timeline_->before().end(), add);
  else
    for (const uint32_t id : timeline_->live(from - 1)) add(id);
  int64_t total = std::accumulate(now.begin(), now.end(), int64_t{0});
  for (size_t begin = from; begin < to; begin += kEventsOfBlock) {
    const size_t block = begin / kEventsOfBlock, row = block * n;
    std::copy(now.begin(), now.end(), before_.begin() + static_cast<ptrdiff_t>(row));
    Top& highest = tops_[block] = {begin, INT64_MIN};
    for (size_t i = begin; i < std::min(begin + kEventsOfBlock, to); ++i) {
      total += apply(i, now);
      if (total <= highest.total) continue;
      highest = {i, total};
      std::copy(now.begin(), now.end(), at_top_.begin() + static_cast<ptrdiff_t>(row));
    }
  }
}

std::vector<int64_t> StackedUsage::bytes(size_t at) const {
  const size_t block = at / kEventsOfBlock, n = bands_.size();
  if (block >= tops_.size()) return std::vector<int64_t>(n);
  std::vector<int64_t> now(before_.begin() + static_cast<ptrdiff_t>(block * n),
                           before_.begin() + static_cast<ptrdiff_t>((block + 1) * n));
  for (size_t i = block * kEventsOfBlock; i <= std::min(at, timeline_->events() - 1); ++i) apply(i, now);
  return now;
}

StackedUsage::Column StackedUsage::highest(size_t from, size_t to, Walk* walk) const {
  const size_t n = bands_.size();
  Column c{from, to, from, INT64_MIN, {}};
  auto look = [&](size_t event, int64_t total, auto begin) {
    if (total <= c.total) return;
    c.event = event;
    c.total = total;
    c.bands.assign(begin, begin + static_cast<ptrdiff_t>(n));
  };
  std::vector<int64_t> now;
  if (walk && walk->next == from) now.swap(walk->now);
  for (size_t i = from; i < to;) {
    if (i % kEventsOfBlock == 0 && std::min(i + kEventsOfBlock, timeline_->events()) <= to) {
      const size_t block = i / kEventsOfBlock;
      look(tops_[block].event, tops_[block].total, at_top_.begin() + static_cast<ptrdiff_t>(block * n));
      now.clear();
      i += kEventsOfBlock;
      continue;
    }
    if (now.empty())
      now = bytes(i);
    else
      apply(i, now);
    look(i, std::accumulate(now.begin(), now.end(), int64_t{0}), now.begin());
    ++i;
  }
  if (walk) *walk = {to, std::move(now)};
  return c;
}

}  // namespace tenon::snapshot
