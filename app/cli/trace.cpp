// tenon trace ...: every registered analysis of traces is a command.
#include <fmt/format.h>


#include "app/cli/command.h"
#include "app/cli/findings.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::app {
namespace {

int run(const tracing::TraceAnalysis& analysis, const Args& args) {
  std::vector<std::string> words;
  for (size_t i = 0; i < args.words(); ++i) words.push_back(args.word(i));
  tracing::TraceRequest request;
  request.top = static_cast<size_t>(args.integer("--top", 25, 1));
  request.step = args.integer("--step", -1, 0);
  Bar bar("reading");
  trace::ReadOptions options;
  options.threads = static_cast<int>(args.integer("--threads", 0, 1));
  options.read_cache = options.write_cache = !args.has("--no-cache");
  options.progress = [&](uint64_t done, uint64_t total) {
    bar.show(static_cast<int64_t>(done), static_cast<int64_t>(total));
    return !interrupted();
  };
  for (const std::string& file : trace::trace_files(words)) request.traces.push_back(trace::read_trace(file, options));
  bar.clear();
  if (request.traces.size() < analysis.min_traces || request.traces.size() > analysis.max_traces)
    throw Error::usage(fmt::format("trace {} takes {} trace{}; {} were given", analysis.name,
                                   analysis.min_traces == analysis.max_traces ? std::to_string(analysis.min_traces) : fmt::format("{} or more", analysis.min_traces),
                                   analysis.max_traces == 1 ? "" : "s", request.traces.size()));
  return show_finding(analysis.run(request), args.json());
}

const bool registered = register_commands_later([] {
  for (const tracing::TraceAnalysis& a : tracing::trace_analyses()) {
    const tracing::TraceAnalysis* analysis = tracing::find_trace_analysis(a.name);
    register_command({"trace " + a.name,
                      a.max_traces == 1 ? "FILE" : a.max_traces == 2 ? "A B" : "FILE|FOLDER...",
                      1,
                      a.max_traces == 1 ? size_t{1} : a.max_traces == 2 ? size_t{2} : size_t{100000},
                      {{"--top", "N", "rows of a table at most (25)"},
                       {"--step", "N", "only the work of ProfilerStep#N"},
                       {"--threads", "N", "threads that read (every core)"},
                       {"--no-cache", "", "neither take nor save the store beside the file"},
                       {"--json", "", "one JSON object a line"}},
                      a.help,
                      [analysis](const Args& args) { return run(*analysis, args); }});
  }
});

}  // namespace
}  // namespace tenon::app
