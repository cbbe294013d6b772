// tenon ops: what an op is, and one call of it followed from end to end.
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/findings.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "projects/time_travel.h"
#include "tracing/ops/op_definition.h"
#include "tracing/ops/op_story.h"
#include "tracing/record/step_record.h"

namespace tenon::app {
namespace {

/// For people the text of the definition stands below the tables, as it is written.
int show_definition(tracing::Finding f, bool json) {
  if (json) return show_finding(f, true);
  std::string source;
  std::erase_if(f.tables, [&](const tracing::Table& t) {
    if (t.name == "source")
      for (const auto& row : t.rows) source += std::get<std::string>(row[0]) + "\n";
    return t.name == "source" || t.rows.empty();
  });
  const int status = show_finding(f, false);
  if (!source.empty()) print("\n" + source);
  return status;
}

int ops(const Args& args) {
  const std::string op = args.words() ? args.word(0) : "", file = args.text("--project");
  if (file.empty()) {
    for (const char* of_a_step : {"--run", "--step", "--call"})
      if (args.has(of_a_step))
        throw Error::usage(std::string(of_a_step) + " is of a step of a run", "Name its project: --project P.tenon");
    return op.empty() ? show_finding(tracing::list_ops(), args.json())
                      : show_definition(tracing::op_definition(op), args.json());
  }
  const int64_t call = args.integer("--call", 0, 1);
  if (op.empty() && !call)
    throw Error::usage("which op of the step is meant?", "Name one (conv2d), or a call by its number: --call 12");
  if (!op.empty()) tracing::op_definition(op);  // a name that no op has is told before anything is replayed
  const auto project = open_to_read(file);
  const projects::RunInfo run = pick_run(*project, args.text("--run"));
  use_threads(args);
  catch_interrupts();
  const int64_t step = pick_step(run, args.text("--step", "last"));
  if (step < 1) throw Error::usage("step 0 is before the first step: it called nothing");
  Bar bar("replaying");
  const auto record = projects::record_step(*project, run.id, step, bar.progress());
  bar.clear();
  return show_finding(call ? tracing::op_story(*record, static_cast<uint32_t>(call)) : tracing::op_calls(*record, op),
                      args.json(), {{"run", run.name}, {"step", std::to_string(step)}});
}

const bool registered_ops =
    register_command({"ops",
                      "[OP]",
                      0,
                      1,
                      {{"--project", "FILE", "its calls in a step of a run: whose, on what, how fast"},
                       {"--run", "NAME", "which run (the latest)"},
                       {"--step", "N|last|best", "which step (the last)"},
                       {"--call", "N", "the call of this number, from its inputs to the ops of its gradient"},
                       kThreads,
                       kJson},
                      "what an op is made of, with its source; and a call of it followed from end to end",
                      ops});

}  // namespace
}  // namespace tenon::app
