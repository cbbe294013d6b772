#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/random.h"
#include "tests/tracing/made_snapshot.h"
#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/snapshot/allocator_model.h"

namespace tenon::tracing {
namespace {

using nlohmann::json;
using snapshot::Action;
using snapshot::AllocatorModel;
using snapshot::AllocatorSettings;
using snapshot::MadeSnapshot;
using snapshot::Snapshot;

Finding analyse(const char* analysis, std::vector<std::shared_ptr<const Snapshot>> snapshots,
                std::vector<std::string> settings = {}, int64_t limit = 0) {
  SnapshotRequest r;
  r.snapshots = std::move(snapshots);
  r.settings = std::move(settings);
  r.limit = limit;
  return snapshot_analyses().at(analysis).run(r);
}

/// Steps of training with what every training does, and one place more that the case is about.
template <class F>
std::shared_ptr<const Snapshot> training(uint64_t seed, int steps, const F& more) {
  MadeSnapshot m;
  Philox random{seed, 9};
  uint64_t drawn = 0;
  for (int i = 0; i < 8; ++i) m.alloc("weights.py", 4000 + i);
  std::vector<uint64_t> momentum;
  for (int s = 0; s < steps; ++s) {
    std::vector<uint64_t> activations;
    auto n = 3 + static_cast<int>(random.below(drawn++, 6));
    for (int i = 0; i < n; ++i)
      activations.push_back(m.alloc("forward.py", 1000 + static_cast<int64_t>(random.below(drawn++, 5000))));
    if (s == 1)
      for (int i = 0; i < 8; ++i) momentum.push_back(m.alloc("optimizer.py", 4000 + i));
    more(m, s, steps);
    uint64_t kept = activations.back();  // freed late: a step's last loss lives until the next
    activations.pop_back();
    for (uint64_t a : activations) m.free(a);
    m.free(kept);
  }
  return m.done();
}

std::vector<std::string> leaking(const std::shared_ptr<const Snapshot>& s) {
  std::vector<std::string> sites;
  for (const Leak& l : find_leaks(*s, 0)) sites.push_back(l.site);
  return sites;
}

TEST(Leaks, FortyLeaksAreFoundAndFortyLookAlikesAreNot) {
  int found = 0, false_alarms = 0, wrong_place = 0;
  for (uint64_t c = 0; c < 40; ++c) {
    const int every = 1 + static_cast<int>(c % 3), at_once = 1 + static_cast<int>(c / 3 % 3),
              steps = 60 + static_cast<int>(c) * 7;
    const int64_t bytes = 100 << (c % 9);
    const int begins = c % 4 == 0 ? steps / 8 : 0;
    auto sites = leaking(training(c, steps, [&](MadeSnapshot& m, int s, int) {
      for (int i = 0; s >= begins && s % every == 0 && i < at_once; ++i) {
        uint64_t a = m.alloc("leak.py", bytes);
        if (c % 5 == 0) m.free(m.alloc("leak.py", bytes)), (void)a;  // the same place also frees some of what it makes
      }
    }));
    found += std::find(sites.begin(), sites.end(), "f (leak.py:1)") != sites.end();
    wrong_place += static_cast<int>(sites.size()) > 1;
  }
  for (uint64_t c = 0; c < 40; ++c) {
    const int steps = 64 + static_cast<int>(c) * 5;
    std::vector<uint64_t> held;
    auto sites = leaking(training(100 + c, steps, [&](MadeSnapshot& m, int s, int all) {
      switch (c % 8) {
        case 0:  // a cache that fills and is full
          if (s < all * 2 / 5) m.alloc("cache.py", 3000);
          break;
        case 1:  // a cache that replaces its oldest entries
          held.push_back(m.alloc("cache.py", 3000));
          if (held.size() > 10) m.free(held.front()), held.erase(held.begin());
          break;
        case 2:  // warming up
          if (s < all / 5) m.alloc("warm.py", 5000), m.alloc("warm.py", 700);
          break;
        case 3:  // averaged weights, made once
          if (s == all / 10)
            for (int i = 0; i < 8; ++i) m.alloc("ema.py", 4000);
          break;
        case 4:  // accumulated over some steps, then freed
          held.push_back(m.alloc("accumulate.py", 8000));
          if (s % 6 == 5) {
            for (uint64_t a : held) m.free(a);
            held.clear();
          }
          break;
        case 5:  // a history that is thrown away now and then
          held.push_back(m.alloc("history.py", 400));
          if (s % (all / 4) == all / 4 - 1) {
            for (uint64_t a : held) m.free(a);
            held.clear();
          }
          break;
        case 6:  // a buffer that grows by doubling
          if ((s & (s + 1)) == 0) {
            for (uint64_t a : held) m.free(a);
            held = {m.alloc("buffer.py", 1000 * (s + 1))};
          }
          break;
        default:  // every step's last result is replaced by the next one's
          held.push_back(m.alloc("last.py", 6000));
          if (held.size() > 1) m.free(held.front()), held.erase(held.begin());
      }
    }));
    false_alarms += !sites.empty();
    if (!sites.empty()) ADD_FAILURE() << "look-alike " << c % 8 << " of " << c << " was taken for a leak: " << sites[0];
  }
  EXPECT_GE(found, 38);
  EXPECT_LE(false_alarms, 2);
  EXPECT_EQ(wrong_place, 0);
}

TEST(Leaks, BetweenTwoSnapshots) {
  auto dump = [](int kept) {
    MadeSnapshot m;
    std::vector<std::tuple<int64_t, bool, std::string>> blocks{{1 << 20, true, "weights.py"}};
    for (int i = 0; i < kept; ++i) blocks.emplace_back(4096, true, "leak.py");
    m.segment(1 << 30, 2 << 20, blocks);
    return m.done();
  };
  Finding f = analyse("leaks", {dump(3), dump(20)});
  ASSERT_EQ(f.tables[0].rows.size(), 1u) << f.sentence;
  EXPECT_EQ(std::get<int64_t>(f.tables[0].rows[0][1]), 17 * 4096);
  EXPECT_NE(analyse("diff", {dump(20), dump(3)}).sentence.find("less than A"), std::string::npos);
}

TEST(Peak, CountsWhatWasThereBefore) {
  MadeSnapshot m;
  uint64_t a = m.alloc("a.py", 1000), b = m.alloc("b.py", 5000);
  m.free(a);
  m.alloc("c.py", 300);
  m.free(b);
  auto s = m.done();
  snapshot::Timeline t(*s, 0);
  EXPECT_EQ(t.peak_bytes(), 6000);
  EXPECT_EQ(t.peak(), 1u);
  EXPECT_EQ(t.live(1).size(), 2u);
  EXPECT_EQ(t.live(2).size(), 2u);  // requested, not yet completed
  EXPECT_EQ(t.live(t.events() - 1).size(), 1u);
  auto late = snapshot::parse_snapshot(
      R"({"segments": [], "device_traces": [[{"action": "free_requested", "addr": 5, "size": 700, "stream": 0}, {"action": "free_completed", "addr": 5, "size": 700, "stream": 0}]]})");
  snapshot::Timeline before(*late, 0);
  EXPECT_EQ(before.bytes_before(), 700);
  EXPECT_EQ(before.peak_bytes(), 700);
  EXPECT_TRUE(before.history_truncated());
}

TEST(Timeline, LiveSetsFromKeyframesAreThoseOfAPlainWalk) {
  MadeSnapshot m;
  Philox random{3, 3};
  std::vector<uint64_t> live;
  for (uint64_t i = 0; i < 12000; ++i) {
    if (live.size() > 50 && random.below(i * 2, 2)) {
      size_t k = random.below(i * 2 + 1, live.size());
      m.free(live[k]);
      live.erase(live.begin() + static_cast<long>(k));
    } else {
      live.push_back(m.alloc("x.py", 100 + static_cast<int64_t>(i % 77)));
    }
  }
  auto s = m.done();
  snapshot::Timeline t(*s, 0);
  for (size_t at = 0; at < t.events(); at += 991) {
    int64_t sum = 0;
    size_t count = 0;
    for (uint32_t id = 0; id < t.elements(); ++id) count += t.element(id).born <= at && t.element(id).died > at;
    auto alive = t.live(at);
    for (uint32_t id : alive) sum += t.element(id).bytes;
    EXPECT_EQ(alive.size(), count);
    EXPECT_EQ(sum, t.bytes(at));
  }
}

TEST(OutOfMemory, IsExplained) {
  MadeSnapshot pieces;
  for (int i = 0; i < 4; ++i)
    pieces.segment((uint64_t{1} << 32) + static_cast<uint64_t>(i) * (64 << 20), 20 << 20,
                   {{9 << 20, false, "x.py"}, {2 << 20, true, "holder.py"}, {9 << 20, false, "x.py"}});
  pieces.alloc("holder.py", 2 << 20);
  pieces.oom(30 << 20, 1 << 20);
  Finding f = analyse("oom", {pieces.done()});
  EXPECT_TRUE(f.ok);
  EXPECT_NE(f.sentence.find("in pieces: the largest is 9.00 MiB"), std::string::npos) << f.sentence;
  MadeSnapshot full;
  full.segment(uint64_t{1} << 32, 64 << 20, {{64 << 20, true, "weights.py"}});
  full.alloc("weights.py", 1000);
  full.oom(30 << 20, 1 << 20);
  Finding g = analyse("oom", {full.done()});
  EXPECT_NE(g.sentence.find("No allocator setting helps"), std::string::npos) << g.sentence;
  Finding fragmentation = analyse("fragmentation", {pieces.done()});
  EXPECT_NE(fragmentation.sentence.find("72.0 MiB of 80.0 MiB"), std::string::npos) << fragmentation.sentence;
  EXPECT_NE(fragmentation.sentence.find("holder.py"), std::string::npos) << fragmentation.sentence;
}

// --- the model of the allocator: rules one can read in CUDACachingAllocator.cpp, one after the other

TEST(AllocatorModel, SegmentsHaveTheSizesOfTheRules) {
  AllocatorModel m({});
  m.alloc(1, 0);
  m.alloc(1 << 20, 0);
  m.alloc((1 << 20) + 1, 0);
  m.alloc(10 << 20, 0);
  m.alloc((25 << 20) + 5, 0);
  std::vector<int64_t> sizes;
  for (const auto& e : m.segment_events()) sizes.push_back(e.size >> 20);
  // 512 bytes and 1 MiB share 2 MiB; what is left of 20 MiB after 1 MiB serves no 10 MiB in the same pool unless it is
  // large enough.
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 20, 26}));
  EXPECT_EQ(m.allocated(),
            512 + (1 << 20) + ((1 << 20) + 512) + (10 << 20) + (26 << 20));  // less than 1 MiB left over is not cut off
}

TEST(AllocatorModel, FreeNeighboursMergeAndAreUsedAgain) {
  AllocatorModel m({});
  uint64_t a = m.alloc(4 << 20, 0), b = m.alloc(4 << 20, 0), c = m.alloc(4 << 20, 0);
  EXPECT_EQ(m.segment_events().size(), 1u);
  m.free(a);
  m.free(c);
  EXPECT_EQ(m.largest_free(), 12 << 20);  // c and the rest
  m.free(b);
  EXPECT_EQ(m.largest_free(), 20 << 20);
  EXPECT_EQ(m.alloc(20 << 20, 0), a);
  EXPECT_EQ(m.segment_events().size(), 1u);
  EXPECT_NE(m.alloc(512, 1), AllocatorModel::kFailed);
  EXPECT_EQ(m.segment_events().back().stream, 1);  // streams share nothing
}

TEST(AllocatorModel, GivesBackWhatIsUnusedBeforeItFails) {
  AllocatorModel m({}, 64 << 20);
  uint64_t a = m.alloc(30 << 20, 0);
  m.free(a);
  EXPECT_EQ(m.reserved(), 30 << 20);
  EXPECT_NE(m.alloc(50 << 20, 0), AllocatorModel::kFailed);
  EXPECT_EQ(m.segment_events()[1].action, Action::segment_free);
  EXPECT_EQ(m.alloc(50 << 20, 0), AllocatorModel::kFailed);
}

TEST(AllocatorModel, SplittingIsLimited) {
  AllocatorModel m(AllocatorSettings::parse("max_split_size_mb:64"), 0);
  uint64_t a = m.alloc(200 << 20, 0);
  m.free(a);
  m.alloc(30 << 20, 0);  // a small request takes no oversized block
  EXPECT_EQ(m.segment_events().size(), 2u);
  m.alloc(190 << 20, 0);  // a large one may, whole, while it wastes less than 20 MiB
  EXPECT_EQ(m.segment_events().size(), 2u);
  EXPECT_EQ(m.allocated(), (30 << 20) + (200 << 20));
}

TEST(AllocatorModel, ExpandableSegmentsGrowInPlace) {
  AllocatorModel m(AllocatorSettings::parse("expandable_segments:True"), 100 << 20);
  uint64_t a = m.alloc(15 << 20, 0), b = m.alloc(30 << 20, 0);
  std::vector<int64_t> sizes;
  for (const auto& e : m.segment_events()) {
    EXPECT_EQ(e.action, Action::segment_map);
    sizes.push_back(e.size >> 20);
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{20, 40}));  // 5 MiB were left, 25 more are needed: two grains
  m.free(a);
  m.free(b);
  EXPECT_NE(m.alloc(80 << 20, 0), AllocatorModel::kFailed);  // grows by 20, no fragment in the way
  EXPECT_EQ(m.reserved(), 80 << 20);
}

TEST(AllocatorModel, SizesAreRoundedAsAsked) {
  AllocatorModel m(AllocatorSettings::parse("roundup_power2_divisions:4"));
  m.alloc(1200000, 0);
  EXPECT_EQ(m.allocated(), 1 << 20 | 1 << 18);  // between 1 MiB and 2 MiB in quarters
  EXPECT_THROW(AllocatorSettings::parse("max_split_size_mb:5"), Error);
  EXPECT_THROW(AllocatorSettings::parse("colour:blue"), Error);
  const AllocatorSettings list = AllocatorSettings::parse("roundup_power2_divisions:[2:4,256:8,>:2]");
  EXPECT_EQ(list.roundup_power2_divisions,
            (std::array<int64_t, 16>{4, 4, 0, 0, 0, 0, 0, 0, 8, 2, 2, 2, 2, 2, 2, 2}));  // between those named: none
  EXPECT_EQ(AllocatorSettings::parse(list.text()), list);
}

/// Random work on the model itself, recorded with the model's own addresses and segment events.
std::shared_ptr<Snapshot> recorded(uint64_t seed, const AllocatorSettings& settings, int64_t limit, size_t& failures) {
  AllocatorModel model(settings, limit);
  auto s = std::make_shared<Snapshot>();
  s->streams = {0, 7};
  Philox random{seed, 21};
  uint64_t drawn = 0;
  struct Live {
    uint64_t address;
    int64_t size;
    uint32_t stream;
  };
  std::vector<Live> live;
  auto add = [&](Action a, uint64_t address, int64_t size, uint32_t stream) {
    s->events.action.push_back(a);
    s->events.address.push_back(address);
    s->events.size.push_back(size);
    s->events.time_us.push_back(-1);
    s->events.stream.push_back(stream);
    s->events.stack.push_back(snapshot::kNone);
    s->events.extra.push_back(snapshot::kNone);
    s->events.category.push_back(snapshot::kNone);
  };
  for (int i = 0; i < 1500; ++i) {
    if (!live.empty() && random.below(drawn++, 100) < 47) {
      size_t k = random.below(drawn++, live.size());
      model.free(live[k].address);
      add(Action::free_completed, live[k].address, live[k].size, live[k].stream);
      live.erase(live.begin() + static_cast<long>(k));
      continue;
    }
    const uint64_t scale = random.below(drawn, 18);
    int64_t size = static_cast<int64_t>(1 + random.below(drawn + 1, uint64_t{1} << (8 + scale)));
    drawn += 2;
    auto stream = static_cast<uint32_t>(random.below(drawn++, 4) == 0);
    uint64_t address = model.alloc(size, stream ? 7 : 0);
    if (address == AllocatorModel::kFailed) {
      ++failures;
      break;
    }
    add(Action::alloc, address, size, stream);
    live.push_back({address, size, stream});
  }
  s->traces.push_back({0, 0, s->events.size_()});
  return s;
}

TEST(AllocatorModel, ReplayingARecordingGivesItsSegmentEvents) {
  const char* all[] = {"", "expandable_segments:True", "max_split_size_mb:32", "roundup_power2_divisions:8",
                       "garbage_collection_threshold:0.6,max_split_size_mb:64"};
  for (uint64_t seed = 0; seed < 40; ++seed) {
    AllocatorSettings settings = AllocatorSettings::parse(all[seed % 5]);
    int64_t limit = seed % 3 == 0 ? 0 : int64_t{600} << 20;
    size_t failures = 0;
    auto s = recorded(seed, settings, limit, failures);
    auto again = snapshot::replay(*s, 0, settings, limit);
    AllocatorModel direct(settings, limit);
    std::unordered_map<uint64_t, uint64_t> place;
    for (size_t i = 0; i < s->events.size_(); ++i) {
      if (s->events.action[i] == Action::alloc)
        place[s->events.address[i]] = direct.alloc(s->events.size[i], s->streams[s->events.stream[i]]);
      else
        direct.free(place[s->events.address[i]]);
    }
    EXPECT_EQ(again.segment_events, direct.segment_events()) << seed;
    EXPECT_EQ(again.peak_reserved, direct.peak_reserved()) << seed;
    EXPECT_FALSE(again.failed) << "what was recorded had succeeded";
    // Invariants of any allocator: no less than what is alive, and pieces that cover their segments.
    std::vector<int64_t> streams;
    int64_t reserved = 0, taken = 0;
    for (const auto& g : direct.state(streams).segments) {
      reserved += g.total;
      taken += g.allocated;
    }
    EXPECT_EQ(reserved, direct.reserved()) << seed;
    EXPECT_EQ(taken, direct.allocated()) << seed;
    // The verdicts of what-if are those of running the model.
    Finding f = analyse("what-if", {s}, {"expandable_segments:True", "max_split_size_mb:128"}, int64_t{300} << 20);
    for (const auto& row : f.tables[0].rows) {
      const std::string& name = std::get<std::string>(row[0]);
      AllocatorSettings tried = name == "ideal"                   ? AllocatorSettings{.ideal = true}
                                : name.starts_with("as recorded") ? AllocatorSettings::of(*s)
                                                                  : AllocatorSettings::parse(name);
      auto expected = snapshot::replay(
          *s, 0, tried,
          snapshot::ReplayOptions{{int64_t{300} << 20, tried.garbage_collection_threshold > 0 ? int64_t{300} << 20 : 0},
                                  name.starts_with("as recorded"),
                                  nullptr});
      EXPECT_EQ(std::get<std::string>(row[5]).starts_with("yes"), expected.failed) << name;
      EXPECT_EQ(std::get<int64_t>(row[1]), expected.peak_reserved) << name;
    }
  }
}

TEST(SnapshotReader, HostileFilesAreRefused) {
  // GLOBAL os system, and protocol numbers to come.
  EXPECT_THROW(snapshot::parse_snapshot("cos\nsystem\n(S'true'\ntR."), Error);
  EXPECT_THROW(snapshot::parse_snapshot(std::string("\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93\x94.", 19)), Error);
  EXPECT_THROW(snapshot::parse_snapshot("\x80\x09N."), Error);
  EXPECT_THROW(snapshot::parse_snapshot("]q\xff\xff\xff\xff."), Error);
  EXPECT_THROW(snapshot::parse_snapshot(std::string("]r\xff\xff\xff\xff.", 7)), Error);
  EXPECT_THROW(snapshot::parse_snapshot(""), Error);
  EXPECT_THROW(snapshot::parse_snapshot("{\"a\": 1}"), Error);
  EXPECT_THROW(snapshot::parse_snapshot(std::string(100000, '[')), Error);
  EXPECT_THROW(snapshot::parse_snapshot(std::string(100000, ']')), Error);
}

}  // namespace
}  // namespace tenon::tracing
