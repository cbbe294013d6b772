#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/registry.h"
#include "projects/spikes/inquiry.h"
#include "tracing/analyses/finding.h"

namespace tenon::projects {

/// What replays may cost, at most.
struct ReplayCost {
  int64_t replays = 0, steps = 0;
  bool operator==(const ReplayCost&) const = default;
};

/// What made the spike.
struct Culprit {
  std::string what;           ///< "sample 7 (x.npy, row 7)"
  const Tried* tried = {};    ///< the replay without it, in which the spike is gone
  std::vector<int64_t> rows;  ///< of the training set, where it is some of its samples
  std::string layer;          ///< where it is one
};

/// One kind of cause, registered in the file that defines it.
struct CauseDef {
  std::string name;   ///< "sample"
  std::string title;  ///< "A sample, or a few of them"
  /// Of those that would explain a spike alike, the one that says more is asked first: the first that explains ends the
  /// search.
  int order = 0;
  /// Why it cannot be the cause here, without a replay: "the rate did not rise"; empty: it can.
  std::function<std::string(Inquiry&)> ruled_out;
  /// Known without a replay.
  std::function<ReplayCost(Inquiry&)> most;
  std::function<std::optional<Culprit>(Inquiry&)> ask;
};
/// In their order.
const Registry<CauseDef>& causes();
bool register_cause(CauseDef def, Place place = Place::current());

/// What a search would ask, and what it may cost: told before it begins.
struct CausePlan {
  struct Part {
    std::string name, title;
    std::string ruled_out;  ///< or why it does not fit the budget; empty: it is asked
    ReplayCost most;
  };
  std::vector<Part> parts;
  ReplayCost most;  ///< of all that are asked, and of the steps as they were
  double seconds = 0;
  /// "up to 31 replays, 214 steps, about 3 s"
  std::string text() const;
};
/// `budget`: steps that may be replayed, in all; a cause that may need more than what the ones before it leave is not
/// asked. 0: any.
CausePlan plan_causes(Inquiry& inquiry, int64_t budget = 0);

struct SpikeReport {
  std::string run;
  Spike spike;
  CausePlan plan;
  std::string cause;               ///< its name; empty: none of those that were asked
  std::optional<Culprit> culprit;  ///< lives as long as the inquiry
  std::vector<std::string> asked;  ///< names
  int64_t replays = 0, steps = 0;  ///< that it took

  /// "without sample 7 (x.npy, row 7) the loss of step 311 is 0.42 instead of 18.3; 9 replays, 61 steps"
  std::string sentence() const;
};
/// Asks the causes of a plan one after the other until one explains the spike; with `all` all of them, and the first
/// that explains it is the cause.
SpikeReport find_cause(Inquiry& inquiry, const CausePlan& plan, bool all = false);

/// With every replay as a row.
tracing::Finding spike_finding(const SpikeReport& report, const Inquiry& inquiry);
/// "tenon train P.tenon --from cnn-01@310 --set data.without=1204"
std::string branch_command(const std::string& project, const std::string& run, const Counterfactual& trial);

}  // namespace tenon::projects
