#include "tracing/checks/snapshot_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tracing/analyses/snapshot_analysis.h"

namespace tenon::tracing {
namespace {

using snapshot::Action;
using snapshot::Snapshot;
using snapshot::State;

Registry<FileCheck<CheckedSnapshot>>& snapshot_check_registry() {
  static auto& all = *new Registry<FileCheck<CheckedSnapshot>>("check of a memory snapshot");
  return all;
}

std::string device_text(int64_t device) {
  return device == snapshot::kHost ? std::string("the host") : fmt::format("device {}", device);
}

std::vector<Complaint> leaks(const CheckedSnapshot& c) {
  std::vector<Complaint> all;
  for (size_t t = 0; t < c.snapshot->traces.size(); ++t)
    for (const Leak& leak : find_leaks(*c.snapshot, t))
      all.push_back(
          {leak.site,
           fmt::format("{} in {} blocks stay, {} more in each window of the recording", bytes_text(leak.bytes),
                       count_text(leak.count), bytes_text(leak.bytes_per_window)),
           "look for what keeps them: a list of outputs or losses (loss.detach() or .item()), a hook, a cache",
           {},
           -1,
           Sight::at(leak.site)});
  return all;
}

std::vector<Complaint> fragmentation(const CheckedSnapshot& c) {
  constexpr double kShare = 0.25;
  constexpr int64_t kLeast = int64_t{64} << 20;
  struct Space {
    int64_t reserved = 0, split = 0, largest = 0;
  };
  std::map<int64_t, Space> devices;
  for (const snapshot::Segment& g : c.snapshot->segments) {
    Space& d = devices[g.device];
    d.reserved += g.total;
    const auto begin = c.snapshot->blocks.begin() + static_cast<ptrdiff_t>(g.first_block);
    const auto end = begin + static_cast<ptrdiff_t>(g.blocks);
    if (std::none_of(begin, end, [](const auto& b) { return b.state != State::inactive; })) continue;
    for (auto b = begin; b != end; ++b)
      if (b->state == State::inactive) d.split += b->size, d.largest = std::max(d.largest, b->size);
  }
  std::vector<Complaint> all;
  for (const auto& [device, d] : devices)
    if (device != snapshot::kHost && d.split >= kLeast && share(d.split, d.reserved) >= kShare)
      all.push_back(
          {device_text(device),
           fmt::format("{} of {} reserved ({}) lie free between blocks that are in use, the largest piece "
                       "has {}",
                       bytes_text(d.split), bytes_text(d.reserved), share_text(share(d.split, d.reserved)),
                       bytes_text(d.largest)),
           "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; the page what-if of Findings, or `tenon memory what-if`, "
           "tries settings on this recording"});
  return all;
}

std::vector<Complaint> idle_cache(const CheckedSnapshot& c) {
  constexpr double kShare = 0.5;
  constexpr int64_t kLeast = int64_t{256} << 20;
  std::vector<Complaint> all;
  std::map<int64_t, std::pair<int64_t, int64_t>> devices;  // reserved, in segments where nothing is in use
  for (const snapshot::Segment& g : c.snapshot->segments) {
    auto& [reserved, idle] = devices[g.device];
    reserved += g.total;
    if (g.active == 0 && g.allocated == 0) idle += g.total;
  }
  for (const auto& [device, d] : devices)
    if (device != snapshot::kHost && d.second >= kLeast && share(d.second, d.first) >= kShare)
      all.push_back({device_text(device),
                     fmt::format("{} of {} reserved are segments in which nothing is in use: something before needed "
                                 "far more",
                                 bytes_text(d.second), bytes_text(d.first)),
                     "find the peak (the page peak of Findings, or `tenon memory peak`) and lower it; "
                     "torch.cuda.empty_cache() once behind it gives the rest to other processes"});
  return all;
}

std::vector<Complaint> out_of_memory(const CheckedSnapshot& c) {
  std::vector<Complaint> all;
  const auto& events = c.snapshot->events;
  for (const snapshot::DeviceTrace& t : c.snapshot->traces) {
    int64_t count = 0, wanted = 0, free = 0;
    std::string site;
    for (size_t i = t.begin; i < t.end; ++i)
      if (events.action[i] == Action::oom) {
        ++count;
        wanted = events.size[i];
        free = static_cast<int64_t>(std::min<uint64_t>(events.address[i], uint64_t{1} << 60));
        if (events.stack[i] != snapshot::kNone) site = c.snapshot->site(events.stack[i]);
      }
    if (count)
      all.push_back({device_text(t.device),
                     fmt::format("{} out of memory, the last where {} were asked for and the driver had {}",
                                 count == 1 ? std::string("once") : count_text(count) + " times", bytes_text(wanted),
                                 bytes_text(free)),
                     "the page oom of Findings, or `tenon memory oom`, tells what stood in the way",
                     {},
                     -1,
                     site.empty() ? Sight{} : Sight::at(site)});
  }
  return all;
}

std::vector<Complaint> segments_come_and_go(const CheckedSnapshot& c) {
  constexpr int64_t kMany = 20;
  std::vector<Complaint> all;
  for (const snapshot::DeviceTrace& t : c.snapshot->traces) {
    int64_t given = 0, taken_again = 0;
    for (size_t i = t.begin; i < t.end; ++i) {
      const Action a = c.snapshot->events.action[i];
      if (a == Action::segment_free) ++given;
      if (a == Action::segment_alloc && given > taken_again) ++taken_again;
    }
    if (t.device != snapshot::kHost && taken_again >= kMany)
      all.push_back({device_text(t.device),
                     fmt::format("{} segments were given back to the driver and {} taken anew behind that: each call "
                                 "waits for the device",
                                 count_text(given), count_text(taken_again)),
                     "no torch.cuda.empty_cache() in a step; expandable_segments:True where sizes differ from step to "
                     "step"});
  }
  return all;
}

std::vector<Complaint> stacks_recorded(const CheckedSnapshot& c) {
  const auto& s = *c.snapshot;
  if (s.events.size_() == 0)
    return {{{},
             "no events were recorded: what is alive is there, and not who took it when",
             "call torch.cuda.memory._record_memory_history(max_entries=1_000_000) before what is to be seen"}};
  int64_t allocs = 0, bare = 0;
  for (size_t i = 0; i < s.events.size_(); ++i)
    if (s.events.action[i] == Action::alloc) ++allocs, bare += s.events.stack[i] == snapshot::kNone;
  if (allocs == 0 || share(bare, allocs) < 0.5) return {};
  return {{{},
           fmt::format("{} of {} allocations do not say who made them", count_text(bare), count_text(allocs)),
           "record with stacks: _record_memory_history(stacks=\"python\")"}};
}

std::vector<Complaint> whole_recording(const CheckedSnapshot& c) {
  std::vector<Complaint> all;
  if (c.snapshot->truncated)
    all.push_back({{}, "the file ends before its time; what it holds up to there was read", "record it again"});
  for (const auto& [kind, count] : c.snapshot->repairs)
    all.push_back({{},
                   fmt::format("{} ({} times)", kind, count_text(static_cast<int64_t>(count))),
                   "record it again where this matters"});
  return all;
}

const bool registered_snapshot_checks =
    register_snapshot_check({"snapshot.leak", "Memory that stays and grows", leaks}) &&
    register_snapshot_check({"snapshot.fragmentation", "Free memory lies in pieces", fragmentation}) &&
    register_snapshot_check({"snapshot.idle_cache", "Most of what is reserved is not used", idle_cache}) &&
    register_snapshot_check({"snapshot.out_of_memory", "An allocation failed", out_of_memory}) &&
    register_snapshot_check({"snapshot.segments", "Segments come and go", segments_come_and_go}) &&
    register_snapshot_check({"snapshot.stacks", "Who allocated was not recorded", stacks_recorded}) &&
    register_snapshot_check({"snapshot.file", "The file is not whole", whole_recording});

}  // namespace

const Registry<FileCheck<CheckedSnapshot>>& snapshot_checks() { return snapshot_check_registry(); }
bool register_snapshot_check(FileCheck<CheckedSnapshot> check, Place place) {
  return snapshot_check_registry().add(std::move(check), place);
}
std::vector<CheckResult> check_snapshot(std::shared_ptr<const Snapshot> snapshot) {
  return run_checks(snapshot_checks(), CheckedSnapshot{std::move(snapshot)});
}

}  // namespace tenon::tracing
