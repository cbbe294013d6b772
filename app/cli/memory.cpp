// tenon memory ...: every registered analysis of memory snapshots is a command. What leaks is asked of runs, too.
#include <fmt/format.h>

#include "app/cli/command.h"
#include "app/cli/findings.h"
#include "app/cli/memory_leaks.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "tracing/analyses/snapshot_analysis.h"

namespace tenon::app {
namespace {

int run_snapshot_analysis(const tracing::SnapshotAnalysis& analysis, const Args& args) {
  if (analysis.name == "leaks" && is_project(args.word(0))) return run_leaks(args);
  tracing::SnapshotRequest request;
  request.top = static_cast<size_t>(args.integer("--top", 20, 1));
  request.device = args.integer("--device", -1, 0);
  request.at = args.integer("--at", -1, 0);
  request.limit = static_cast<int64_t>(args.number("--limit-gb", 0, 0) * (1 << 30));
  request.settings = args.all("--settings");
  Bar bar("reading");
  snapshot::ReadOptions options;
  options.read_cache = options.write_cache = !args.has("--no-cache");
  options.progress = [&](uint64_t done, uint64_t total) {
    bar.show(static_cast<int64_t>(done), static_cast<int64_t>(total));
    return !interrupted();
  };
  for (size_t i = 0; i < args.words(); ++i) request.snapshots.push_back(snapshot::read_snapshot(args.word(i), options));
  bar.clear();
  return show_finding(analysis.run(request), args.json());
}

const bool registered_memory = register_command_family("memory", [] {
  std::vector<Command> all;
  for (const tracing::SnapshotAnalysis& a : tracing::snapshot_analyses()) {
    std::vector<Option> options{{"--top", "N", "rows of a table at most (20)"},
                                {"--device", "N", "the device to look at (the one with most events)"},
                                {"--no-cache", "", "neither take nor save the store of what was read"},
                                {"--json", "", "one JSON object a line"}};
    if (a.name == "live" || a.name == "fragmentation") options.push_back({"--at", "N", "the event (the last one)"});
    if (a.name == "stacks") options.push_back({"--at", "N", "the event (the peak)"});
    if (a.name == "leaks")
      for (const Option& o : run_leaks_options()) options.push_back(o);
    if (a.name == "what-if") {
      options.push_back({"--settings", "TEXT", "as in PYTORCH_CUDA_ALLOC_CONF; may be given several times"});
      options.push_back({"--limit-gb", "X", "what the device can give (what an out-of-memory event tells)"});
    }
    all.push_back(
        {"memory " + a.name,
         a.name == "leaks"  ? "FILE [LATER] | PROJECT [RUN]"
         : a.max_files == 1 ? "FILE"
         : a.min_files == 2 ? "A B"
                            : "FILE [LATER]",
         a.min_files, a.max_files, options,
         a.name == "leaks" ? a.help + "; of a run who holds them, proven by a replay (exit status 1)" : a.help,
         [a](const Args& args) { return run_snapshot_analysis(a, args); }});
  }
  return all;
});

}  // namespace
}  // namespace tenon::app
