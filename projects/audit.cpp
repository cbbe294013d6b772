#include "projects/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/parallel.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tracing/record/f64_reference.h"
#include "tracing/record/step_recorder.h"

namespace tenon::projects {
namespace {

Registry<AuditDef>& audit_registry() {
  static auto& all = *new Registry<AuditDef>("reference of an audit");
  return all;
}

struct Threads {
  int before = num_threads();
  ~Threads() { set_num_threads(before); }
};

std::string op_label(const tracing::OpDifference& op) {
  const std::string place = op.module.empty() ? "the model" : "'" + op.module + "'";
  return op.a ? fmt::format("{} #{} of {} ({})", op.op, op.a, place, op.phase) : fmt::format("{} of {}", op.op, place);
}

std::string first_sentence(const Audit& a) {
  const tracing::OpDifference& op = a.difference.ops[static_cast<size_t>(a.difference.first)];
  const std::string by = a.tolerance > 0 ? fmt::format(" by more than {:.3g}", a.tolerance) : "";
  const std::string begin = fmt::format("The first op that differs{} is {}: ", by, op_label(op));
  if (!op.why.empty()) return begin + op.why + ".";
  return begin + fmt::format(
                     "element {} is {:.9g} ({}) and {:.9g} ({}); {} of {} elements are not the same, by {:.3g} "
                     "of the whole.",
                     to_string(op.index), op.value_a, a.a, op.value_b, a.b, op.differs, op.total,
                     std::max(op.relative, op.carried));
}

std::string sentence_of(const Audit& a) {
  const tracing::StepDifference& d = a.difference;
  std::string all = fmt::format("{} ops of step {}", d.ops.size(), a.step);
  std::string text;
  if (d.first >= 0)
    text = first_sentence(a);
  else if (d.equal())
    text = fmt::format("All {} give the same bits.", all);
  else
    text = fmt::format("All {} are within {:.3g} of each other; {} of them differ at all.", all, a.tolerance,
                       std::count_if(d.ops.begin(), d.ops.end(), [](const auto& op) { return op.differs > 0; }));
  if (d.unknown) text += fmt::format(" {} ops have nothing to be compared with.", d.unknown);
  if (!a.remark.empty()) text += " " + a.remark;
  return text;
}

void compare_again(const RunInfo& info, TrainingSession& session, const AuditOptions& options,
                   const std::function<bool()>& go_on, Audit& audit) {
  const Threads threads;
  const Checkpoint state = session.save();
  Recipe other = session.recipe();
  for (const auto& [key, text] : options.set) other.set(key, text);
  for (const auto& [key, text] : options.set) other.check_used(key);
  TrainingSession second(session.spec(), other);
  second.load(state);
  const auto side = [&](TrainingSession& s, int count, std::string& name) {
    set_num_threads(count);
    name = num_threads() == 1 ? "1 thread" : fmt::format("{} threads", num_threads());
    return tracing::record_step(s, info.name, {.clocks = false});
  };
  const auto a = side(session, options.threads_a, audit.a);
  if (!go_on()) throw Error("cancelled");
  const auto b = side(second, options.threads_b, audit.b);
  for (const auto& [key, text] : options.set) audit.b += ", " + key + "=" + text;
  audit.loss_a = a->loss;
  audit.loss_b = b->loss;
  audit.difference = tracing::compare_steps(*a, *b, audit.tolerance);
}

void compare_f64(const RunInfo&, TrainingSession& session, const AuditOptions&, const std::function<bool()>&,
                 Audit& audit) {
  tracing::F64Reference r = tracing::compare_with_f64(session, audit.tolerance);
  audit.a = "as it was computed";
  audit.b = "in f64";
  audit.loss_a = r.loss;
  audit.difference = std::move(r.difference);
}

const bool registered_again =
    register_audit({"again", "The same step again",
                    "the step is computed a second time, with other threads or another setting of the recipe", 0, false,
                    compare_again, 0});
// Sums of many terms that cancel leave a few parts in 100,000 of f32; more than that is worth a look.
const bool registered_f64 = register_audit(
    {"f64", "Each op in f64", "each op alone is computed once more in f64, from the very values it was given", 1e-4,
     false, compare_f64, 1});

}  // namespace

bool register_audit(AuditDef def, Place place) { return audit_registry().add(std::move(def), place); }
const Registry<AuditDef>& audits() { return audit_registry(); }

const AuditDef& audit_named(const std::string& name) {
  if (const AuditDef* def = audits().find(name)) return *def;
  std::string all;
  for (const AuditDef& def : audits()) all += (all.empty() ? "" : ", ") + def.name;
  throw Error::usage("there is nothing called \"" + name + "\" to compare with", all + ", or an .onnx or .pt2 file.");
}

Audit audit_step(Project& project, int64_t run, int64_t step, const AuditOptions& options, const Progress& progress) {
  const AuditDef& def = audit_named(options.against);
  const RunInfo info = project.run(run);
  if (step < 1 || step > info.steps)
    throw Error::usage(
        fmt::format("run {} has steps 1 to {}; there is no step {} to compute again", info.name, info.steps, step));
  const auto session = replay_to(project, run, def.after ? step : step - 1, progress);
  Audit audit;
  audit.run = info.name;
  audit.step = step;
  audit.tolerance = options.tolerance < 0 ? def.tolerance : options.tolerance;
  audit.loss_a = audit.loss_b = std::numeric_limits<double>::quiet_NaN();
  def.compare(
      info, *session, options, [&] { return !progress || progress(0, 0); }, audit);
  audit.sentence = sentence_of(audit);
  return audit;
}

int64_t beyond_tolerance(const Audit& audit) {
  return std::count_if(audit.difference.ops.begin(), audit.difference.ops.end(),
                       [&](const tracing::OpDifference& op) { return op.beyond(audit.tolerance); });
}

}  // namespace tenon::projects
