#include "tracing/snapshot/usage_division.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <numeric>

#include "core/error.h"
#include "core/parallel.h"

namespace tenon::snapshot {
namespace {

using Options = UsageDivision::Options;

constexpr size_t kMostBands = 64;
constexpr size_t kBlockEvents = UsageDivision::kEventsOfBlock;
constexpr size_t kAtOnce = size_t{1} << 18;  ///< elements, or events, that one thread goes through at a time
static_assert(kAtOnce % kBlockEvents == 0 && kBlockEvents % Lives::kStride == 0 && kBlockEvents % Lives::kBlock == 0);

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

std::string name_of_key(UsageBy by, const Snapshot& s, size_t key) {
  switch (by) {
    case UsageBy::place:
      return s.site(key < s.stacks() ? static_cast<uint32_t>(key) : kNone);
    case UsageBy::size:
      return kSizes[key].name;
    case UsageBy::stream:
      return fmt::format("stream {}", key < s.streams.size() ? s.streams[key] : 0);
    case UsageBy::category:
      return key < s.texts.size() ? std::string(s.text(static_cast<uint32_t>(key))) : "no category";
  }
  return {};
}

/// The groups of all elements of a timeline: that of each key that an element has, and their names.
struct UsageGroups {
  std::vector<uint32_t> of_key;
  std::vector<std::string> names;
};

UsageGroups usage_groups(UsageBy by, const Snapshot& s, const Timeline& t) {
  std::vector<uint8_t> used(usage_keys(by, s));
  std::mutex adding;
  parallel_for(static_cast<int64_t>(t.elements()), kAtOnce, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> here(used.size());
    for (auto id = static_cast<uint32_t>(begin); id < static_cast<uint32_t>(end); ++id)
      here[usage_key(by, s, t, id)] = 1;
    const std::lock_guard lock(adding);
    for (size_t key = 0; key < used.size(); ++key) used[key] |= here[key];
  });
  UsageGroups g;
  g.of_key.resize(used.size());
  std::map<std::string, uint32_t> numbers;
  for (size_t key = 0; key < used.size(); ++key) {
    if (!used[key]) continue;
    const auto [at, fresh] = numbers.emplace(name_of_key(by, s, key), static_cast<uint32_t>(g.names.size()));
    if (fresh) g.names.push_back(at->first);
    g.of_key[key] = at->second;
  }
  return g;
}

/// A division being made.
class Dividing {
 public:
  Dividing(const Snapshot& s, const Timeline& t, const Options& options)
      : s_(s), t_(t), options_(options), groups_(usage_groups(options.by, s, t)) {
    made_->by = options.by;
    choose();
    add_up();
  }
  std::shared_ptr<const UsageDivision> made() const { return made_; }

 private:
  uint32_t group_of(uint32_t element) const { return groups_.of_key[usage_key(options_.by, s_, t_, element)]; }
  uint8_t band_of(uint32_t element) const { return bands_[usage_key(options_.by, s_, t_, element)]; }

  /// What each group holds after an event.
  std::vector<int64_t> held(size_t at) const {
    std::vector<int64_t> bytes(groups_.names.size());
    for (const uint32_t id : t_.live(at)) bytes[group_of(id)] += t_.bytes_of(id);
    return bytes;
  }

  /// A group has a band for what it holds at the peak, or at any of some moments between: what is large only while the
  /// rest is small is seen, too.
  void choose() {
    constexpr size_t kMoments = 24;
    const std::vector<std::string>& names = groups_.names;
    const size_t events = t_.events();
    std::vector<std::vector<int64_t>> moments(events > 0 ? kMoments + 1 : 0);  // the first: the peak
    parallel_for(static_cast<int64_t>(moments.size()), 1, [&](int64_t begin, int64_t end) {
      for (auto m = static_cast<size_t>(begin); m < static_cast<size_t>(end); ++m)
        if (m == 0 || events * m / kMoments > 0) moments[m] = held(m == 0 ? t_.peak() : events * m / kMoments - 1);
    });
    std::vector<int64_t> most(names.size());
    for (const std::vector<int64_t>& now : moments)
      for (size_t g = 0; g < now.size(); ++g) most[g] = std::max(most[g], now[g]);
    const std::vector<int64_t> at_peak = moments.empty() ? most : moments[0];

    std::vector<uint32_t> order(names.size());
    std::iota(order.begin(), order.end(), 0u);
    auto before = [&](const std::vector<int64_t>& bytes) {
      return [&](uint32_t a, uint32_t b) { return bytes[a] != bytes[b] ? bytes[a] > bytes[b] : names[a] < names[b]; };
    };
    std::sort(order.begin(), order.end(), before(most));
    const auto pinned = std::find(names.begin(), names.end(), options_.pinned) - names.begin();
    const bool pins = pinned < static_cast<ptrdiff_t>(names.size());
    std::erase_if(order, [&](uint32_t g) { return most[g] == 0 || (pins && g == static_cast<uint32_t>(pinned)); });
    order.resize(std::min({order.size(), options_.bands, kMostBands}));
    std::sort(order.begin(), order.end(), before(at_peak));
    if (pins) order.insert(order.begin(), static_cast<uint32_t>(pinned));

    std::vector<uint8_t> band(names.size(), static_cast<uint8_t>(order.size()));
    for (size_t i = 0; i < order.size(); ++i) {
      band[order[i]] = static_cast<uint8_t>(i);
      made_->bands.push_back({names[order[i]], at_peak[order[i]], false});
    }
    if (order.size() < names.size()) {
      int64_t rest = 0;
      for (size_t g = 0; g < names.size(); ++g)
        if (band[g] == order.size()) rest += at_peak[g];
      made_->bands.push_back({"everything else", rest, true});
    }
    bands_.resize(groups_.of_key.size());
    for (size_t key = 0; key < bands_.size() && !names.empty(); ++key) bands_[key] = band[groups_.of_key[key]];
    made_->band_of_key = Column(bands_);
  }

  /// Pieces of the events are added up side by side, each from what is alive before it.
  void add_up() {
    const size_t events = t_.events(), blocks = (events + kBlockEvents - 1) / kBlockEvents;
    before_.resize(blocks * made_->bands.size());
    at_top_.resize(blocks * made_->bands.size());
    tops_.resize(blocks);
    std::mutex reporting;
    uint64_t done = 0;
    parallel_for(static_cast<int64_t>(events), kAtOnce, [&](int64_t begin, int64_t end) {
      add_up_piece(static_cast<size_t>(begin), static_cast<size_t>(end));
      const std::lock_guard lock(reporting);
      done += static_cast<uint64_t>(end - begin);
      if (options_.progress && !options_.progress(done, events)) throw Error("cancelled");
    });
    made_->before = Column(std::move(before_));
    made_->at_top = Column(std::move(at_top_));
    made_->tops = Column(std::move(tops_));
  }

  void add_up_piece(size_t from, size_t to) {
    const size_t n = made_->bands.size();
    std::vector<int64_t> now(n);
    const auto add = [&](uint32_t id) { now[band_of(id)] += t_.bytes_of(id); };
    if (from == 0)
      std::for_each(t_.before().begin(), t_.before().end(), add);
    else
      for (const uint32_t id : t_.live(from - 1)) add(id);
    int64_t total = std::accumulate(now.begin(), now.end(), int64_t{0});
    for (size_t begin = from; begin < to; begin += kBlockEvents) {
      const size_t block = begin / kBlockEvents, row = block * n;
      std::copy(now.begin(), now.end(), before_.begin() + static_cast<ptrdiff_t>(row));
      UsageDivision::Top& highest = tops_[block] = {begin, INT64_MIN};
      for (size_t i = begin; i < std::min(begin + kBlockEvents, to); ++i) {
        for (const Timeline::Change& c : t_.changes(i))
          if (c.element != kNone) {
            now[band_of(c.element)] += c.bytes;
            total += c.bytes;
          }
        if (total <= highest.total) continue;
        highest = {i, total};
        std::copy(now.begin(), now.end(), at_top_.begin() + static_cast<ptrdiff_t>(row));
      }
    }
  }

  const Snapshot& s_;
  const Timeline& t_;
  const Options& options_;
  const UsageGroups groups_;
  std::vector<uint8_t> bands_;  // by key
  std::vector<int64_t> before_, at_top_;
  std::vector<UsageDivision::Top> tops_;
  std::shared_ptr<UsageDivision> made_ = std::make_shared<UsageDivision>();
};

/// The sum of what the bands hold in one row; -1 where that is no number of bytes.
int64_t sum_of(std::span<const int64_t> row) {
  constexpr int64_t kMost = int64_t{1} << 60;
  int64_t sum = 0;
  for (const int64_t bytes : row) {
    if (bytes < 0 || bytes > kMost - sum) return -1;
    sum += bytes;
  }
  return sum;
}

/// What a block tells of is what is alive then.
bool block_fits(const UsageDivision& d, const Timeline& t, const Lives& l, size_t block) {
  const size_t n = d.bands.size(), begin = block * kBlockEvents, end = std::min<size_t>(l.events, begin + kBlockEvents);
  const UsageDivision::Top& top = d.tops[block];
  int64_t high = INT64_MIN;
  for (size_t b = begin / Lives::kBlock; b * Lives::kBlock < end; ++b) high = std::max(high, l.blocks[b].high);
  if (top.event < begin || top.event >= end) return false;
  int64_t rise = 0;  // the first as high is one that rises, or the block's first
  for (const Timeline::Change& change : t.changes(top.event)) rise += change.bytes;
  return (rise > 0 || top.event == begin) && top.total == high &&
         sum_of(d.before.span().subspan(block * n, n)) == l.sums[begin / Lives::kStride] &&
         sum_of(d.at_top.span().subspan(block * n, n)) == top.total && t.bytes(top.event) == top.total;
}

bool peak_fits(const UsageDivision& d, const Snapshot& s, const Timeline& t) {
  std::vector<int64_t> held(d.bands.size());
  if (t.events() > 0)
    for (const uint32_t id : t.live(t.peak())) held[d.band_of_key[usage_key(d.by, s, t, id)]] += t.bytes_of(id);
  for (size_t b = 0; b < held.size(); ++b)
    if (held[b] != d.bands[b].at_peak) return false;
  return true;
}

}  // namespace

const char* name(UsageBy by) {
  constexpr const char* kNames[kUsageBys] = {"place", "size", "stream", "category"};
  return kNames[static_cast<int>(by)];
}

size_t size_class(int64_t bytes) {
  size_t c = 0;
  while (c + 1 < std::size(kSizes) && bytes >= kSizes[c].below) ++c;
  return c;
}

size_t usage_keys(UsageBy by, const Snapshot& s) {
  switch (by) {
    case UsageBy::place:
      return s.stacks() + 1;
    case UsageBy::size:
      return std::size(kSizes);
    case UsageBy::stream:
      return s.streams.size() + 1;
    case UsageBy::category:
      return s.texts.size() + 1;
  }
  return 0;
}

std::shared_ptr<const UsageDivision> divide_usage(const Snapshot& s, const Timeline& t, const Options& options) {
  return Dividing(s, t, options).made();
}

bool fits(const UsageDivision& d, const Snapshot& s, size_t trace) {
  const Lives& l = *s.lives[trace];
  const Timeline t(s, trace, s.lives[trace]);
  const size_t n = d.bands.size(), blocks = (l.events + kBlockEvents - 1) / kBlockEvents;
  if (n > kMostBands + 2 || (n == 0 && t.elements() > 0) || d.band_of_key.size() != usage_keys(d.by, s) ||
      d.tops.size() != blocks || d.before.size() != blocks * n || d.at_top.size() != blocks * n)
    return false;
  for (const uint8_t band : d.band_of_key)
    if (band >= std::max<size_t>(n, 1)) return false;
  std::atomic<bool> all = true;
  parallel_for(static_cast<int64_t>(blocks), 1024, [&](int64_t begin, int64_t end) {
    for (auto b = static_cast<size_t>(begin); b < static_cast<size_t>(end) && all; ++b)
      if (!block_fits(d, t, l, b)) all = false;
  });
  return all && peak_fits(d, s, t);
}

}  // namespace tenon::snapshot
