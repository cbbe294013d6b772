// Replaying a recording through the model of the allocator.
#include <algorithm>
#include <map>

#include "tracing/snapshot/allocator_model.h"

// Note [What a replay asks for]
// A recording has what the program asked for (alloc, free_requested, oom), what other streams made happen
// (free_completed some time after its request) and what the allocator did of itself (segment_*). Only the last is the
// model's to find. Two things have to be told apart by their stacks: segments that were given back while an allocation
// looked for room have the stack of that allocation, those of torch.cuda.empty_cache() their own; without stacks, a run
// of them that an allocation with a new segment, or a failed one, follows is taken for the former (the end is the
// same). And the frees that are completed within an allocation that met its limit: it waited for them only after it had
// searched in vain.

namespace tenon::snapshot {
namespace {

bool is_segment(Action a) {
  return a == Action::segment_alloc || a == Action::segment_free || a == Action::segment_map ||
         a == Action::segment_unmap;
}
bool gives_back(Action a) { return a == Action::segment_free || a == Action::segment_unmap; }
bool takes(Action a) { return a == Action::segment_alloc || a == Action::segment_map; }

/// What lies between two things that the program asked for.
struct Run {
  size_t request = 0;     ///< the event behind it
  bool to_room = false;   ///< the request is an allocation that gave segments back to make room, or failed
  bool searched = false;  ///< the request is an allocation that found no free block
};

class Reader {
 public:
  Reader(const Snapshot& s, size_t trace) : e_(s.events), end_(s.traces.at(trace).end) {}
  Run from(size_t i) const {
    Run run;
    bool gave = false, took = false;
    size_t k = i;
    for (; k < end_ && (is_segment(e_.action[k]) || e_.action[k] == Action::free_completed); ++k)
      took |= takes(e_.action[k]);
    run.request = k;
    if (k == end_ || (e_.action[k] != Action::alloc && e_.action[k] != Action::oom)) return run;
    for (size_t j = i; j < k; ++j) gave |= gives_back(e_.action[j]) && within(j, k, took);
    run.to_room = gave || e_.action[k] == Action::oom;
    run.searched = run.to_room || took;
    return run;
  }
  /// Whether a segment was given back by the allocation `request`.
  bool within(size_t segment, size_t request, bool took) const {
    if (request == end_ || (e_.action[request] != Action::alloc && e_.action[request] != Action::oom)) return false;
    if (e_.stack[request] == kNone && e_.stack[segment] == kNone) return took || e_.action[request] == Action::oom;
    return e_.stack[request] == e_.stack[segment];
  }
  bool took_between(size_t i, size_t request) const {
    for (; i < request; ++i)
      if (takes(e_.action[i])) return true;
    return false;
  }

 private:
  const Events& e_;
  size_t end_;
};

class Replaying {
 public:
  Replaying(const Snapshot& s, size_t which, const AllocatorSettings& settings, const ReplayOptions& options)
      : s_(s),
        e_(s.events),
        trace_(s.traces.at(which)),
        own_(options.as_recorded),
        settings_(settings),
        pool_of_(s, trace_.device),
        reader_(s, which),
        limits_(options.limits),
        model_(settings, limits_) {
    if (settings.expandable_segments && own_)
      for (size_t i = trace_.begin; i < trace_.end; ++i)
        if (e_.action[i] == Action::segment_alloc && pool_of_(i) != PoolId{}) model_.set_never_expandable(pool_of_(i));
    model_.set_keeps_all_for_pools(!s.pools_told);
    if (options.begin)
      begin(*options.begin);
    else
      begin(state_after(s, which, 0));
  }

  Replay run() {
    r_.curve.emplace_back(0, model_.reserved());
    for (size_t i = trace_.begin; i < trace_.end && going_; ++i) {
      const int64_t peak = model_.peak_reserved();
      r_.reached = (i = step(i)) + 1 - trace_.begin;
      if (model_.peak_reserved() > peak && model_.peak_reserved() > model_.reserved())
        r_.curve.emplace_back(r_.reached, model_.peak_reserved());
      if (r_.curve.back().second != model_.reserved()) r_.curve.emplace_back(r_.reached, model_.reserved());
    }
    r_.peak_reserved = model_.peak_reserved();
    r_.segment_events = model_.segment_events();
    r_.addresses = model_.event_addresses();
    std::vector<int64_t> streams = s_.streams;
    if (own_) r_.end = model_.state(streams);
    return std::move(r_);
  }

 private:
  int64_t stream(uint32_t id) const { return id < s_.streams.size() ? s_.streams[id] : 0; }

  void begin(const AllocatorState& state) {
    if (own_) {
      find_bases(state);
      model_.set_bases([this](const Segment& g) { return bases_.at({g.stream, g.pool, g.large}).first; });
      model_.begin_with(state, s_);
      model_.set_addresses([this](Action action, int64_t size) { return hint(action, size); });
      for (const Block& b : state.blocks)
        if (b.state != State::inactive) place_[b.address] = b.address;
    } else {
      for (const Segment& g : state.segments)
        for (size_t b = g.first_block; b < g.first_block + g.blocks && going_; ++b)
          if (state.blocks[b].state != State::inactive)
            take(state.blocks[b].address, state.blocks[b].requested, g.stream, g.pool, 0);
    }
    r_.peak_allocated = model_.allocated();
  }

  // The lowest address of a pool's expandable segments at which anything was mapped, until all of it was unmapped.
  void find_bases(const AllocatorState& state) {
    for (const Segment& g : state.segments) {
      if (!g.expandable) continue;
      auto [it, fresh] = bases_.emplace(BaseKey{g.stream, g.pool, g.large}, std::pair{g.address, g.total});
      if (!fresh) it->second = {std::min(it->second.first, g.address), it->second.second + g.total};
    }
    if (bases_.empty()) return;
    for (size_t i = trace_.begin; i < trace_.end; ++i) {
      const bool map = e_.action[i] == Action::segment_map;
      if (!map && e_.action[i] != Action::segment_unmap) continue;
      auto it = bases_.find({e_.stream[i], pool_of_(i), e_.size[i] > kSmallBuffer});
      if (it == bases_.end() || it->second.second <= 0) continue;
      it->second.second += map ? e_.size[i] : -e_.size[i];
      if (map) it->second.first = std::min(it->second.first, e_.address[i]);
    }
  }

  /// Where the recording has the segment that the model asks for.
  uint64_t hint(Action action, int64_t size) {
    for (; hint_ < hint_end_; ++hint_)
      if (e_.action[hint_] == action && e_.size[hint_] == size) return e_.address[hint_++];
    return 0;
  }

  bool take(uint64_t address, int64_t size, uint32_t on, PoolId pool, size_t at) {
    const uint64_t got = model_.alloc(size, stream(on), pool);
    if (got == AllocatorModel::kFailed) return fail(at, size), going_ = false;
    if (own_ && got != address && r_.moved++ == 0) r_.moved_at = at;
    place_[address] = got;
    r_.peak_allocated = std::max(r_.peak_allocated, model_.allocated());
    return true;
  }

  void fail(size_t at, int64_t size) {
    r_.failures.push_back(at);
    if (r_.failed) return;
    r_.failed = true;
    r_.failed_at = at;
    r_.failed_size = size;
    r_.free_at_failure = model_.free_bytes();
    r_.largest_free_at_failure = model_.largest_free();
  }

  void release(uint64_t address) {
    auto it = place_.find(address);
    if (it == place_.end()) return;
    model_.free(it->second);
    place_.erase(it);
  }

  // A failed allocation was recorded as none. It is tried; the program went on without it, so what is got is given
  // back.
  void try_again(size_t i) {
    if (!limited()) return;
    const uint64_t got = model_.alloc(e_.size[i], stream(e_.stream[i]), pool_of_(i));
    if (got != AllocatorModel::kFailed) {
      if (own_ && r_.moved++ == 0) r_.moved_at = i - trace_.begin;
      model_.free(got);
      return;
    }
    fail(i - trace_.begin, e_.size[i]);
  }
  bool limited() const { return limits_.device > 0 || limits_.allowed > 0; }

  /// Does what event i says; gives the last event that is done with.
  size_t step(size_t i) {
    switch (e_.action[i]) {
      case Action::alloc:
        take(e_.address[i], e_.size[i], e_.stream[i], pool_of_(i), i - trace_.begin);
        asked(i);
        break;
      case Action::oom:
        try_again(i);
        asked(i);
        break;
      case Action::free_requested:
        hint_ = i + 1;
        if (i + 1 < trace_.end && e_.action[i + 1] == Action::free_completed && e_.address[i + 1] == e_.address[i]) {
          release(e_.address[i]);
          return i + 1;
        }
        if (auto it = place_.find(e_.address[i]); it != place_.end()) model_.request_free(it->second);
        break;
      case Action::free:
        release(e_.address[i]);
        break;
      case Action::free_completed:
      case Action::segment_alloc:
      case Action::segment_map:
      case Action::segment_free:
      case Action::segment_unmap:
        return run_of(i);
      default:
        break;
    }
    return i;
  }

  // The request is done: what it waited for is free now, if the model did not wait itself.
  void asked(size_t i) {
    for (uint64_t address : late_) release(address);
    late_.clear();
    hint_ = hint_end_ = i + 1;
  }

  /// Whether what was given back within a run may have been garbage, not room for an allocation that met its limit.
  bool could_collect(const Run& run) const {
    if (settings_.garbage_collection_threshold <= 0 || e_.action[run.request] != Action::alloc) return false;
    const int64_t need = settings_.segment_for(settings_.rounded(e_.size[run.request]));
    return (limits_.allowed <= 0 || model_.reserved() + need <= limits_.allowed) &&
           (limits_.device <= 0 || model_.reserved() + need <= limits_.device);
  }

  /// Everything up to the next request.
  size_t run_of(size_t i) {
    const Run run = reader_.from(i);
    const bool took = reader_.took_between(i, run.request);
    bool gave = false;  // garbage is collected before anything is waited for
    // An allocation that would have found a block without what was freed just before it, but did not, searched after
    // that.
    const bool searched_after =
        own_ && run.to_room &&
        model_.finds(e_.size[run.request], stream(e_.stream[run.request]), pool_of_(run.request));
    for (size_t k = i; k < run.request; ++k) {
      if (e_.action[k] == Action::free_completed) {
        if (own_ && run.to_room && !searched_after && (gave || (!model_.would_collect() && !could_collect(run))))
          late_.push_back(e_.address[k]);
        else
          release(e_.address[k]);
      } else if (gives_back(e_.action[k])) {
        gave = reader_.within(k, run.request, took);
        if (!gave)
          k = emptied(k, run.request, took);
        else if (const PoolId pool = pool_of_(k); pool != PoolId{})
          model_.set_unused(pool);
      }
    }
    hint_ = i;
    hint_end_ = run.request;
    return run.request - 1;
  }

  /// The program itself had segments given back: of the pools that some of them belonged to.
  size_t emptied(size_t i, size_t request, bool took) {
    std::vector<PoolId> pools;
    size_t k = i;
    for (; k < request && gives_back(e_.action[k]) && !reader_.within(k, request, took); ++k)
      if (PoolId pool = pool_of_(k); std::find(pools.begin(), pools.end(), pool) == pools.end()) pools.push_back(pool);
    for (uint64_t address : late_) release(address);
    late_.clear();
    for (PoolId pool : pools) {
      if (pool != PoolId{}) model_.set_unused(pool);
      model_.release(pool);
    }
    return k - 1;
  }

  const Snapshot& s_;
  const Events& e_;
  const DeviceTrace& trace_;
  const bool own_;
  const AllocatorSettings settings_;
  PoolsOfEvents pool_of_;
  Reader reader_;
  AllocatorModel::Limits limits_;
  AllocatorModel model_;
  std::unordered_map<uint64_t, uint64_t> place_;           ///< the file's address to the model's
  using BaseKey = std::tuple<uint32_t, PoolId, bool>;      ///< stream, pool, whether the large one
  std::map<BaseKey, std::pair<uint64_t, int64_t>> bases_;  ///< address, and what is mapped
  std::vector<uint64_t> late_;                             ///< frees that the next request waits for
  size_t hint_ = 0, hint_end_ = 0;
  bool going_ = true;
  Replay r_;
};

}  // namespace

Replay replay(const Snapshot& s, size_t which, const AllocatorSettings& settings, const ReplayOptions& options) {
  if (!options.as_recorded || options.limits.device || options.limits.allowed)
    return Replaying(s, which, settings, options).run();
  // A recording that met a limit does not say whose, and expandable segments ask less of the driver than the allowed
  // share is compared with. Which one it was shows in what the other would have made of it.
  const KnownLimits known = limits_of(s, which);
  ReplayOptions tried{known.limits, true, options.begin};
  Replay r = Replaying(s, which, settings, tried).run();
  if (!known.less_than || (r.moved == 0 && r.segment_events == recorded_segment_events(s, which))) return r;
  tried.limits = known.limits.allowed
                     ? AllocatorModel::Limits{known.at_least, 0}
                     : AllocatorModel::Limits{known.failed ? known.limits.device : 0, known.allowed_less_than - 1};
  Replay other = Replaying(s, which, settings, tried).run();
  return other.segment_events == recorded_segment_events(s, which) ? other : r;
}
Replay replay(const Snapshot& s, size_t which, const AllocatorSettings& settings, int64_t limit) {
  return replay(s, which, settings, ReplayOptions{{limit, 0}, false, nullptr});
}

std::vector<AllocatorModel::SegmentEvent> recorded_segment_events(const Snapshot& s, size_t which) {
  std::vector<AllocatorModel::SegmentEvent> all;
  const DeviceTrace& t = s.traces.at(which);
  for (size_t i = t.begin; i < t.end; ++i)
    if (is_segment(s.events.action[i]))
      all.push_back({s.events.action[i], s.events.size[i],
                     s.events.stream[i] < s.streams.size() ? s.streams[s.events.stream[i]] : 0});
  return all;
}

KnownLimits limits_of(const Snapshot& s, size_t which) {
  KnownLimits known;
  const DeviceTrace& t = s.traces.at(which);
  const Events& e = s.events;
  const AllocatorSettings settings = AllocatorSettings::of(s);
  const Reader reader(s, which);
  auto change = [&](size_t i) { return takes(e.action[i]) ? e.size[i] : gives_back(e.action[i]) ? -e.size[i] : 0; };
  int64_t reserved = 0;
  for (const Segment& g : s.segments)
    if (g.device == t.device) reserved += g.total;
  for (size_t i = t.begin; i < t.end; ++i) reserved -= change(i);
  known.at_least = reserved;
  // What an expandable segment grows by may be more than was compared with what is allowed.
  known.allowed_at_least = settings.expandable_segments ? 0 : reserved;
  int64_t exact = 0;
  auto refused = [&](int64_t total, int64_t asked, int64_t segment) {
    known.less_than = known.less_than ? std::min(known.less_than, total + asked) : total + asked;
    known.allowed_less_than =
        known.allowed_less_than ? std::min(known.allowed_less_than, total + segment) : total + segment;
  };
  for (size_t i = t.begin; i < t.end;) {
    const Run run = reader.from(i);
    const int64_t before = reserved;
    int64_t took = 0;
    for (; i < run.request; ++i) {
      reserved += change(i);
      took += std::max<int64_t>(0, change(i));
      known.at_least = std::max(known.at_least, reserved);
    }
    if (i == t.end) break;
    const int64_t size = settings.rounded(std::clamp<int64_t>(e.size[i], 0, int64_t{1} << 50)),
                  segment = settings.segment_for(size);
    // Of an expandable segment whole grains are mapped, in up to two parts.
    const int64_t grain = size <= kSmallSize ? kSmallBuffer : settings.large_segment_size;
    const int64_t asked = settings.expandable_segments ? (size + grain - 1) / grain * grain + grain : segment;
    if (e.action[i] == Action::oom) {
      const auto free_at_driver = static_cast<int64_t>(std::min<uint64_t>(e.address[i], uint64_t{1} << 60));
      known.by_fraction |= asked <= free_at_driver;
      refused(reserved, asked, segment);
      exact = reserved + free_at_driver;
      known.failed = true;
    } else if (run.to_room && settings.garbage_collection_threshold <= 0) {
      refused(before, asked, segment);
    }
    if (e.action[i] == Action::alloc && run.searched)
      known.allowed_at_least = std::max(known.allowed_at_least, reserved - took + segment);
    ++i;
  }
  if (known.by_fraction) known.limits.allowed = known.allowed_less_than - 1;
  known.limits.device = exact ? exact : known.less_than ? known.at_least : 0;
  return known;
}

}  // namespace tenon::snapshot
