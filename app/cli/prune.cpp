// tenon prune: a trained model with fewer channels or of lower rank, as a project to go on with.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "projects/shrink.h"
#include "views/shared/shrink_table.h"

namespace tenon::app {
namespace {

nlohmann::json rows_json(const Shrunk& s) {
  nlohmann::json rows = nlohmann::json::array();
  for (const ShrinkRow& r : s.rows)
    rows.push_back({{"layer", r.layer},
                    {"type", r.type},
                    {"channels", {r.channels, r.channels_after}},
                    {"parameters", {r.parameters, r.parameters_after}},
                    {"flops", {r.flops, r.flops_after}},
                    {"rank", r.rank ? nlohmann::json({r.full_rank, r.rank}) : nlohmann::json()},
                    {"error", r.rank ? json_number(r.error) : nlohmann::json()},
                    {"kept", r.kept}});
  return rows;
}

int prune(const Args& args) {
  projects::ShrinkOptions o;
  if (args.has("--zeros") && args.has("--amount"))
    throw Error::usage("--zeros and --amount cannot go together",
                       "--zeros takes out what is zero already, --amount a share of the channels.");
  if (args.has("--energy") && (args.has("--zeros") || args.has("--amount")))
    throw Error::usage("--energy goes without --amount and --zeros",
                       "It makes two layers of lower rank of one; those take channels out.");
  o.energy = args.number("--energy", 0, 0);
  if (args.has("--energy") && !(o.energy > 0 && o.energy <= 1))
    throw Error::usage("--energy is above 0 and at most 1", "0.9 keeps nine tenths of the squares of singular values.");
  o.zeros = args.has("--zeros");
  o.amount = args.number("--amount", o.amount, 0);
  o.layers = args.text("--layers", o.layers);
  if (!args.has("--plan") && !args.has("-o"))
    throw Error::usage("where the smaller model goes was not said", "Say -o SMALL.tenon, or --plan to see the table.");
  const auto [project, run, step] = asked_state(args);
  Bar bar("pruning");
  if (args.has("--plan")) {
    const Shrunk small = projects::plan_shrink(projects::trained_model(*project, run, step, bar.progress()), o);
    bar.clear();
    if (args.json())
      print_json({{"run", run.name}, {"step", step}, {"layers", rows_json(small)}});
    else
      print_table(views::shrink_table(small));
    return 0;
  }
  const projects::ShrinkReport r = projects::shrink_run(*project, run, step, o, args.text("-o"), bar.progress());
  bar.clear();
  if (args.json()) {
    print_json({{"file", r.path},
                {"run", r.run},
                {"step", r.step},
                {"parameters", {r.small.parameters(), r.small.parameters_after()}},
                {"flops", {r.small.flops(), r.small.flops_after()}},
                {"batch", r.batch},
                {"seconds", {json_number(r.seconds), json_number(r.seconds_after)}},
                {"times_faster", json_number(r.times_faster())},
                {"metric", r.before.decisive.name},
                {"value", {json_number(r.before.decisive.value), json_number(r.after.decisive.value)}},
                {"layers", rows_json(r.small)}});
    return 0;
  }
  print(fmt::format("{}: {} at step {}\n{}\n\n", r.path, run.name, count_text(step), r.text()));
  print_table(views::shrink_table(r.small));
  return 0;
}

const bool registered_prune_command = register_command(
    {"prune",
     "PROJECT [RUN] -o SMALL.tenon",
     1,
     2,
     {{"--amount", "SHARE", "of the channels of each layer that go, those of least 1-norm (0.5)"},
      {"--zeros", "", "the channels that are all zero go instead, as prune kind=channels leaves them"},
      {"--energy", "SHARE",
       "instead of channels: each layer becomes two of the lowest rank that keeps this share of the "
       "squares of its singular values, where that is smaller"},
      {"--layers", "PATTERN", "names of layers, separated by commas: features.*,classifier.0 (*)"},
      {"--checkpoint", "best|last|STEP", "which state (last)"},
      {"-o", "FILE", "the new project, whose runs begin with the weights that stay"},
      {"--plan", "", "only says what would go"},
      kThreads,
      kJson},
     "takes channels out of a trained model, or makes two layers of lower rank of one: a smaller project to train on",
     prune});

}  // namespace
}  // namespace tenon::app
