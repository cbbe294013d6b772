// Recordings of PyTorch's own allocator (tests/peers/snapshots.py made them, without a device) against our model of it
// and our reading. TENON_SNAPSHOTS names another folder of such recordings to go through instead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tracing/analyses/snapshot_analysis.h"
#include "tracing/snapshot/allocator_model.h"

namespace tenon::snapshot {
namespace {

using nlohmann::json;

std::string snapshots_folder() {
  const char* other = std::getenv("TENON_SNAPSHOTS");
  return other ? other : TENON_SOURCE_DIR "/tests/tracing/data/snapshots";
}
json figures() {
  std::ifstream in(snapshots_folder() + "/figures.json");
  return json::parse(in);
}
int64_t total_of(const json& said) { return said["case"].value("total", int64_t{8} << 30); }
int64_t allowed_of(const json& said) {
  return said["case"].contains("fraction")
             ? static_cast<int64_t>(said["case"]["fraction"].get<double>() * static_cast<double>(total_of(said)))
             : 0;
}
bool from_the_start(const json& said) { return !said["case"].contains("before") && !said["dropped"]; }

std::string text(const AllocatorModel::SegmentEvent& e) {
  return std::string(name(e.action)) + " " + std::to_string(e.size) + " on " + std::to_string(e.stream);
}

/// Where two lists of segment events differ first; empty where they do not.
std::string difference(const std::vector<AllocatorModel::SegmentEvent>& model,
                       const std::vector<AllocatorModel::SegmentEvent>& real) {
  for (size_t i = 0; i < std::max(model.size(), real.size()); ++i)
    if (i >= model.size() || i >= real.size() || !(model[i] == real[i]))
      return "event " + std::to_string(i) + " of " + std::to_string(real.size()) + ": the model has " +
             (i < model.size() ? text(model[i]) : "none") + ", PyTorch had " +
             (i < real.size() ? text(real[i]) : "none");
  return "";
}
/// Where two states differ first: segments by address, blocks with sizes and states.
std::string difference(const AllocatorState& ours, const AllocatorState& real) {
  for (size_t i = 0; i < std::max(ours.segments.size(), real.segments.size()); ++i) {
    if (i >= ours.segments.size() || i >= real.segments.size())
      return "numbers of segments " + std::to_string(ours.segments.size()) + " and " +
             std::to_string(real.segments.size());
    const Segment &a = ours.segments[i], &b = real.segments[i];
    if (a.address != b.address || a.total != b.total || a.large != b.large || a.expandable != b.expandable ||
        a.stream != b.stream || a.pool != b.pool)
      return "segment " + std::to_string(i) + ": " + std::to_string(a.address) + " of " + std::to_string(a.total) +
             " large " + std::to_string(a.large) + " pool " + std::to_string(a.pool.a) + "," +
             std::to_string(a.pool.b) + " and " + std::to_string(b.address) + " of " + std::to_string(b.total) +
             " large " + std::to_string(b.large) + " pool " + std::to_string(b.pool.a) + "," + std::to_string(b.pool.b);
    if (a.active != b.active || a.allocated != b.allocated || a.requested != b.requested)
      return "sums of segment " + std::to_string(i) + ": " + std::to_string(a.active) + " and " +
             std::to_string(b.active);
    for (size_t k = 0; k < std::max(a.blocks, b.blocks); ++k) {
      if (k >= a.blocks || k >= b.blocks)
        return "numbers of blocks of segment " + std::to_string(i) + ": " + std::to_string(a.blocks) + " and " +
               std::to_string(b.blocks);
      const Block &x = ours.blocks[a.first_block + k], &y = real.blocks[b.first_block + k];
      if (x.address != y.address || x.size != y.size || x.state != y.state ||
          (x.state != State::inactive && x.requested != y.requested))
        return "block " + std::to_string(k) + " of segment " + std::to_string(i) + ": " + std::to_string(x.address) +
               " of " + std::to_string(x.size) + " and " + std::to_string(y.address) + " of " + std::to_string(y.size);
    }
  }
  return "";
}

/// Every recording of the folder, the first ones that differ named, and how many there were.
template <class F>
void for_each_recording(const F& check) {
  const json all = figures();
  ASSERT_FALSE(all.empty());
  size_t wrong = 0;
  for (const auto& [name, said] : all.items()) {
    auto s = read_snapshot(snapshots_folder() + "/" + name + ".pickle.gz");
    const std::string what = check(name, said, *s);
    if (what.empty()) continue;
    if (++wrong <= 20) ADD_FAILURE() << name << " (" << said["case"].dump() << "): " << what;
  }
  EXPECT_EQ(wrong, 0u) << "of " << all.size() << " recordings";
}

TEST(RealAllocator, ReplayingARecordingGivesItsSegmentEvents) {
  for_each_recording([](const std::string&, const json& said, const Snapshot& s) -> std::string {
    const auto settings = AllocatorSettings::of(s);
    if (settings.garbage_collection_threshold > 0 && !from_the_start(said))
      return "";  // how long a block has been unused no dump tells
    Replay r = replay(s, 0, settings, {{total_of(said), allowed_of(said)}, true, nullptr});
    if (auto d = difference(r.segment_events, recorded_segment_events(s, 0)); !d.empty() || r.moved)
      return d + "; " + std::to_string(r.moved) + " allocations lie elsewhere, first that of event " +
             std::to_string(r.moved_at);
    if (from_the_start(said)) {
      if (r.peak_reserved != said["reserved_bytes.all.peak"]) return "peak reserved " + std::to_string(r.peak_reserved);
      if (static_cast<int64_t>(r.failures.size()) != said["num_ooms"])
        return "failures " + std::to_string(r.failures.size());
    }
    return "";
  });
}

TEST(RealAllocator, WhatARecordingTellsOfItsLimitIsEnoughToReplayIt) {
  for_each_recording([](const std::string&, const json& said, const Snapshot& s) -> std::string {
    const auto settings = AllocatorSettings::of(s);
    if (settings.garbage_collection_threshold > 0) return "";  // of what share garbage is collected no recording tells
    const KnownLimits known = limits_of(s, 0);
    if (settings.expandable_segments && known.less_than && !known.failed)
      return "";  // its segments' reach depends on what the device has in all
    Replay r = replay(s, 0, settings, {{}, true, nullptr});
    if (auto d = difference(r.segment_events, recorded_segment_events(s, 0)); !d.empty()) return d;
    const int64_t real = allowed_of(said) ? allowed_of(said) : total_of(said);
    if ((allowed_of(said) ? known.allowed_at_least : known.at_least) > real)
      return "at least " + std::to_string(known.at_least);
    if (known.less_than && (allowed_of(said) ? known.allowed_less_than : known.less_than) <= real)
      return "less than " + std::to_string(known.less_than);
    return "";
  });
}

TEST(RealAllocator, ItsOwnFiguresAreOurs) {
  for_each_recording([](const std::string&, const json& said, const Snapshot& s) -> std::string {
    int64_t reserved = 0, allocated = 0, active = 0, requested = 0;
    for (const Segment& g : s.segments)
      if (g.device == 0) reserved += g.total, allocated += g.allocated, active += g.active;
    Timeline t(s, 0);
    if (t.events()) requested = t.bytes(t.events() - 1);
    if (reserved != said["reserved"]) return "reserved " + std::to_string(reserved);
    if (allocated != said["allocated"]) return "allocated " + std::to_string(allocated);
    if (active != said["active_bytes.all.current"]) return "active " + std::to_string(active);
    if (requested != said["requested_bytes.all.current"]) return "requested at the end " + std::to_string(requested);
    if (from_the_start(said) && t.peak_bytes() != said["requested_bytes.all.peak"])
      return "requested at the peak " + std::to_string(t.peak_bytes());
    return "";
  });
}

TEST(RealAllocator, ItsStateAtAnEarlierEventIsReconstructed) {
  size_t compared = 0;
  for_each_recording([&](const std::string& name, const json& said, const Snapshot& s) -> std::string {
    if (!said.contains("middle")) return "";
    auto middle = read_snapshot(snapshots_folder() + "/" + name + ".at.pickle.gz");
    // The later recording goes on where the earlier one ended, if its ring of events has not forgotten that.
    const auto& mine = middle->traces.at(0);
    const size_t at = mine.end - mine.begin;
    const auto& all = s.traces.at(0);
    if (said["dropped"]) return "";
    if (all.end - all.begin < at) return "the later recording is shorter";
    AllocatorState state = state_after(s, 0, at), real = state_at_end(*middle, 0);
    auto stream = [](const Snapshot& of, Segment& g) {
      g.stream = g.stream < of.streams.size() ? static_cast<uint32_t>(of.streams[g.stream] >> 8) : 0;
    };
    for (Segment& g : state.segments) stream(s, g);
    for (Segment& g : real.segments) stream(*middle, g);
    ++compared;
    if (state.doubts) return std::to_string(state.doubts) + " doubts";
    if (auto d = difference(state, real); !d.empty()) return d;
    int64_t reserved = 0;
    for (const Segment& g : state.segments) reserved += g.total;
    if (reserved != said["middle"]["reserved"]) return "reserved " + std::to_string(reserved);
    return "";
  });
  EXPECT_GT(compared, 0u);
}

TEST(RealAllocator, TheModelEndsWhereTheAllocatorEnded) {
  for_each_recording([&](const std::string&, const json& said, const Snapshot& s) -> std::string {
    const auto settings = AllocatorSettings::of(s);
    if (settings.garbage_collection_threshold > 0 && !from_the_start(said)) return "";
    Replay r = replay(s, 0, settings, {{total_of(said), allowed_of(said)}, true, nullptr});
    AllocatorState end = state_after(s, 0, s.traces.at(0).end - s.traces.at(0).begin), real = state_at_end(s, 0);
    if (auto d = difference(end, real); !d.empty()) return "nothing undone: " + d;
    return difference(r.end, real);
  });
}

tracing::Finding run(const char* analysis, const std::shared_ptr<const Snapshot>& s, int64_t at = -1) {
  tracing::SnapshotRequest r;
  r.snapshots = {s};
  r.at = at;
  return tracing::snapshot_analyses().at(analysis).run(r);
}
int64_t fact(const tracing::Finding& f, const std::string& name) {
  for (const tracing::Fact& x : f.facts)
    if (x.name == name) return std::get<int64_t>(x.value);
  ADD_FAILURE() << name << " is missing";
  return -1;
}

TEST(RealAllocator, AFailureIsDescribedAsItWasWhenItCame) {
  size_t failures = 0;
  const json all = figures();
  for (const auto& [name, said] : all.items()) {
    if (!said["case"].contains("at_failure")) continue;
    ++failures;
    auto then = read_snapshot(snapshots_folder() + "/" + name + ".at.pickle.gz"),
         later = read_snapshot(snapshots_folder() + "/" + name + ".pickle.gz");
    tracing::Finding f = run("oom", later), as_dumped = run("oom", then), space = run("fragmentation", then);
    EXPECT_EQ(f.sentence, as_dumped.sentence);
    EXPECT_EQ(fact(f, "reserved_bytes"), said["middle"]["reserved"]);
    EXPECT_EQ(fact(f, "live_bytes"), said["middle"]["requested_bytes.all.current"]);
    EXPECT_EQ(fact(f, "limit_bytes"), total_of(said));
    EXPECT_EQ(fact(f, "free_bytes"), fact(space, "free_bytes"));
    EXPECT_EQ(fact(f, "largest_free_bytes"), fact(space, "largest_free_bytes"));
    // What it is now differs: the dump alone would tell of another moment.
    EXPECT_NE(fact(f, "free_bytes"), fact(run("fragmentation", later), "free_bytes")) << name;
    tracing::Finding before = run("fragmentation", later, fact(f, "event"));
    for (const char* same : {"reserved_bytes", "free_bytes", "largest_free_bytes", "stuck_bytes", "returnable_bytes"})
      EXPECT_EQ(fact(before, same), fact(space, same)) << same;
  }
  EXPECT_EQ(failures, 2u);
}

TEST(RealAllocator, WhatIfRepeatsTheRecordingFirst) {
  for_each_recording([](const std::string& name, const json&, const Snapshot&) -> std::string {
    auto s = read_snapshot(snapshots_folder() + "/" + name + ".pickle.gz");
    if (AllocatorSettings::of(*s).garbage_collection_threshold > 0) return "";
    tracing::Finding f = run("what-if", s);
    for (const tracing::Fact& x : f.facts)
      if (x.name == "repeats") return std::get<std::string>(x.value) == "yes" ? "" : std::get<std::string>(x.value);
    return "it does not say";
  });
}

TEST(RealRecording, ItsPlacesAreLinesOfTheUsersCode) {
  // With C++ frames between, gradients from threads of autograd, and the forward call's frames where it was asked for
  // them.
  for (const char* version : {"2.15", "2.3"}) {
    auto s = read_snapshot(snapshots_folder() + "/training-" + version + ".pickle.gz");
    Timeline t(*s, 0);
    std::map<std::string, int64_t> places;
    for (uint32_t id = 0; id < t.elements(); ++id) {
      std::string place = s->site(t.element(id).stack);
      ++places[place.substr(0, place.find(" ("))];
    }
    for (const char* expected : {"build", "batch", "one_step"}) EXPECT_GT(places[expected], 0) << version;
    size_t autograd = 0;
    for (const auto& [place, count] : places) {
      const bool users = place == "build" || place == "batch" || place == "one_step";
      const bool backward = place.starts_with("torch::autograd::generated::"),
                 workspace = place.find("Workspace") != std::string::npos;
      const bool named =
          place.find("at::") != std::string::npos &&
          place.find("at::detail") == std::string::npos;  // of a thread whose backward function was not unwound
      EXPECT_TRUE(users || backward || workspace || named) << version << ": " << place << " " << count;
      autograd += backward;
    }
    EXPECT_GT(autograd, 0u) << version;
  }
  // Pinned memory of the host is counted apart.
  auto s = read_snapshot(snapshots_folder() + "/training-2.15.pickle.gz");
  const bool host = std::any_of(s->traces.begin(), s->traces.end(),
                                [](const DeviceTrace& t) { return t.device == kHost && t.end > t.begin; });
  EXPECT_TRUE(host);
  int64_t device = 0;
  for (const Segment& g : s->segments) device += g.device == 0 ? g.total : 0;
  EXPECT_EQ(fact(run("info", s), "reserved_bytes"), device);
  EXPECT_EQ(device, figures()["training-2.15"]["reserved"]);
}

TEST(RealRecording, WhatIsCutOffKeepsTheNumbersOfItsDevices) {
  // Nothing was recorded of the first device; the file ends within the second one's events.
  const std::string events =
      R"({"action": "alloc", "addr": 4096, "size": 100, "stream": 0}, {"action": "alloc", "addr": 8192, "size": 100, "stream": 0})";
  auto s = parse_snapshot(R"({"segments": [], "device_traces": [[], [)" + events + ", {\"action\": \"al");
  ASSERT_EQ(s->traces.size(), 1u);
  EXPECT_EQ(s->traces[0].device, 1);
  EXPECT_TRUE(s->truncated);
  // As pickles have it: EMPTY_LIST MARK items; the inner lists one after the other, the second one open.
  auto text = [](const std::string& t) { return std::string("\x8c") + static_cast<char>(t.size()) + t; };
  auto event = "}(" + text("action") + text("alloc") + text("addr") + "M\x10\x10" + text("size") + "K\x64" +
               text("stream") + "K" + std::string(1, '\0') + "u";
  std::string pickle = std::string("\x80\x04", 2) + "}(" + text("segments") + "]" + text("device_traces") + "](](" +
                       "](" + event + event;
  pickle.replace(pickle.find("](](]("), 6, "](]](");  // the first one empty and complete
  auto p = parse_snapshot(pickle);
  ASSERT_EQ(p->traces.size(), 1u);
  EXPECT_EQ(p->traces[0].device, 1);
  EXPECT_EQ(p->traces[0].end - p->traces[0].begin, 2u);
}

}  // namespace
}  // namespace tenon::snapshot
