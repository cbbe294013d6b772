// tenon audit: one step computed twice, with other threads or another precision, and compared op by op.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "projects/audit.h"

namespace tenon::app {
namespace {

nlohmann::json op_json(const tracing::OpDifference& op) {
  return {{"op", op.op},
          {"module", op.module},
          {"phase", op.phase},
          {"seq", op.a},
          {"elements", op.total},
          {"differ", op.differs},
          {"largest", json_number(op.largest)},
          {"relative", json_number(op.relative)},
          {"a", json_number(op.value_a)},
          {"b", json_number(op.value_b)}};
}

int audit(const Args& args) {
  const auto project = open_to_read(args.word(0));
  const projects::RunInfo run = pick_run(*project, args.words() > 1 ? args.word(1) : "");
  projects::AuditOptions options;
  options.threads_a = static_cast<int>(args.integer("--threads-a", 1, 1));
  options.threads_b = static_cast<int>(args.integer("--threads-b", 0, 0));
  options.set = pairs_of(args, "--set");
  options.tolerance = args.number("--tolerance", 0, 0);
  catch_interrupts();
  Bar bar("replaying");
  const projects::Audit a =
      projects::audit_step(*project, run.id, args.integer("--step", run.steps, 1), options, bar.progress());
  bar.clear();
  const tracing::StepDifference& d = a.difference;
  if (args.json()) {
    print_json({{"run", a.run},
                {"step", a.step},
                {"equal", d.equal()},
                {"ops", d.ops.size()},
                {"only_a", d.only_a},
                {"only_b", d.only_b},
                {"loss_a", json_number(a.loss_a)},
                {"loss_b", json_number(a.loss_b)},
                {"first", d.first < 0 ? nlohmann::json() : op_json(d.ops[static_cast<size_t>(d.first)])},
                {"sentence", a.sentence}});
    if (args.has("--all"))
      for (const auto& op : d.ops) print_json(op_json(op));
    return d.first < 0 ? 0 : 1;
  }
  print(a.sentence + "\n");
  if (a.loss_a != a.loss_b) print(fmt::format("loss {:.9g} and {:.9g}\n", a.loss_a, a.loss_b));
  if (d.only_a + d.only_b > 0)
    print(fmt::format("{} ops are in the first alone, {} in the second\n", count_text(d.only_a), count_text(d.only_b)));
  std::vector<std::vector<std::string>> rows = {{"OP", "MODULE", "PHASE", "DIFFER", "LARGEST", "RELATIVE"}};
  for (const auto& op : d.ops)
    if (op.differs > 0 || args.has("--all"))
      rows.push_back({fmt::format("{} #{}", op.op, op.a), op.module.empty() ? "-" : op.module, op.phase,
                      fmt::format("{} of {}", count_text(op.differs), count_text(op.total)), value_text(op.largest),
                      value_text(op.relative)});
  if (rows.size() > 1) print("\n" + table(rows, {false, false, false, true, true, true}));
  return d.first < 0 ? 0 : 1;
}

const bool registered_audit = register_command(
    {"audit",
     "PROJECT [RUN]",
     1,
     2,
     {{"--step", "N", "which step is computed twice; default: the run's last"},
      {"--threads-a", "N", "threads of the first computation; default: 1"},
      {"--threads-b", "N", "threads of the second; default: every core"},
      {"--set", "KEY=VALUE", "holds in the second alone, such as amp=bf16; may be repeated"},
      {"--tolerance", "X", "how far an op's output may differ, by the norm of the difference; default: not a bit"},
      {"--all", "", "lists every op, not only those that differ"},
      kJson},
     "computes a step twice, with other threads or another precision, and names the first op that differs; exit status "
     "1 "
     "where one does",
     audit});

}  // namespace
}  // namespace tenon::app
