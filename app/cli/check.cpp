// tenon check: what the field's troubleshooting guides warn of, looked for in a project and a run, a trace, a snapshot,
// weights.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "projects/checks/check.h"
#include "views/checks/checks_table.h"
#include "views/checks/document_checks.h"

namespace tenon::app {
namespace {

nlohmann::json complaint_json(const projects::Complaint& c) {
  nlohmann::json one = {{"about", c.about}, {"seen", c.seen}, {"remedy", c.remedy}};
  if (c.step >= 0) one["step"] = c.step;
  if (c.sight.event >= 0) one["event"] = c.sight.event;
  if (c.sight.to > c.sight.from) one["from_ns"] = c.sight.from, one["to_ns"] = c.sight.to;
  return one;
}

/// How many things were found.
int64_t say_results(const Args& args, const std::vector<projects::CheckResult>& results) {
  int64_t found = 0;
  for (const projects::CheckResult& r : results) {
    found += static_cast<int64_t>(r.complaints.size());
    if (args.json()) {
      nlohmann::json complaints = nlohmann::json::array();
      for (const projects::Complaint& c : r.complaints) complaints.push_back(complaint_json(c));
      print_json({{"check", r.name}, {"title", r.title}, {"complaints", complaints}, {"skipped", r.skipped}});
      continue;
    }
    if (args.has("--all") && r.complaints.empty())
      print(fmt::format("{}  {}: {}\n", r.skipped.empty() ? "ok  " : "none", r.name,
                        r.skipped.empty() ? "nothing found" : "not checked: " + r.skipped));
    if (!r.complaints.empty()) print(fmt::format("{} ({})\n", r.title, r.name));
    for (const projects::Complaint& c : r.complaints)
      print(fmt::format("  {}{}\n    try: {}\n", c.about.empty() ? "" : c.about + ": ", c.seen, c.remedy));
  }
  return found;
}

std::optional<tracing::CheckedModelFile::Beside> beside_of(const Args& args) {
  if (!args.has("--model")) return {};
  const std::string file = args.text("--model");
  const auto project = open_to_read(file);
  return tracing::CheckedModelFile::Beside{project->model(), Recipe::from_json(project->recipe()),
                                           std::filesystem::path(file).filename().string()};
}

int check_file(const Args& args, views::Document::Kind kind) {
  if (args.words() > 1) throw Error::usage(args.word(0) + " has no runs", "Name a project before a run.");
  if (args.has("--model") && kind != views::Document::Kind::model)
    throw Error::usage("--model holds weights against a model, and " + args.word(0) + " has none");
  const auto beside = beside_of(args);
  Bar bar("checking");
  const auto progress = [&](uint64_t done, uint64_t total) {
    return bar.progress()(static_cast<int64_t>(done), static_cast<int64_t>(total));
  };
  const views::Document d = views::read_document(args.word(0), kind, progress);
  const auto results = views::check_document(d, beside, progress);
  bar.clear();
  const int64_t found = say_results(args, results);
  if (!args.json()) print(views::checks_text(results) + "\n");
  return found ? 1 : 0;
}

int check(const Args& args) {
  use_threads(args);
  catch_interrupts();
  const auto kind = views::document_kind(args.word(0));
  if (kind != views::Document::Kind::project) return check_file(args, kind);
  if (args.has("--model")) throw Error::usage("--model holds weights against a model, and this is a project");
  const auto project = open_to_read(args.word(0));
  Bar bar("checking");
  projects::Checked checked(project, args.words() > 1 ? args.word(1) : "", bar.progress());
  const std::vector<projects::CheckResult> results = projects::check_project(checked);
  bar.clear();
  const int64_t found = say_results(args, results);
  if (!args.json()) print(views::checks_text(results) + (checked.run() ? " of run " + checked.run()->name : "") + "\n");
  return found ? 1 : 0;
}

const bool registered_check = register_command(
    {"check",
     "FILE [RUN]",
     1,
     2,
     {{"--model", "P.tenon", "of a file of weights: the project whose model they are meant for"},
      {"--all", "", "lists the checks that found nothing too, and why one was not made"},
      kThreads,
      kJson},
     "looks for what troubleshooting guides warn of: in a project (data, model, recipe and a run), a profiler trace, a "
     "memory snapshot, or a file of weights; exit status 1 where something is found",
     check});

}  // namespace
}  // namespace tenon::app
