// tenon audit: the numbers of one step beside a reference, op by op: the same step again, f64, ONNX Runtime, a file.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "projects/audit.h"
#include "views/shared/settings.h"

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
          {"carried", op.carried < 0 ? nlohmann::json() : json_number(op.carried)},
          {"a", json_number(op.value_a)},
          {"b", json_number(op.value_b)},
          {"why", op.why.empty() ? nlohmann::json() : nlohmann::json(op.why)}};
}

/// What stands behind --against: the name of a reference, or a file.
void choose(const Args& args, projects::AuditOptions& options) {
  const std::string against = args.text("--against", options.against);
  options.against = against;
  if (against.ends_with(".onnx") || against.ends_with(".pt2"))
    options.against = "file", options.file = against;
  else if (against == "file")
    throw Error::usage("--against file names no file", "Name it: --against model.onnx");
  const std::string& kind = projects::audit_named(options.against).name;
  for (const char* of_again : {"--set", "--threads-a", "--threads-b"})
    if (kind != "again" && args.has(of_again))
      throw Error::usage(
          fmt::format("{} is of a step that is computed again; it means nothing against {}", of_again, against));
  if (kind != "onnx" && args.has("--python"))
    throw Error::usage(fmt::format("--python runs ONNX Runtime; it means nothing against {}", against));
  options.python = args.text("--python", views::settings::text("python"));
}

std::string op_label(const tracing::OpDifference& op) { return op.a ? fmt::format("{} #{}", op.op, op.a) : op.op; }

int audit(const Args& args) {
  const auto project = open_to_read(args.word(0));
  const projects::RunInfo run = pick_run(*project, args.words() > 1 ? args.word(1) : "");
  projects::AuditOptions options;
  options.threads_a = static_cast<int>(args.integer("--threads-a", 1, 1));
  options.threads_b = static_cast<int>(args.integer("--threads-b", 0, 0));
  options.set = pairs_of(args, "--set");
  options.tolerance = args.number("--tolerance", -1, 0);
  choose(args, options);
  catch_interrupts();
  Bar bar("replaying");
  const projects::Audit a =
      projects::audit_step(*project, run.id, args.integer("--step", run.steps, 1), options, bar.progress());
  bar.clear();
  const tracing::StepDifference& d = a.difference;
  if (args.json()) {
    print_json({{"run", a.run},
                {"step", a.step},
                {"against", options.against},
                {"is", a.a},
                {"beside", a.b},
                {"tolerance", a.tolerance},
                {"beyond", projects::beyond_tolerance(a)},
                {"equal", d.equal()},
                {"ops", d.ops.size()},
                {"only_a", d.only_a},
                {"only_b", d.only_b},
                {"unknown", d.unknown},
                {"loss_a", json_number(a.loss_a)},
                {"loss_b", json_number(a.loss_b)},
                {"first", d.first < 0 ? nlohmann::json() : op_json(d.ops[static_cast<size_t>(d.first)])},
                {"sentence", a.sentence}});
    if (args.has("--all"))
      for (const auto& op : d.ops) print_json(op_json(op));
    return d.first < 0 ? 0 : 1;
  }
  print(a.sentence + "\n");
  if (std::isfinite(a.loss_b) && a.loss_a != a.loss_b)
    print(fmt::format("loss {:.9g} and {:.9g}\n", a.loss_a, a.loss_b));
  if (d.only_a + d.only_b > 0)
    print(fmt::format("{} ops are in the first alone, {} in the second\n", count_text(d.only_a), count_text(d.only_b)));
  std::vector<std::vector<std::string>> rows = {{"OP", "MODULE", "PHASE", "DIFFER", "LARGEST", "RELATIVE", "CARRIED"}};
  for (const auto& op : d.ops)
    if (op.differs > 0 || !op.why.empty() || op.carried > 0 || args.has("--all"))
      rows.push_back({op_label(op), op.module.empty() ? "-" : op.module, op.phase,
                      op.why.empty() ? fmt::format("{} of {}", count_text(op.differs), count_text(op.total)) : op.why,
                      op.why.empty() ? value_text(op.largest) : "-", op.why.empty() ? value_text(op.relative) : "-",
                      op.carried < 0 ? "-" : value_text(op.carried)});
  if (rows.size() > 1) print("\n" + table(rows, {false, false, false, true, true, true, true}));
  return d.first < 0 ? 0 : 1;
}

const bool registered_audit = register_command(
    {"audit",
     "PROJECT [RUN]",
     1,
     2,
     {{"--step", "N", "which step is looked at; default: the run's last"},
      {"--against", "WHAT",
       "again (default): the step is computed twice; f64: each op once more in f64; onnx: ONNX Runtime on the exported "
       "model; FILE.onnx, FILE.pt2: each node of a file, from the model's own values"},
      {"--python", "PROGRAM",
       "the Python that has onnxruntime and numpy; default: the setting \"python\", or the first on the path that "
       "does"},
      {"--threads-a", "N", "threads of the first computation; default: 1"},
      {"--threads-b", "N", "threads of the second; default: every core"},
      {"--set", "KEY=VALUE", "holds in the second alone, such as amp=bf16; may be repeated"},
      {"--tolerance", "X",
       "how far an op's output may differ, by the norm of the difference; default: not a bit, 1e-4 against f64, 1e-5 "
       "against ONNX"},
      {"--all", "", "lists every op, not only those that differ"},
      kJson},
     "holds the numbers of a step against a reference (the step again with other threads or another precision, f64, "
     "ONNX Runtime, a model file) and names the first op that differs; exit status 1 where one does",
     audit});

}  // namespace
}  // namespace tenon::app
