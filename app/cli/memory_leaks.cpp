// tenon memory leaks P.tenon [RUN]: who holds the memory that a run takes more and more of, proven by a replay.
#include "app/cli/memory_leaks.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/cli/common.h"
#include "app/cli/findings.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "engine/formats/file_kind.h"
#include "projects/leaks/leak.h"

namespace tenon::app {
namespace {

/// "50:90", or either end alone.
void take_steps(const std::string& text, projects::LeakOptions& o) {
  const size_t colon = text.find(':');
  const auto step = [&](const std::string& part, int64_t& to) {
    if (part.empty()) return;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), to);
    if (code != std::errc() || end != part.data() + part.size() || to < 1)
      throw Error::usage(fmt::format("--steps {}: \"{}\" is no step", text, part), "two steps are meant, as in 50:90");
  };
  if (colon == text.npos) throw Error::usage("--steps " + text + ": two steps are meant, as in 50:90");
  step(text.substr(0, colon), o.from);
  step(text.substr(colon + 1), o.to);
}

nlohmann::json place_json(const projects::LeakPlace& p) {
  return {{"module", p.place.module_name()},
          {"op", p.place.op_name()},
          {"phase", name(p.place.phase)},
          {"category", name(p.place.category)},
          {"bytes_a_step", p.bytes_a_step},
          {"blocks_a_step", p.blocks_a_step},
          {"kept", p.kept},
          {"last_growth", p.last_growth}};
}

nlohmann::json leak_json(const projects::RunLeak& l) {
  nlohmann::json places = nlohmann::json::array(), also = nlohmann::json::array();
  for (const projects::LeakPlace& p : l.places) places.push_back(place_json(p));
  for (const tracing::TensorOwner& o : l.also) also.push_back(o.name);
  nlohmann::json proof = {{"done", l.proof.done}};
  if (l.proof.done)
    proof.update({{"before", l.proof.before},
                  {"after", l.proof.after},
                  {"gone", l.proof.gone},
                  {"same_losses", l.proof.same_losses},
                  {"emptied", l.proof.emptied}});
  if (!l.proof.why_not.empty()) proof["why_not"] = l.proof.why_not;
  return {{"owner", l.owner.name},
          {"kind", owner_kind_name(l.owner.kind)},
          {"also", also},
          {"as", l.by_graph  ? "graph"
                 : l.by_view ? "view"
                             : "tensor"},
          {"bytes_a_step", l.bytes_a_step},
          {"chain", l.chain},
          {"places", places},
          {"sentence", l.sentence()},
          {"edit", l.edit()},
          {"proof", proof}};
}

nlohmann::json leak_plan_json(const std::string& run, const projects::LeakPlan& plan) {
  return {
      {"run", run},        {"from", plan.from},      {"to", plan.to}, {"kept", plan.kept}, {"steps", plan.to_window},
      {"most", plan.most}, {"seconds", plan.seconds}};
}

nlohmann::json leak_report_json(const projects::LeakReport& report) {
  nlohmann::json leaks = nlohmann::json::array(), ended = nlohmann::json::array();
  for (const projects::RunLeak& l : report.leaks) leaks.push_back(leak_json(l));
  for (const projects::LeakPlace& p : report.ended) ended.push_back(place_json(p));
  return {{"run", report.run},
          {"from", report.from},
          {"to", report.to},
          {"followed_to", report.looked_to},
          {"replayed_steps", report.replayed},
          {"sentence", report.sentence()},
          {"leaks", leaks},
          {"ended", ended}};
}

}  // namespace

bool is_project(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(64, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  return formats::file_kind(head) == formats::FileKind::project;
}

std::vector<Option> run_leaks_options() {
  return {{"--steps", "A:B", "of a project: the steps that are looked at (the last 20)"},
          {"--from-step", "A", "the same, one end alone"},
          {"--to-step", "B", "the same"},
          {"--no-proof", "", "of a project: leaves out the replays without what holds the memory"},
          {"--plan", "", "of a project: only says what would be replayed"},
          kThreads};
}

int run_leaks(const Args& args) {
  const auto project = open_to_read(args.word(0));
  const projects::RunInfo run = pick_run(*project, args.words() > 1 ? args.word(1) : "");
  use_threads(args);
  projects::LeakOptions options;
  if (args.has("--steps")) take_steps(args.text("--steps"), options);
  options.from = args.integer("--from-step", options.from, 1);
  options.to = args.integer("--to-step", options.to, 1);
  options.prove = !args.has("--no-proof");
  catch_interrupts();
  const projects::LeakPlan plan = projects::plan_leaks(*project, run.id, options);
  if (!args.json())
    print(fmt::format("run {}: steps {} to {} are looked at by a replay from step {}: {}\n", run.name,
                      count_text(plan.from), count_text(plan.to), count_text(plan.kept), plan.text()));
  if (args.has("--plan")) {
    if (args.json()) print_json(leak_plan_json(run.name, plan));
    return 0;
  }
  Bar bar("replaying");
  const projects::LeakReport report = projects::find_run_leaks(*project, run.id, options, bar.progress());
  bar.clear();
  const int status = report.leaks.empty() ? 0 : 1;
  if (args.json()) {
    print_json(leak_report_json(report));
    return status;
  }
  show_finding(projects::leak_finding(report), false);
  for (const projects::RunLeak& l : report.leaks) print("\nwhat ends it: " + l.edit() + "\n");
  return status;
}

}  // namespace tenon::app
