// tenon spike: what made the loss of a run jump.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/findings.h"
#include "app/cli/output.h"
#include "projects/spikes/cause.h"

namespace tenon::app {
namespace {

using projects::CausePlan;
using projects::Inquiry;

nlohmann::json plan_json(const CausePlan& plan) {
  nlohmann::json parts = nlohmann::json::array();
  for (const CausePlan::Part& p : plan.parts) {
    nlohmann::json one = {{"cause", p.name}, {"replays", p.most.replays}, {"steps", p.most.steps}};
    if (!p.ruled_out.empty()) one["ruled_out"] = p.ruled_out;
    parts.push_back(std::move(one));
  }
  return {{"replays", plan.most.replays}, {"steps", plan.most.steps}, {"seconds", plan.seconds}, {"causes", parts}};
}

void print_plan(const CausePlan& plan) {
  std::vector<std::vector<std::string>> rows = {{"CAUSE", "REPLAYS", "STEPS", ""}};
  for (const CausePlan::Part& p : plan.parts)
    rows.push_back({p.title, p.ruled_out.empty() ? count_text(p.most.replays) : "",
                    p.ruled_out.empty() ? count_text(p.most.steps) : "",
                    p.ruled_out.empty() ? "" : "not asked: " + p.ruled_out});
  print(table(rows, {false, true, true, false}));
}

int spike(const Args& args) {
  const auto project = open_to_read(args.word(0));
  const projects::RunInfo run = pick_run(*project, args.words() > 1 ? args.word(1) : "");
  use_threads(args);
  catch_interrupts();
  Bar bar("replaying");
  Inquiry inquiry(project, run.name, args.integer("--step", -1, 1), bar.progress());
  const CausePlan plan = projects::plan_causes(inquiry, args.integer("--budget", 0, 1));
  const projects::Spike& s = inquiry.spike();
  const nlohmann::json about = {
      {"run", run.name}, {"step", s.step}, {"loss", json_number(s.loss)}, {"usual", json_number(s.usual)}};
  if (args.json())
    print_json({{"spike", about}, {"most", plan_json(plan)}});
  else
    print(
        fmt::format("run {}: the loss of step {} is {:.4g}, where {:.4g} is usual\n"
                    "what may have made it is asked by {}; it ends with the first cause that explains it\n",
                    run.name, count_text(s.step), s.loss, s.usual, plan.text()));
  if (args.has("--plan")) {
    if (!args.json()) print_plan(plan);
    return 0;
  }
  const projects::SpikeReport report = projects::find_cause(inquiry, plan, args.has("--all"));
  bar.clear();
  const tracing::Finding finding = projects::spike_finding(report, inquiry);
  if (!args.json()) {
    print("\n");
    show_finding(finding, false);
    if (report.culprit)
      print("\nto go on without it: " + projects::branch_command(args.word(0), run.name, report.culprit->tried->trial) +
            "\n");
    return finding.ok ? 0 : 1;
  }
  nlohmann::json j = tracing::finding_json(finding);
  j["run"] = run.name;
  j["cause"] = report.cause;
  if (report.culprit) {
    const projects::Counterfactual& trial = report.culprit->tried->trial;
    nlohmann::json set = nlohmann::json::object();
    for (const auto& [key, value] : trial.set) set[key] = value;
    j["without_it"] = {{"from", trial.from},
                       {"set", set},
                       {"samples", report.culprit->rows},
                       {"layer", report.culprit->layer},
                       {"command", projects::branch_command(args.word(0), run.name, trial)}};
  }
  print_json(j);
  return finding.ok ? 0 : 1;
}

const bool registered_spike =
    register_command({"spike",
                      "PROJECT [RUN]",
                      1,
                      2,
                      {{"--step", "N", "the step whose loss is meant (the one that stands out most)"},
                       {"--budget", "STEPS", "what may need more steps of replay than that is not asked"},
                       {"--plan", "", "only says what would be asked, and what it may cost"},
                       {"--all", "", "asks every cause, also once one explains it"},
                       kThreads,
                       kJson},
                      "finds what made the loss jump: a sample, a batch, the order, the rate, a layer; by replays "
                      "without it; exit status "
                      "1 where nothing explains it",
                      spike});

}  // namespace
}  // namespace tenon::app
