// tenon watches: what the watches of a run saw, and the first step at which a condition holds.
#include "projects/watches.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "views/watches/watches_table.h"

namespace tenon::app {
namespace {

using projects::WatchSummary;

nlohmann::json seen_json(const WatchHit& h) {
  return {{"step", h.step},
          {"at", h.at},
          {"value", json_number(h.value)},
          {"bound", json_number(h.bound)},
          {"begins", h.begins}};
}

void tell_steps(const Args& args, const std::vector<WatchHit>& hits) {
  std::vector<std::vector<std::string>> rows = {{"STEP", "WATCH", "AT", "VALUE", "BOUND", "BEGINS"}};
  for (const WatchHit& h : hits) {
    if (args.json()) {
      nlohmann::json j = seen_json(h);
      j["watch"] = h.watch;
      print_json(j);
    }
    rows.push_back(
        {count_text(h.step), h.watch, h.at, value_text(h.value), value_text(h.bound), h.begins ? "yes" : ""});
  }
  if (args.json()) return;
  print(hits.empty() ? "No watch of this run has held.\n" : table(rows, {true, false, false, true, true, false}));
}

void tell_watches(const Args& args, const projects::RunInfo& run, const std::vector<WatchSummary>& all) {
  std::vector<std::vector<std::string>> rows = {
      {"WATCH", "ACTION", "HELD AT", "TIMES", "FIRST", "AT", "VALUE", "BOUND", "LAST", "COST"}};
  for (const WatchSummary& s : all) {
    if (args.json()) {
      nlohmann::json j = {{"run", run.name},  {"watch", s.condition}, {"action", watch_action_name(s.action)},
                          {"armed", s.armed}, {"held", s.held},       {"began", s.began}};
      if (s.held) j.update({{"first", seen_json(s.first)}, {"last", seen_json(s.last)}});
      if (s.share >= 0) j["cost"] = s.share;
      print_json(j);
    }
    std::vector<std::string> row = {s.condition, std::string(watch_action_name(s.action)) + (s.armed ? "" : " (off)"),
                                    fmt::format("{} {}", count_text(s.held), s.held == 1 ? "step" : "steps"),
                                    count_text(s.began)};
    if (s.held)
      row.insert(row.end(), {count_text(s.first.step), s.first.at, value_text(s.first.value), value_text(s.first.bound),
                             count_text(s.last.step)});
    else
      row.insert(row.end(), 5, "");
    row.push_back(views::watch_cost_text(s.share));
    rows.push_back(std::move(row));
  }
  if (args.json()) return;
  if (all.empty()) {
    print(fmt::format("run {} has no watches; --find CONDITION looks for the first step all the same\n", run.name));
    return;
  }
  print(table(rows, {false, false, true, true, true, false, true, true, true, true}) +
        "HELD AT: steps at which it held. TIMES: how often it came to hold. COST: share of the time of a step.\n");
}

int find(const Args& args, projects::Project& project, const projects::RunInfo& run) {
  const Watch condition = parse_condition(args.text("--find"));
  const bool bisect = args.has("--bisect");
  const projects::FindPlan plan = projects::plan_find(run, project.checkpoints(run.id), condition, bisect);
  if (!args.json()) print(views::plan_text(plan) + "\n");
  Bar bar("replaying");
  const projects::FoundStep found = projects::find_first(project, run.id, condition, bisect, bar.progress());
  bar.clear();
  const bool guesses = bisect && !condition.only_metrics();
  if (args.json()) {
    nlohmann::json j = {{"run", run.name},
                        {"condition", condition.condition},
                        {"found", found.found},
                        {"replayed", found.replayed},
                        {"bisect", guesses}};
    if (found.found) j.update(seen_json(found.hit));
    print_json(j);
  } else {
    print(views::found_text(found, guesses) + "\n");
  }
  return found.found ? 0 : 1;
}

int watches(const Args& args) {
  if (args.has("--bisect") && !args.has("--find"))
    throw Error::usage("--bisect says how to find", "Give the condition: --find \"max_abs(grad(*)) > 1e3\"");
  const auto project = open_to_read(args.word(0));
  const projects::RunInfo run = pick_run(*project, args.words() > 1 ? args.word(1) : "");
  use_threads(args);
  catch_interrupts();
  if (args.has("--find")) return find(args, *project, run);
  if (args.has("--all"))
    tell_steps(args, project->watch_hits(run.id));
  else
    tell_watches(args, run, projects::watch_summaries(*project, run));
  return 0;
}

const bool registered_watches = register_command(
    {"watches",
     "PROJECT [RUN]",
     1,
     2,
     {{"--all", "", "every step at which a watch held"},
      {"--find", "CONDITION",
       "the first step at which it holds, in any run: \"max_abs(grad(fc1)) > 10\"; exit status 1 where there is none"},
      {"--bisect", "", "by halves between checkpoints: quick, and right where a condition goes on holding"},
      kThreads,
      kJson},
     "what the watches of a run saw and what they cost, and when a condition became true",
     watches});

}  // namespace
}  // namespace tenon::app
