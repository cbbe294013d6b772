#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "core/error.h"
#include "core/memory_image.h"
#include "engine/train/memory_growth.h"
#include "engine/train/session.h"
#include "projects/epoch_length.h"
#include "projects/leaks/leak_replay.h"

namespace tenon::projects {
namespace {

constexpr int64_t kUsualWindow = 20, kMostBeyond = 600;
constexpr size_t kAsked = 8;       // survivors of a place whose holders are looked for
constexpr int64_t kProofs = 3;     // replays for one leak: others may hold the same
constexpr int64_t kSettled = 2;    // steps after which what is still there was not only in use
constexpr double kNothing = 0.05;  // of the growth: less is none

/// Steps from the beginning of the window on after which growth is judged for good: what is filled once an epoch has
/// been, and as long again.
int64_t steps_to_judge(const RunInfo& run, const LeakPlan& plan) {
  const int64_t window = plan.to - plan.from + 1, replayed_before = plan.from - 1 - plan.kept;
  const int64_t epoch = epoch_of(run).steps;
  const int64_t wanted = std::max(3 * window, 2 * epoch + window - replayed_before);
  return std::min(std::max(wanted, window), window + kMostBeyond);
}

int64_t kept_before(const Project& project, const RunInfo& run, int64_t step) {
  int64_t kept = -1;
  for (const CheckpointInfo& c : project.checkpoints(run.id))
    if (c.step <= step) kept = std::max(kept, c.step);
  return kept;
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

std::vector<int64_t> first_of(const std::vector<int64_t>& all, int64_t n) {
  return {all.begin(), all.begin() + std::min<int64_t>(n, static_cast<int64_t>(all.size()))};
}

class LeakSearch {
 public:
  LeakSearch(Project& project, const RunInfo& run, const LeakPlan& plan, const Progress& progress)
      : project_(project), run_(run), plan_(plan), progress_(progress), total_(plan.to_window) {}

  LeakReport search(bool prove) {
    report_.run = run_.name;
    report_.from = plan_.from;
    report_.to = plan_.to;
    look();
    for (RunLeak& leak : report_.leaks) {
      if (!prove) {
        leak.proof.why_not = "it was not asked for";
        continue;
      }
      try {
        this->prove(leak);
      } catch (const Error& e) {
        // What the run keeps it may want as it was.
        if (cancelled_) throw;
        leak.proof = {};
        leak.proof.why_not = "the replay without it ends with: " + e.message();
      }
    }
    report_.replayed = replayed_;
    return std::move(report_);
  }

 private:
  int64_t window() const { return plan_.to - plan_.from + 1; }
  void stepped() {
    ++replayed_;
    cancelled_ = progress_ && !progress_(std::min(replayed_, total_), total_);
    if (cancelled_) throw Error("cancelled");
  }

  static bool any_grows(const std::vector<tracing::Survivors::OfPlace>& places) {
    return std::any_of(places.begin(), places.end(), [](const auto& p) { return growth_of(p.bytes).goes_on; });
  }

  void look() {
    LeakReplay replay(project_, run_, plan_, [this] { stepped(); });
    while (replay.survivors().steps() < window()) replay.step();
    losses_ = replay.losses();
    if (any_grows(replay.survivors().places())) {
      const int64_t all = steps_to_judge(run_, plan_);
      total_ += all - window();
      while (replay.survivors().steps() < all) replay.step();
    }
    report_.looked_to = plan_.from + replay.survivors().steps() - 1;
    sort_places(replay);
  }

  /// Those that grow, by who holds what they took; and those that have stopped.
  void sort_places(const LeakReplay& replay) {
    const auto places = replay.survivors().places();
    std::map<size_t, LeakPlace> growing;
    for (size_t i = 0; i < places.size(); ++i) {
      const MemoryGrowth g = growth_of(places[i].bytes);
      const auto in_window = first_of(places[i].bytes, window());
      LeakPlace p{places[i].place, growth_of(in_window).bytes_a_step,
                  growth_of(first_of(places[i].blocks, window())).bytes_a_step, g.kept, plan_.from + g.last_growth};
      if (g.goes_on)
        growing.emplace(i, std::move(p));
      else if (g.kept > 0 && g.last_growth > 0)
        report_.ended.push_back(std::move(p));
    }
    by_size(report_.ended, [](const LeakPlace& p) { return static_cast<double>(p.kept); });
    if (growing.empty()) return;
    const auto owners = owners_of(replay, growing);
    for (const auto& [at, place] : growing) add_place(place, owners.at(at));
    by_size(report_.leaks, [](const RunLeak& l) { return l.bytes_a_step; });
  }

  /// To the leak of its owner.
  void add_place(const LeakPlace& place, const tracing::Holding& h) {
    auto leak =
        std::find_if(report_.leaks.begin(), report_.leaks.end(), [&](const RunLeak& l) { return l.owner == h.owner; });
    if (leak == report_.leaks.end()) {
      report_.leaks.emplace_back().owner = h.owner;
      leak = report_.leaks.end() - 1;
    }
    // Of the ways the one to the largest part is told.
    if (leak->places.empty() || place.bytes_a_step > leak->places.front().bytes_a_step) leak->chain = h.chain;
    leak->by_graph |= h.by_graph;
    leak->by_view |= h.by_view();
    for (const tracing::TensorOwner& o : h.others)
      if (std::find(leak->also.begin(), leak->also.end(), o) == leak->also.end()) leak->also.push_back(o);
    leak->places.push_back(place);
    leak->bytes_a_step += place.bytes_a_step;
    by_size(leak->places, [](const LeakPlace& p) { return p.bytes_a_step; });
  }

  template <class T, class F>
  static void by_size(std::vector<T>& all, const F& size) {
    std::stable_sort(all.begin(), all.end(), [&](const T& a, const T& b) { return size(a) > size(b); });
  }

  /// Of each place what its youngest survivors are held by, the nearest counting most: whoever keeps a list of them has
  /// these nearest. That no way was found to one of them says nothing against the owner of the others. A place none of
  /// whose growth is old enough to be asked about has no known owner.
  std::map<size_t, tracing::Holding> owners_of(const LeakReplay& replay, const std::map<size_t, LeakPlace>& growing) {
    std::map<size_t, std::vector<Storage*>> of_place;
    for (const auto& b : replay.survivors().live())
      if (growing.contains(b.place) && b.step + kSettled < replay.survivors().steps())
        of_place[b.place].push_back(b.storage);
    std::vector<Storage*> targets;
    std::vector<size_t> places;  // of each target
    for (const auto& [place, blocks] : of_place)
      for (size_t k = 0; k < std::min(kAsked, blocks.size()); ++k) {
        targets.push_back(blocks[blocks.size() - 1 - k]);
        places.push_back(place);
      }
    const auto found = replay.holders_of(targets);
    std::map<size_t, std::map<tracing::TensorOwner, double>> nearness;
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i].owner.kind != tracing::OwnerKind::unknown)
        nearness[places[i]][found[i].owner] += std::exp2(-found[i].distance);
    std::map<size_t, tracing::Holding> all;
    for (size_t i = 0; i < found.size(); ++i)
      if (const auto& of = nearness[places[i]]; !of.empty() && found[i].owner == most(of))
        all.emplace(places[i], found[i]);
    for (const auto& [place, of] : growing) all.try_emplace(place, tracing::Holding::by_nobody());
    return all;
  }

  /// Who has the largest number.
  template <class T>
  static const tracing::TensorOwner& most(const std::map<tracing::TensorOwner, T>& of) {
    return std::max_element(of.begin(), of.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }

  static std::vector<tracing::MemoryPlace> places_of(const RunLeak& leak) {
    std::vector<tracing::MemoryPlace> all;
    for (const LeakPlace& p : leak.places) all.push_back(p.place);
    return all;
  }

  void prove(RunLeak& leak) {
    if (leak.owner.kind == tracing::OwnerKind::unknown) {
      leak.proof.why_not = "nobody is known who could be left out";
      return;
    }
    std::set<tracing::TensorOwner> owners{leak.owner};
    owners.insert(leak.also.begin(), leak.also.end());
    for (int64_t n = 0; n < kProofs; ++n) {
      total_ += plan_.to - plan_.kept;
      const std::vector<tracing::Holding> left = replay_without(leak, owners);
      if (leak.proof.gone) return;
      std::map<tracing::TensorOwner, int> others;
      for (const tracing::Holding& h : left)
        if (h.owner.kind != tracing::OwnerKind::unknown) ++others[h.owner];
      if (others.empty()) break;
      leak.also.push_back(most(others));
      owners.insert(most(others));
    }
    if (leak.proof.emptied == 0) leak.proof.why_not = "no way to a tensor of it was found again";
  }

  std::vector<tracing::Holding> replay_without(RunLeak& leak, const std::set<tracing::TensorOwner>& owners) {
    LeakReplay replay(project_, run_, plan_, [this] { stepped(); });
    const std::vector<tracing::MemoryPlace> places = places_of(leak);
    const int64_t n = window();
    while (replay.survivors().steps() < n) {
      replay.step();
      if (replay.survivors().steps() == n / 2 || replay.survivors().steps() == n) replay.empty_tensors(places, owners);
    }
    judge(leak, replay);
    return replay.left();
  }

  void judge(RunLeak& leak, const LeakReplay& without) const {
    LeakProof& proof = leak.proof;
    proof = {};
    proof.done = true;
    proof.before = leak.bytes_a_step;
    proof.after = growth_of(without.bytes_of(places_of(leak))).bytes_a_step;
    proof.gone = proof.after <= kNothing * proof.before;
    proof.emptied = without.emptied();
    const auto [mine, other] = std::mismatch(losses_.begin(), losses_.end(), without.losses().begin(), same_bits);
    proof.same_losses = mine == losses_.end();
    if (!proof.same_losses) proof.other_loss = plan_.from + (mine - losses_.begin());
  }

  Project& project_;
  const RunInfo& run_;
  const LeakPlan& plan_;
  const Progress& progress_;
  int64_t replayed_ = 0, total_ = 0;
  bool cancelled_ = false;
  std::vector<double> losses_;
  LeakReport report_;
};

}  // namespace

std::string LeakPlan::text() const {
  std::string t = fmt::format("{} step{}", tracing::count_text(to_window), to_window == 1 ? "" : "s");
  if (most > to_window) t += fmt::format(", up to {} where something grows", tracing::count_text(most));
  if (seconds >= 0) t += seconds < 1 ? ", less than a second" : fmt::format(", about {:.0f} s", seconds);
  return t;
}

LeakPlan plan_leaks(Project& project, int64_t run, const LeakOptions& options) {
  const RunInfo info = project.run(run);
  LeakPlan plan;
  const int64_t first = info.branch.step + 1;
  plan.to = options.to ? options.to : options.from ? std::min(info.steps, options.from + kUsualWindow - 1) : info.steps;
  plan.from = options.from ? options.from : std::max(first, plan.to - kUsualWindow + 1);
  if (plan.from < first || plan.to > info.steps || plan.to < plan.from)
    throw Error::usage(fmt::format("run {} has done the steps {} to {}; {} to {} cannot be looked at", info.name, first,
                                   info.steps, plan.from, plan.to));
  if (plan.to - plan.from + 1 < kLeastGrowthSteps)
    throw Error::usage(fmt::format("{} steps are too few to tell growth from its beginning", plan.to - plan.from + 1),
                       fmt::format("name at least {}, better {}", kLeastGrowthSteps, kUsualWindow));
  plan.kept = kept_before(project, info, plan.from - 1);
  if (plan.kept < 0)
    throw Error(fmt::format("run {} kept no state before step {}", info.name, plan.from),
                "go on with the run: its first checkpoint is kept when it begins");
  plan.to_window = plan.to - plan.kept;
  plan.most = plan.to_window + steps_to_judge(info, plan) - (plan.to - plan.from + 1) + plan.to_window;
  if (info.steps > 0 && info.seconds > 0)
    plan.seconds = info.seconds / static_cast<double>(info.steps) * static_cast<double>(plan.most);
  return plan;
}

LeakReport find_run_leaks(Project& project, int64_t run, const LeakOptions& options, const Progress& progress) {
  const LeakPlan plan = plan_leaks(project, run, options);
  const RunInfo info = project.run(run);
  return LeakSearch(project, info, plan, progress).search(options.prove);
}

}  // namespace tenon::projects
