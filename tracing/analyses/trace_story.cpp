#include "tracing/analyses/trace_story.h"

namespace tenon::tracing {

TraceStory trace_story(const traces::Trace& trace, const std::function<bool(int64_t, int64_t)>& going_on) {
  TraceStory story;
  const GpuTimeline gpu(trace);
  const CriticalPaths paths(trace, gpu);
  const IdleTimes idle(trace);
  story.gpu = !gpu.empty();
  const std::vector<TraceStep> steps = trace_steps(trace);
  int64_t done = 0, told = INT64_MIN;
  for (const TraceStep& s : steps) {
    const StepWork step = step_work(gpu, s);
    for (PathPiece p : paths.of(step)) {
      // Steps of several ranks may overlap in one file: the first one's path stands.
      p.from = std::max(p.from, told);
      if (p.to <= p.from) continue;
      if (paths.is_no_op(p)) p.what = PathPiece::What::nothing;
      story.path.push_back(p);
      told = p.to;
    }
    if (story.gpu)
      for (const Gap& g : idle.gaps(step))
        if (story.gaps.empty() || g.from >= story.gaps.back().to) story.gaps.push_back(g);
    if (going_on && !going_on(++done, static_cast<int64_t>(steps.size()))) break;
  }
  return story;
}

void TraceStory::move(traces::EventId events, int64_t times) {
  for (PathPiece& p : path) {
    for (traces::EventId* e : {&p.event, &p.after})
      if (*e != traces::kNone) *e += events;
    p.from += times;
    p.to += times;
  }
  for (Gap& g : gaps) {
    g.from += times;
    g.to += times;
  }
}

}  // namespace tenon::tracing
