// tenon diff: two of one kind, A and B, whatever they are.
#include <fmt/format.h>

#include <filesystem>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/findings.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "projects/compare.h"
#include "views/shared/document.h"

namespace tenon::app {
namespace {

using projects::Comparable;

/// "P.tenon@RUN@STEP" in its parts; the run and the step may be left out.
struct StateName {
  std::string project, run, step = "last";
};
StateName state_name(const std::string& word) {
  for (size_t at = word.find('@'); at != word.npos; at = word.find('@', at + 1)) {
    std::error_code none;
    if (!std::filesystem::is_regular_file(word.substr(0, at), none)) continue;
    StateName s{word.substr(0, at), word.substr(at + 1)};
    if (const size_t second = s.run.rfind('@'); second != s.run.npos) {
      s.step = s.run.substr(second + 1);
      s.run.resize(second);
    }
    return s;
  }
  return {word, {}};
}

Comparable read_state(const StateName& name, Bar& bar) {
  const auto project = open_to_read(name.project);
  const projects::RunInfo run = pick_run(*project, name.run);
  return {.model = projects::weights_after(*project, run.id, pick_step(run, name.step), bar.progress())};
}

Comparable read_one(const std::string& word) {
  Bar bar("reading");
  std::error_code none;
  const bool file = std::filesystem::exists(word, none);
  const StateName name = file ? StateName{word, {}} : state_name(word);
  const auto kind = views::document_kind(name.project);  // says so where there is no such file
  if (kind == views::Document::Kind::project) return read_state(name, bar);
  if (name.project != word)
    throw Error::usage(fmt::format("{} is no project: it has no runs", name.project), "Name the file alone.");
  const projects::Progress progress = bar.progress();
  const views::Document d = views::read_document(word, kind, [&](uint64_t done, uint64_t total) {
    return progress(static_cast<int64_t>(done), static_cast<int64_t>(total));
  });
  views::keep_read(d);
  need_one_trace(d);
  return {d.trace, d.snapshot, d.model};
}

int diff(const Args& args) {
  use_threads(args);
  catch_interrupts();
  const Comparable a = read_one(args.word(0)), b = read_one(args.word(1));
  Bar bar("comparing");
  const projects::Comparison c =
      projects::compare(a, b, static_cast<size_t>(args.integer("--top", 25, 1)), bar.progress());
  bar.clear();
  if (!args.has("--folded")) return show_finding(c.finding, args.json());
  if (!c.flames) throw Error::usage("models have no stacks", "--folded is for two traces or two memory snapshots.");
  print(tracing::folded(*c.flames));
  return 0;
}

const bool registered_compare = register_command(
    {"diff",
     "A B",
     2,
     2,
     {{"--top", "N", "rows of a table at most (25)"},
      {"--folded", "", "of traces and snapshots: a line a call path with what it holds in A and in B"},
      kThreads,
      kJson},
     "what is different in B: of two traces, memory snapshots, model files or checkpoints (PROJECT@RUN@STEP)",
     diff});

}  // namespace
}  // namespace tenon::app
