// tenon profile, memory record.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/findings.h"
#include "app/cli/output.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/file.h"
#include "engine/formats/gzip.h"
#include "engine/kernels/ceilings.h"
#include "engine/train/session.h"
#include "projects/run_plan.h"
#include "projects/time_travel.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/analyses/why.h"
#include "tracing/ops/plan_page.h"
#include "tracing/ops/roofline.h"
#include "tracing/ops/seen_plan.h"
#include "tracing/record/memory_snapshot.h"
#include "tracing/record/own_trace.h"
#include "tracing/record/step_record.h"
#include "tracing/record/step_recorder.h"
#include "tracing/trace/trace_maker.h"

namespace tenon::app {
namespace {

struct Source {
  std::unique_ptr<TrainingSession> session;
  std::string run;
};

/// A session that stands before the steps to look at: of a run by time travel, else of a fresh start that is not kept.
Source session_for(const Args& args, int64_t steps) {
  const auto project = open_to_read(args.word(0));
  use_threads(args);
  catch_interrupts();
  if (!args.has("--run") && project->runs().empty()) {
    if (args.has("--step")) throw Error::usage("--step names a step of a run, and there is none yet");
    return {projects::fresh_session(*project), "fresh start"};
  }
  const projects::RunInfo run = pick_run(*project, args.text("--run"));
  const int64_t first =
      args.has("--step") ? pick_step(run, args.text("--step")) : std::max<int64_t>(1, run.steps - steps + 1);
  if (first < 1) throw Error::usage("steps count from 1");
  Bar bar("replaying");
  const bool beyond = first > run.steps + 1;  // the error names the step that was asked for
  Source s{projects::replay_to(*project, run.id, beyond ? first : first - 1, bar.progress()), run.name};
  return s;
}

int64_t steps_of(const TrainingSession& session, int64_t wanted) {
  const int64_t left = session.total_steps() - session.steps_done();
  if (left < 1) throw Error("the run has no steps left to record", "Choose an earlier one with --step.");
  return std::min(wanted, left);
}

/// The steps against what the processor reaches at most; nothing is written.
int profile_roofline(const Args& args) {
  if (args.has("-o"))
    throw Error::usage("--roofline prints a page, and -o names the file of a trace", "Give one of the two.");
  const int64_t wanted = args.integer("--steps", 5, 1);
  Source source = session_for(args, wanted);
  if (!(source.session->device() == Device{}))
    throw Error(fmt::format("the run computes on {}, and the measured ceilings are the processor's",
                            to_string(source.session->device())),
                "Of a GPU's ops 'tenon profile PROJECT -o T.json' records the times.");
  const int64_t steps = steps_of(*source.session, wanted);
  const kernels::Ceilings ceilings = kernels::known_ceilings();
  std::vector<std::shared_ptr<const tracing::StepRecord>> records;
  tracing::RecordOptions options;
  options.keep_bytes = 0;  // rates need no values
  Bar bar("recording");
  for (int64_t i = 0; i < steps && !(interrupted() && i > 0); ++i) {  // what was recorded so far is told
    bar.show(i, steps);
    records.push_back(tracing::record_step(*source.session, source.run, options));
  }
  bar.clear();
  return show_finding(tracing::roofline_page(tracing::roofline(records, ceilings), *records.back()), args.json(),
                      {{"run", source.run}});
}

/// What the steps come to as a plan; nothing is written.
int profile_plan(const Args& args) {
  if (args.has("-o") || args.has("--roofline"))
    throw Error::usage("--plan prints a page of its own", "Leave -o and --roofline out.");
  Source source = session_for(args, tracing::kStepsUntilPlanned);
  steps_of(*source.session, 1);  // there is one to do
  Bar bar("planning");
  const tracing::SeenPlan plan = tracing::see_plan(*source.session, bar.progress());
  bar.clear();
  return show_finding(tracing::plan_page(plan), args.json(), {{"run", source.run}});
}

int profile(const Args& args) {
  if (args.has("--plan")) return profile_plan(args);
  if (args.has("--roofline")) return profile_roofline(args);
  const std::string path = args.required("-o");
  const int64_t wanted = args.integer("--steps", 5, 1);
  Source source = session_for(args, wanted);
  const int64_t steps = steps_of(*source.session, wanted);
  const tracing::OwnTrace p = tracing::record_profile(*source.session, steps, source.run);
  const std::string json = traces::chrome_json(*p.store);
  write_file(path, path.ends_with(".gz") ? formats::gzip(json) : json);
  int64_t ns = 0;
  for (const auto& s : p.steps) ns += s.end_ns - s.start_ns;
  const int64_t first = p.steps.front().step, last = p.steps.back().step;
  const tracing::StepBounds bounds =
      tracing::bounds_of(*p.store, tracing::asked_steps(*p.store, tracing::TraceRequest{{p.store}}));
  if (args.json())
    print_json({{"file", path},
                {"run", source.run},
                {"first_step", first},
                {"last_step", last},
                {"events", p.store->size()},
                {"bound", bounds.causes.front().name},
                {"why", bounds.sentence()},
                {"ms_per_step", static_cast<double>(ns) / 1e6 / static_cast<double>(steps)}});
  else
    print(fmt::format("{}: steps {} to {} of {}, {} events, {} a step\n{}\n", path, count_text(first), count_text(last),
                      source.run, count_text(static_cast<int64_t>(p.store->size())),
                      tracing::nanoseconds_text(static_cast<double>(ns) / static_cast<double>(steps)),
                      bounds.sentence()));
  return 0;
}

int memory_record(const Args& args) {
  const std::string path = args.required("-o");
  const int64_t wanted = args.integer("--steps", 2, 1);
  Source source = session_for(args, wanted);
  const tracing::MemoryRecording r = tracing::record_memory(*source.session, steps_of(*source.session, wanted));
  const std::string pickle = tracing::snapshot_pickle(r);
  write_file(path, pickle);
  int64_t live = 0, peak = 0;
  size_t events = 0;  // of the file: what is given back is asked for and done
  for (const auto& e : r.events) {
    peak = std::max(peak, live += e.bytes);
    events += e.bytes < 0 ? 2 : 1;
  }
  if (args.json())
    print_json({{"file", path},
                {"run", source.run},
                {"first_step", r.steps.front().step},
                {"last_step", r.steps.back().step},
                {"events", events},
                {"peak_bytes", peak}});
  else
    print(fmt::format("{}: steps {} to {} of {}, {} events, peak {}\n", path, count_text(r.steps.front().step),
                      count_text(r.steps.back().step), source.run, count_text(static_cast<int64_t>(events)),
                      bytes_text(peak)));
  return 0;
}

const Option kRun{"--run", "NAME", "which run (the latest; a fresh start where there is none)"};
const Option kStep{"--step", "N|last|best", "first step to record (the last ones of the run)"};

const bool registered_instruments[] = {
    register_command(
        {"profile",
         "PROJECT -o T.json[.gz]|--roofline|--plan",
         1,
         1,
         {kRun,
          {"--steps", "N", "how many steps (5)"},
          kStep,
          {"-o", "FILE", "the trace; compressed where its name ends in .gz"},
          {"--roofline", "",
           "instead of a trace: each op's rates against the processor's measured ceilings, what bounds it "
           "and how much time there is to win"},
          {"--plan", "", "instead of a trace: the kernels that a step comes to under compile = true, and their memory"},
          kThreads,
          kJson},
         "records the op timeline of some steps, for PyTorch's tools and Perfetto; holds them against a roofline, or "
         "shows their plan",
         profile}),
    register_command(
        {"memory record",
         "PROJECT -o S.pickle",
         1,
         1,
         {kRun, {"--steps", "N", "how many steps (2)"}, kStep, {"-o", "FILE", "the snapshot"}, kThreads, kJson},
         "records the memory of some steps; PyTorch's viewer opens it",
         memory_record}),
};

}  // namespace
}  // namespace tenon::app
