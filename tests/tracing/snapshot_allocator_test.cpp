// Recordings of PyTorch's own allocator (tests/peers/snapshots.py made them, without a device) against our model of it and our reading.
// TENON_SNAPSHOTS names another folder of such recordings to go through instead.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tracing/snapshot/allocator_model.h"

namespace tenon::snapshot {
namespace {

using nlohmann::json;

std::string folder() {
  const char* other = std::getenv("TENON_SNAPSHOTS");
  return other ? other : TENON_SOURCE_DIR "/tests/tracing/data/snapshots";
}
json figures() {
  std::ifstream in(folder() + "/figures.json");
  return json::parse(in);
}
int64_t total_of(const json& said) { return said["case"].value("total", int64_t{8} << 30); }
int64_t allowed_of(const json& said) { return said["case"].contains("fraction") ? static_cast<int64_t>(said["case"]["fraction"].get<double>() * static_cast<double>(total_of(said))) : 0; }
bool from_the_start(const json& said) { return !said["case"].contains("before") && !said["dropped"]; }

std::string text(const AllocatorModel::SegmentEvent& e) { return std::string(name(e.action)) + " " + std::to_string(e.size) + " on " + std::to_string(e.stream); }

/// Where two lists of segment events differ first; empty where they do not.
std::string difference(const std::vector<AllocatorModel::SegmentEvent>& model, const std::vector<AllocatorModel::SegmentEvent>& real) {
  for (size_t i = 0; i < std::max(model.size(), real.size()); ++i)
    if (i >= model.size() || i >= real.size() || !(model[i] == real[i]))
      return "event " + std::to_string(i) + " of " + std::to_string(real.size()) + ": the model has " + (i < model.size() ? text(model[i]) : "none") + ", PyTorch had " + (i < real.size() ? text(real[i]) : "none");
  return "";
}
/// Where two states differ first: segments by address, blocks with sizes and states.
std::string difference(const AllocatorState& ours, const AllocatorState& real) {
  for (size_t i = 0; i < std::max(ours.segments.size(), real.segments.size()); ++i) {
    if (i >= ours.segments.size() || i >= real.segments.size()) return "numbers of segments " + std::to_string(ours.segments.size()) + " and " + std::to_string(real.segments.size());
    const Segment &a = ours.segments[i], &b = real.segments[i];
    if (a.address != b.address || a.total != b.total || a.large != b.large || a.expandable != b.expandable || a.stream != b.stream || a.pool != b.pool)
      return "segment " + std::to_string(i) + ": " + std::to_string(a.address) + " of " + std::to_string(a.total) + " large " + std::to_string(a.large) + " pool " + std::to_string(a.pool.a) + "," + std::to_string(a.pool.b) + " and " + std::to_string(b.address) + " of " +
             std::to_string(b.total) + " large " + std::to_string(b.large) + " pool " + std::to_string(b.pool.a) + "," + std::to_string(b.pool.b);
    if (a.active != b.active || a.allocated != b.allocated || a.requested != b.requested) return "sums of segment " + std::to_string(i) + ": " + std::to_string(a.active) + " and " + std::to_string(b.active);
    for (size_t k = 0; k < std::max(a.blocks, b.blocks); ++k) {
      if (k >= a.blocks || k >= b.blocks) return "numbers of blocks of segment " + std::to_string(i) + ": " + std::to_string(a.blocks) + " and " + std::to_string(b.blocks);
      const Block &x = ours.blocks[a.first_block + k], &y = real.blocks[b.first_block + k];
      if (x.address != y.address || x.size != y.size || x.state != y.state || (x.state != State::inactive && x.requested != y.requested))
        return "block " + std::to_string(k) + " of segment " + std::to_string(i) + ": " + std::to_string(x.address) + " of " + std::to_string(x.size) + " and " + std::to_string(y.address) + " of " + std::to_string(y.size);
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
    auto s = read_snapshot(folder() + "/" + name + ".pickle.gz");
    const std::string what = check(name, said, *s);
    if (what.empty()) continue;
    if (++wrong <= 20) ADD_FAILURE() << name << " (" << said["case"].dump() << "): " << what;
  }
  EXPECT_EQ(wrong, 0u) << "of " << all.size() << " recordings";
}

TEST(RealAllocator, ReplayingARecordingGivesItsSegmentEvents) {
  for_each_recording([](const std::string&, const json& said, const Snapshot& s) -> std::string {
    const auto settings = AllocatorSettings::of(s);
    if (settings.garbage_collection_threshold > 0 && !from_the_start(said)) return "";  // how long a block has been unused no dump tells
    Replay r = replay(s, 0, settings, {{total_of(said), allowed_of(said)}, true});
    if (auto d = difference(r.segment_events, recorded_segment_events(s, 0)); !d.empty() || r.moved) return d + "; " + std::to_string(r.moved) + " allocations lie elsewhere, first that of event " + std::to_string(r.moved_at);
    if (from_the_start(said)) {
      if (r.peak_reserved != said["reserved_bytes.all.peak"]) return "peak reserved " + std::to_string(r.peak_reserved);
      if (static_cast<int64_t>(r.failures) != said["num_ooms"]) return "failures " + std::to_string(r.failures);
    }
    return "";
  });
}

TEST(RealAllocator, WhatARecordingTellsOfItsLimitIsEnoughToReplayIt) {
  for_each_recording([](const std::string&, const json& said, const Snapshot& s) -> std::string {
    const auto settings = AllocatorSettings::of(s);
    if (settings.garbage_collection_threshold > 0) return "";  // of what share garbage is collected no recording tells
    const KnownLimits known = limits_of(s, 0);
    if (settings.expandable_segments && known.less_than && !known.failed) return "";  // its segments' reach depends on what the device has in all
    Replay r = replay(s, 0, settings, {{}, true});
    if (auto d = difference(r.segment_events, recorded_segment_events(s, 0)); !d.empty()) return d;
    const int64_t real = allowed_of(said) ? allowed_of(said) : total_of(said);
    if ((allowed_of(said) ? known.allowed_at_least : known.at_least) > real) return "at least " + std::to_string(known.at_least);
    if (known.less_than && (allowed_of(said) ? known.allowed_less_than : known.less_than) <= real) return "less than " + std::to_string(known.less_than);
    return "";
  });
}

TEST(RealAllocator, ItsOwnFiguresAreOurs) {
  for_each_recording([](const std::string&, const json& said, const Snapshot& s) -> std::string {
    int64_t reserved = 0, allocated = 0, active = 0, requested = 0;
    for (const Segment& g : s.segments) reserved += g.total, allocated += g.allocated, active += g.active;
    Timeline t(s, 0);
    if (t.events()) requested = t.bytes(t.events() - 1);
    if (reserved != said["reserved"]) return "reserved " + std::to_string(reserved);
    if (allocated != said["allocated"]) return "allocated " + std::to_string(allocated);
    if (active != said["active_bytes.all.current"]) return "active " + std::to_string(active);
    if (requested != said["requested_bytes.all.current"]) return "requested at the end " + std::to_string(requested);
    if (from_the_start(said) && t.peak_bytes() != said["requested_bytes.all.peak"]) return "requested at the peak " + std::to_string(t.peak_bytes());
    return "";
  });
}

TEST(RealAllocator, ItsStateAtAnEarlierEventIsReconstructed) {
  size_t compared = 0;
  for_each_recording([&](const std::string& name, const json& said, const Snapshot& s) -> std::string {
    if (!said.contains("middle")) return "";
    auto middle = read_snapshot(folder() + "/" + name + ".at.pickle.gz");
    // The later recording goes on where the earlier one ended, if its ring of events has not forgotten that.
    const auto& mine = middle->traces.at(0);
    const size_t at = mine.end - mine.begin;
    const auto& all = s.traces.at(0);
    if (said["dropped"]) return "";
    if (all.end - all.begin < at) return "the later recording is shorter";
    AllocatorState state = state_after(s, 0, at), real = state_at_end(*middle, 0);
    auto stream = [](const Snapshot& of, Segment& g) { g.stream = g.stream < of.streams.size() ? static_cast<uint32_t>(of.streams[g.stream] >> 8) : 0; };
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
    Replay r = replay(s, 0, settings, {{total_of(said), allowed_of(said)}, true});
    AllocatorState end = state_after(s, 0, s.traces.at(0).end - s.traces.at(0).begin), real = state_at_end(s, 0);
    if (auto d = difference(end, real); !d.empty()) return "nothing undone: " + d;
    return difference(r.end, real);
  });
}

}  // namespace
}  // namespace tenon::snapshot
