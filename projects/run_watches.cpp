// The watches of a run that trains.
#include <algorithm>

#include "core/pool.h"
#include "projects/run_driver_impl.h"

namespace tenon::projects {

std::unique_ptr<WatchList> RunDriver::Impl::make_watches(const Recipe& wanted) {
  std::vector<Watch> all = parse_watches(wanted.text("watches"));
  return all.empty() ? nullptr : std::make_unique<WatchList>(*session, wanted, std::move(all));
}

void RunDriver::Impl::arm(std::unique_ptr<WatchList> list) {
  watches = std::move(list);
  armed_at = seconds();
  costs_told.assign(watches ? watches->watches().size() : 0, {});
  if (watches && session->steps_done() > 0) recall_watches(*watches, *project, info.id, session->steps_done());
}

void RunDriver::Impl::watch_growth(std::vector<WatchHit>& hits) {
  if (!recorder) return;
  if (watches)
    for (const Watch& w : watches->watches())
      if (w.subject == WatchSubject::memory) return;
  if (!growth) growth = std::make_unique<GrowthWatch>(session->steps_per_epoch());
  const double now = growth->take(live_bytes_of_training());
  const bool grows = now > 0, begins = grows && !grew;
  grew = grows;
  if (!begins) return;
  WatchHit hit;
  hit.watch = kOwnWatch;
  hit.step = session->steps_done();
  hit.at = kMemoryGrowth;
  hit.value = now;
  hit.begins = true;
  hit.action = WatchAction::mark;
  hits.push_back(std::move(hit));
}

void RunDriver::Impl::after_watches(bool of_step) {
  std::vector<WatchHit> hits;
  if (watches) hits = watches->take();
  if (of_step) watch_growth(hits);
  if (hits.empty()) return;
  {
    std::lock_guard lock(mutex);
    for (const WatchHit& h : hits) {
      if (!h.begins) continue;
      ++status.hits;
      if (h.action == WatchAction::checkpoint) save = true;
      if (!obeys_watches) continue;
      if (h.action == WatchAction::stop && stopped.empty()) stopped = h.text();
      if (h.action != WatchAction::pause) continue;
      pause = true;
      single_steps = 0;
      status.paused_by = h.text();
    }
    if (undrained_hits.size() > kKeptForOthers) undrained_hits.clear();  // nobody asks; the project has all of them
    undrained_hits.insert(undrained_hits.end(), hits.begin(), hits.end());
  }
  if (recorder) recorder->watch_hits(std::move(hits));
}

void RunDriver::Impl::tell_watch_costs() {
  if (!watches || !recorder) return;
  std::vector<WatchCost> news;
  const double trained_armed = seconds() - armed_at;
  for (size_t i = 0; i < costs_told.size(); ++i) {
    WatchCost& told = costs_told[i];
    const double spent = watches->seconds(i);
    if (trained_armed <= told.trained) continue;
    news.push_back({watches->watches()[i].condition, spent - told.seconds, trained_armed - told.trained});
    told = {{}, spent, trained_armed};
  }
  if (!news.empty()) recorder->watch_costs(std::move(news));
}

}  // namespace tenon::projects
