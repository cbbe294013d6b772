#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "projects/project.h"
#include "projects/time_travel.h"
#include "tracing/analyses/finding.h"
#include "tracing/record/memory_owners.h"
#include "tracing/record/survivors.h"

// Note [Leaks by replay]
// A run is replayed from its checkpoint, its batches fetched by the thread that steps, and every block of memory that a
// step takes is followed. A place (layer, op, part of the step, category) whose memory grows to the end of the window
// is looked at for longer, until whatever fills in an epoch has had one: only growth that goes on then is a leak. Of
// its survivors a few are asked who holds them (Note [Who holds a tensor]). The proof is the same replay again, in
// which that owner's handles are emptied now and then while it runs, and nothing else is touched: what grows no more
// was held by it, and where losses are the same bits the run does not need what it kept.
namespace tenon::projects {

struct LeakOptions {
  int64_t from = 0, to = 0;  ///< the window; 0: the last steps of the run
  bool prove = true;
};

/// What a search does, told before it begins.
struct LeakPlan {
  int64_t from = 0, to = 0;
  int64_t kept = 0;       ///< the step of the checkpoint that replays begin with
  int64_t to_window = 0;  ///< steps replayed if nothing grows
  int64_t most = 0;       ///< with those behind the window that tell growth that ends, and one proof
  double seconds = -1;    ///< about what `most` took when the run trained; -1: nobody knows
  /// "40 steps, up to 120 where something grows, about 3 s"
  std::string text() const;
};
/// Throws Error (usage) for steps that the run has not done, and for a window of too few steps.
LeakPlan plan_leaks(Project& project, int64_t run, const LeakOptions& options);

/// A place whose memory grows, or grew.
struct LeakPlace {
  tracing::MemoryPlace place;
  double bytes_a_step = 0, blocks_a_step = 0;  ///< over the later half of the window
  int64_t kept = 0;                            ///< bytes at the end
  int64_t last_growth = 0;                     ///< the last step that added to it
};

/// The replay without an owner.
struct LeakProof {
  bool done = false;
  double before = 0, after = 0;  ///< bytes a step, of the leak's places over the later half of the window
  bool gone = false;
  bool same_losses = false;  ///< every loss of the window has the bits it had
  int64_t other_loss = 0;    ///< the first step whose loss has not
  int64_t emptied = 0;       ///< tensors
  std::string why_not;       ///< why there is none, or why nothing could be emptied
};

struct RunLeak {
  tracing::TensorOwner owner;
  std::vector<tracing::TensorOwner> also;  ///< others that hold the same, without which it does not go either
  std::vector<std::string> chain;          ///< from the root to one of its survivors
  bool by_graph = false, by_view = false;
  std::vector<LeakPlace> places;  ///< largest first
  double bytes_a_step = 0;
  LeakProof proof;

  /// "the variable kept of wave.so holds ..."
  std::string sentence() const;
  /// What to change.
  std::string edit() const;
};

struct LeakReport {
  std::string run;
  int64_t from = 0, to = 0;
  int64_t looked_to = 0;         ///< the step up to which growth was followed
  int64_t replayed = 0;          ///< steps
  std::vector<RunLeak> leaks;    ///< largest first
  std::vector<LeakPlace> ended;  ///< what grew in the window and stopped
  std::string sentence() const;
};
/// Throws Error "cancelled" where progress says so; otherwise as plan_leaks().
LeakReport find_run_leaks(Project& project, int64_t run, const LeakOptions& options, const Progress& progress = {});

tracing::Finding leak_finding(const LeakReport& report);

}  // namespace tenon::projects
