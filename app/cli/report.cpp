// tenon report: a run in one page.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "views/report/report.h"

namespace tenon::app {
namespace {

int report(const Args& args) {
  const std::string path = args.required("-o");
  const auto project = open_to_read(args.word(0));
  const projects::RunInfo run = pick_run(*project, args.words() > 1 ? args.word(1) : "");
  const int64_t step = pick_step(run, args.text("--checkpoint", "last"));
  use_threads(args);
  catch_interrupts();
  Bar replay("replaying"), bar("evaluating");
  const std::string done = views::write_report(*project, run, step, path, replay.progress(), bar.progress());
  replay.clear();
  bar.clear();
  if (args.json())
    print_json({{"file", path}, {"run", run.name}, {"step", step}});
  else
    print(done + "\n");
  return 0;
}

const bool registered_report = register_command({"report",
                                                 "PROJECT [RUN] -o F.html",
                                                 1,
                                                 2,
                                                 {{"-o", "FILE", "the page: one file of HTML with everything in it"},
                                                  {"--checkpoint", "best|last|STEP", "which state (last)"},
                                                  kThreads,
                                                  kJson},
                                                 "writes model, recipe, curves and results of a run as one page",
                                                 report});

}  // namespace
}  // namespace tenon::app
