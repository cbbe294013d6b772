#include "tracing/snapshot/lives.h"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>

#include "core/error.h"
#include "core/parallel.h"
#include "tracing/snapshot/address_map.h"
#include "tracing/snapshot/snapshot.h"

// Note [Who was there before]
// The ring buffer of a recording forgets its oldest events, and recording may begin late. So a free of an address that
// no event made, and a block that is active at the end without one, were there before: they count from the first event
// on, as in PyTorch's own viewer.

namespace tenon::snapshot {
namespace {

using Life = Lives::Life;

/// Events that one thread adds up at a time: a whole number of every stretch whose sums are kept.
constexpr size_t kPiece = size_t{1} << 17;
static_assert(kPiece % Lives::kStride == 0 && kPiece % Lives::kBlock == 0);

/// Calls fn(piece) for the pieces of so many events, on every core.
template <class F>
void for_pieces(size_t events, const F& fn) {
  parallel_for(static_cast<int64_t>((events + kPiece - 1) / kPiece), 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) fn(static_cast<size_t>(p));
  });
}

bool ends_a_life(Action a) { return (a == Action::free_completed) | (a == Action::free); }

/// Walks through the events in their order: who makes, who ends what.
void match(const Snapshot& s, const DeviceTrace& trace, Lives& l) {
  const Events& e = s.events;
  const auto last = static_cast<uint32_t>(l.events);
  std::vector<uint32_t> of_event(l.events, kNone), before;
  std::vector<Life> lives;
  size_t most = s.blocks.size();
  for (size_t k = trace.begin; k < trace.end; ++k) most += e.action[k] == Action::alloc || ends_a_life(e.action[k]);
  lives.reserve(most);  // memory that is not written to is none yet
  AddressMap alive;
  for (uint32_t i = 0; i < last; ++i) {
    const size_t k = trace.begin + i;
    if (e.action[k] == Action::alloc) {
      const auto id = static_cast<uint32_t>(lives.size());
      lives.push_back({i, last});
      of_event[i] = id;
      const uint32_t former = alive.put(e.address[k], id);
      if (former != kNone) lives[former].died = i;  // its free was lost: the address is taken anew
    } else if (ends_a_life(e.action[k])) {
      const uint32_t id = alive.take(e.address[k]);
      if (id != kNone) {
        lives[id].died = i;
        of_event[i] = id;
      } else {
        before.push_back(static_cast<uint32_t>(lives.size()));
        of_event[i] = before.back();
        lives.push_back({i, i});
        ++l.unknown_frees;
      }
    }
  }
  l.blocks_from = static_cast<uint32_t>(lives.size());
  for (const Segment& segment : s.segments) {
    if (segment.device != trace.device) continue;
    for (size_t b = segment.first_block; b < segment.first_block + segment.blocks; ++b) {
      if (s.blocks[b].state == State::inactive || alive.find(s.blocks[b].address) != kNone)
        continue;  // what waits for another stream is not free yet
      before.push_back(static_cast<uint32_t>(lives.size()));
      lives.push_back({static_cast<uint32_t>(b), segment.stream});
    }
  }
  std::vector<uint32_t> lost;
  for (uint32_t id = 0; id < l.blocks_from; ++id)
    if (lives[id].died < last && of_event[lives[id].died] != id) lost.push_back(id);
  std::sort(lost.begin(), lost.end(), [&](uint32_t a, uint32_t b) { return lives[a].died < lives[b].died; });
  l.lives = Column(std::move(lives));
  l.of_event = Column(std::move(of_event));
  l.before = Column(std::move(before));
  l.lost = Column(std::move(lost));
}

/// What is alive in one piece of the events: from 0 at its beginning, or from what was alive then.
struct PieceSums {
  int64_t sum = 0, most = INT64_MIN;
  size_t most_at = 0;
};
/// `note(event, now, next)` is told what is alive before and after each. What Timeline::changes() says, at once for
/// many.
template <class F>
PieceSums walk_piece(const Lives& l, const Events& e, size_t first, size_t piece, int64_t now, const F& note) {
  PieceSums sums;
  const size_t begin = piece * kPiece, end = std::min<size_t>(l.events, begin + kPiece);
  const Action* const action = e.action.data() + first;
  const uint32_t* const of_event = l.of_event.data();
  const Life* const lives = l.lives.data();
  auto lost = std::lower_bound(l.lost.begin(), l.lost.end(), begin,
                               [&](uint32_t id, size_t at) { return lives[id].died < at; });
  for (size_t i = begin; i < end; ++i) {
    int64_t next = now;
    if (const uint32_t id = of_event[i]; id != kNone)
      next += action[i] == Action::alloc ? e.size[first + i] : -e.size[first + lives[id].source];
    for (; lost != l.lost.end() && lives[*lost].died == i; ++lost) next -= e.size[first + lives[*lost].source];
    note(i, now, next);
    now = next;
    if (now > sums.most) sums.most = now, sums.most_at = i;
  }
  sums.sum = now;
  return sums;
}
void widen(Usage& block, size_t event, int64_t now) {
  if (event % Lives::kBlock == 0) block = {now, now, now};
  block = {std::min(block.low, now), std::max(block.high, now), now};
}

/// Each piece is added up from 0, and then raised to what was alive before it.
void add_up(const Events& e, size_t first, Lives& l) {
  std::vector<int64_t> sums((l.events + Lives::kStride - 1) / Lives::kStride);
  std::vector<Usage> blocks((l.events + Lives::kBlock - 1) / Lives::kBlock);
  std::vector<PieceSums> pieces((l.events + kPiece - 1) / kPiece);
  for_pieces(l.events, [&](size_t p) {
    pieces[p] = walk_piece(l, e, first, p, 0, [&](size_t i, int64_t now, int64_t next) {
      if (i % Lives::kStride == 0) sums[i / Lives::kStride] = now;
      widen(blocks[i / Lives::kBlock], i, next);
    });
  });
  int64_t now = l.peak_bytes = l.bytes_before;
  for (size_t p = 0; p < pieces.size(); ++p) {
    const size_t end = std::min<size_t>(l.events, (p + 1) * kPiece);
    for (size_t i = p * kPiece; i < end; i += Lives::kStride) sums[i / Lives::kStride] += now;
    for (size_t i = p * kPiece; i < end; i += Lives::kBlock) {
      Usage& b = blocks[i / Lives::kBlock];
      b = {b.low + now, b.high + now, b.last + now};
    }
    if (now + pieces[p].most > l.peak_bytes) l.peak_bytes = now + pieces[p].most, l.peak = pieces[p].most_at;
    now += pieces[p].sum;
  }
  l.sums = Column(std::move(sums));
  l.blocks = Column(std::move(blocks));
}

/// Those alive after `to` events, from those after `from`.
void go_on(const Lives& l, const Action* action, std::vector<uint32_t>& living, size_t from, size_t to) {
  const uint32_t* const of_event = l.of_event.data();
  const Life* const lives = l.lives.data();
  size_t at = living.size();
  living.resize(at + to - from);
  for (size_t i = from; i < to; ++i) {
    living[at] = of_event[i];
    at += action[i] == Action::alloc;
  }
  living.resize(at);
  std::erase_if(living, [&](uint32_t id) { return id < l.blocks_from && lives[id].died < to; });
}

/// How far the next keyframe is: they take a quarter of what the events between them take.
size_t stride_after(size_t living) { return std::max<size_t>(4096, 4 * living); }

void write_keyframes(const Events& e, size_t first, Lives& l) {
  std::vector<uint32_t> living(l.before.begin(), l.before.end());
  for (size_t at = 0;;) {
    l.keyframes.push_back(at);
    l.living.append(living);
    l.keyframe_ends.push_back(l.living.size());
    const size_t next = at + stride_after(living.size());
    if (next > l.events) break;
    go_on(l, e.action.data() + first, living, at, next);
    at = next;
  }
}

/// Whether `fits(begin, end)` of every stretch of so many, on every core.
template <class F>
bool all_stretches(size_t count, const F& fits) {
  std::atomic<bool> all = true;
  parallel_for(static_cast<int64_t>(count), kPiece, [&](int64_t begin, int64_t end) {
    if (!fits(static_cast<size_t>(begin), static_cast<size_t>(end))) all = false;
  });
  return all;
}

bool all_below(std::span<const uint32_t> numbers, size_t limit) {
  return all_stretches(numbers.size(), [&](size_t begin, size_t end) {
    bool all = true;
    for (size_t i = begin; i < end; ++i) all &= numbers[i] < limit;
    return all;
  });
}

/// What others rely on to find something where a number leads.
bool leads_somewhere(const Lives& l, const Snapshot& s, const DeviceTrace& trace) {
  const size_t n = trace.end - trace.begin, keyframes = l.keyframes.size();
  if (n >= kNone || l.events != n || l.of_event.size() != n || l.lives.size() >= kNone ||
      l.blocks_from > l.lives.size() || l.sums.size() != (n + Lives::kStride - 1) / Lives::kStride ||
      l.blocks.size() != (n + Lives::kBlock - 1) / Lives::kBlock || l.peak > n || keyframes == 0 ||
      l.keyframe_ends.size() != keyframes || l.keyframes[0] != 0 || l.keyframe_ends.back() != l.living.size())
    return false;
  for (size_t k = 1; k < keyframes; ++k)
    if (l.keyframes[k] <= l.keyframes[k - 1] || l.keyframes[k] > n || l.keyframe_ends[k] < l.keyframe_ends[k - 1])
      return false;
  if (!all_below(l.living.span(), l.lives.size()) || !all_below(l.before.span(), l.lives.size()) ||
      !all_below(l.lost.span(), l.blocks_from))
    return false;
  const Life* const lives = l.lives.data();
  for (size_t id = l.blocks_from; id < l.lives.size(); ++id)
    if (lives[id].source >= s.blocks.size() || lives[id].died >= s.streams.size()) return false;
  // Each free ends one, see matches(); the others are those whose free was lost.
  std::atomic<size_t> ended = 0, frees = 0;
  const bool events_lead = all_stretches(n, [&](size_t begin, size_t end) {
    bool fit = true;
    size_t of_these = 0;
    for (size_t i = begin; i < end; ++i) {
      fit &= (l.of_event[i] < l.blocks_from) | (l.of_event[i] == kNone);
      of_these += ends_a_life(s.events.action[trace.begin + i]);
    }
    frees += of_these;
    return fit;
  });
  const bool lives_lead = all_stretches(l.blocks_from, [&](size_t begin, size_t end) {
    bool fit = true;
    size_t of_these = 0;
    for (size_t id = begin; id < end; ++id) {
      fit &= (lives[id].source < n) & (lives[id].died <= n);
      of_these += lives[id].died < n;
    }
    ended += of_these;
    return fit;
  });
  return events_lead && lives_lead && ended == frees + l.lost.size();
}

/// Whether an event makes and ends what its action says, and what it ends was made at its address. Where all do, and
/// `made` counts as many as there are lives of events, each life has the one event that tells of it.
bool matches(const Lives& l, const Events& e, size_t first, size_t i, size_t& made) {
  const uint32_t id = l.of_event[i];
  const Action a = e.action[first + i];
  const bool begins = a == Action::alloc;
  if (!begins && !ends_a_life(a)) return id == kNone;
  if (id >= l.blocks_from) return false;
  const Life life = l.lives[id];
  made += life.source == i;
  if (begins) return life.source == i && life.died > i;
  return life.died == i && (life.source == i || (life.source < i && e.action[first + life.source] == Action::alloc &&
                                                 e.address[first + life.source] == e.address[first + i]));
}

/// Those whose free was lost end where another takes their address.
bool lost_fit(const Lives& l, const Events& e, size_t first) {
  for (size_t i = 0; i < l.lost.size(); ++i) {
    const Life life = l.lives[l.lost[i]];
    if (life.died >= l.events || l.of_event[life.died] == l.lost[i] ||
        e.address[first + life.died] != e.address[first + life.source] ||
        (i && life.died <= l.lives[l.lost[i - 1]].died))
      return false;
  }
  return true;
}

bool before_fits(const Timeline& t, const Lives& l, const Snapshot& s, size_t first) {
  uint64_t frees = 0;
  __int128 bytes = 0;
  for (size_t i = 0; i < l.before.size(); ++i) {
    const uint32_t id = l.before[i];
    if (i && id <= l.before[i - 1]) return false;
    bytes += t.bytes_of(id);
    if (id >= l.blocks_from) continue;
    ++frees;
    if (s.events.action[first + l.lives[id].source] == Action::alloc) return false;
  }
  return frees == l.unknown_frees && bytes == l.bytes_before &&
         l.before.size() - frees == l.lives.size() - l.blocks_from;
}

bool keyframes_fit(const Lives& l, const Action* action) {
  const auto equal = [](std::span<const uint32_t> a, std::span<const uint32_t> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  if (!equal(l.living_at(0), l.before.span())) return false;
  std::atomic<bool> all = true;
  parallel_for(static_cast<int64_t>(l.keyframes.size()) - 1, 64, [&](int64_t begin, int64_t end) {
    for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end) && all; ++k) {
      const auto from = l.living_at(k);
      std::vector<uint32_t> then(from.begin(), from.end());
      const size_t next = l.keyframes[k] + stride_after(then.size());
      if (l.keyframes[k + 1] != next) all = false;
      if (!all) return;
      go_on(l, action, then, l.keyframes[k], next);
      if (!equal(then, l.living_at(k + 1))) all = false;
    }
  });
  return all && l.keyframes.back() + stride_after(l.living_at(l.keyframes.size() - 1).size()) > l.events;
}

}  // namespace

std::shared_ptr<const Lives> find_lives(const Snapshot& s, size_t which) {
  auto lives = std::make_shared<Lives>();
  if (which >= s.traces.size()) return lives;
  const DeviceTrace& trace = s.traces[which];
  Lives& l = *lives;
  l.events = trace.end - trace.begin;
  if (l.events >= kNone) throw Error(fmt::format("the device has {} events, more than can be counted", l.events));
  match(s, trace, l);
  const Timeline t(s, which, lives);
  for (const uint32_t id : l.before) l.bytes_before += t.bytes_of(id);
  add_up(s.events, trace.begin, l);
  write_keyframes(s.events, trace.begin, l);
  return lives;
}

bool fits(const std::shared_ptr<const Lives>& lives, const Snapshot& s, size_t which) {
  const Lives& l = *lives;
  const DeviceTrace& trace = s.traces[which];
  if (!leads_somewhere(l, s, trace)) return false;
  const size_t first = trace.begin;
  if (!lost_fit(l, s.events, first) || !before_fits(Timeline(s, which, lives), l, s, first)) return false;
  std::atomic<bool> all = true;
  std::atomic<size_t> made = 0;
  std::vector<PieceSums> pieces((l.events + kPiece - 1) / kPiece);
  for_pieces(l.events, [&](size_t p) {
    bool fit = true;
    size_t made_here = 0;
    Usage block;
    const int64_t begin = l.sums[p * kPiece / Lives::kStride];
    pieces[p] = walk_piece(l, s.events, first, p, begin, [&](size_t i, int64_t now, int64_t next) {
      fit &= matches(l, s.events, first, i, made_here) && (i % Lives::kStride || l.sums[i / Lives::kStride] == now);
      widen(block, i, next);
      if ((i + 1) % Lives::kBlock == 0 || i + 1 == l.events) fit &= block == l.blocks[i / Lives::kBlock];
    });
    if (!fit) all = false;
    made += made_here;
  });
  int64_t now = l.bytes_before, most = now;
  size_t peak = 0;
  for (size_t p = 0; p < pieces.size(); ++p) {
    if (l.sums[p * kPiece / Lives::kStride] != now) return false;
    if (pieces[p].most > most) most = pieces[p].most, peak = pieces[p].most_at;
    now = pieces[p].sum;
  }
  return all && made == l.blocks_from && most == l.peak_bytes && peak == l.peak &&
         keyframes_fit(l, s.events.action.data() + trace.begin);
}

}  // namespace tenon::snapshot
