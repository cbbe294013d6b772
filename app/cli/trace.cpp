// tenon trace ...: every registered analysis of traces is a command.
#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "app/cli/command.h"
#include "app/cli/findings.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "tracing/analyses/session.h"
#include "tracing/analyses/trace_analysis.h"
#include "tracing/trace/trace_reader.h"

namespace tenon::app {
namespace {

traces::ReadOptions read_options(const Args& args, Bar& bar) {
  traces::ReadOptions options;
  options.threads = static_cast<int>(args.integer("--threads", 0, 1));
  options.read_cache = options.write_cache = !args.has("--no-cache");
  options.progress = [&bar](uint64_t done, uint64_t total) {
    bar.show(static_cast<int64_t>(done), static_cast<int64_t>(total));
    return !interrupted();
  };
  return options;
}

std::shared_ptr<const traces::Trace> read(const std::string& file, const Args& args) {
  Bar bar("reading");
  auto trace = traces::read_trace(file, read_options(args, bar));
  bar.clear();
  return trace;
}

/// The ranks of one session; what is left out is said.
std::vector<std::shared_ptr<const traces::Trace>> read_ranks(const std::vector<std::string>& words, const Args& args) {
  Bar bar("reading");
  tracing::Session session = tracing::read_session(words, read_options(args, bar));
  bar.clear();
  for (const std::string& sentence : session.left_out) std::fprintf(stderr, "tenon: %s\n", sentence.c_str());
  return std::move(session.ranks);
}

std::string label(const traces::Trace& t, size_t place) {
  return t.rank() >= 0 ? std::to_string(t.rank()) : fmt::format("({})", place);
}

/// An analysis of single traces over a session of several: rank by rank, one at a time in memory. A file that cannot be
/// read is named and left out, and the status tells of it; where none can, the first error is thrown.
int run_each(const tracing::TraceAnalysis& analysis, const std::vector<std::string>& files,
             tracing::TraceRequest request, const Args& args) {
  const bool one = args.has("--rank");
  const int64_t wanted = args.integer("--rank", 0, 0);
  int status = 0;
  size_t answered = 0;
  std::string ranks;
  std::optional<Error> broken;
  for (size_t i = 0; i < files.size(); ++i) {
    try {
      request.traces = {read(files[i], args)};
    } catch (const Error& e) {
      if (files.size() == 1 || interrupted()) throw;
      std::fprintf(stderr, "tenon: %s: left out\n", e.message().c_str());
      if (!broken) broken = e;
      status = 1;
      continue;
    }
    const traces::Trace& t = request.first();
    ranks += (ranks.empty() ? "" : ", ") + label(t, i);
    if (one && t.rank() != wanted) continue;
    const tracing::Finding finding = analysis.run(request);
    if (one || files.size() == 1) return show_finding(finding, args.json());
    if (answered++ && !args.json()) print("\n");
    status |= show_finding(finding, args.json(),
                           {{"rank", label(t, i)}, {"file", files[i].substr(files[i].find_last_of('/') + 1)}});
  }
  if (broken && ranks.empty()) throw *broken;
  if (one)
    throw Error::usage(fmt::format("there is no rank {} among the traces", wanted), fmt::format("there are {}", ranks));
  return status;
}

int run_trace_analysis(const tracing::TraceAnalysis& analysis, const Args& args) {
  std::vector<std::string> words;
  for (size_t i = 0; i < args.words(); ++i) words.push_back(args.word(i));
  tracing::TraceRequest request;
  request.top = static_cast<size_t>(args.integer("--top", 25, 1));
  request.step = args.integer("--step", -1, 0);
  const std::vector<std::string> files = traces::trace_files(words);
  if (analysis.max_traces == 1) return run_each(analysis, files, request, args);
  auto check = [&](size_t given) {
    if (given < analysis.min_traces || given > analysis.max_traces)
      throw Error::usage(fmt::format("trace {} takes {} traces; {} were given", analysis.name,
                                     analysis.min_traces == analysis.max_traces
                                         ? std::to_string(analysis.min_traces)
                                         : fmt::format("{} or more", analysis.min_traces),
                                     given));
  };
  check(files.size());
  if (analysis.max_traces > 2)
    request.traces = read_ranks(words, args);
  else
    for (const std::string& file : files) request.traces.push_back(read(file, args));
  check(request.traces.size());
  return show_finding(analysis.run(request), args.json());
}

const bool registered_trace = register_command_family("trace", [] {
  std::vector<Command> all;
  for (const tracing::TraceAnalysis& a : tracing::trace_analyses()) {
    std::vector<Option> options{{"--top", "N", "rows of a table at most (25)"},
                                {"--step", "N", "only the work of ProfilerStep#N"},
                                {"--threads", "N", "threads that read (every core)"},
                                {"--no-cache", "", "neither take nor save the store of what was read"},
                                {"--json", "", "one JSON object a line"}};
    if (a.max_traces == 1) options.push_back({"--rank", "N", "of several traces, only that of this rank"});
    all.push_back({"trace " + a.name, a.max_traces == 2 ? "A B" : "FILE|FOLDER...", 1,
                   a.max_traces == 2 ? size_t{2} : size_t{100000}, options, a.help,
                   [a](const Args& args) { return run_trace_analysis(a, args); }});
  }
  return all;
});

}  // namespace
}  // namespace tenon::app
