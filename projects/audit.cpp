#include "projects/audit.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/parallel.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "tracing/record/step_recorder.h"

namespace tenon::projects {
namespace {

struct Threads {
  int before = num_threads();
  ~Threads() { set_num_threads(before); }
};

std::string sentence_of(const Audit& a, const AuditOptions& o) {
  const tracing::StepDifference& d = a.difference;
  const std::string all = fmt::format("{} ops of step {}", d.ops.size(), a.step);
  if (d.equal()) return fmt::format("All {} give the same bits.", all);
  if (d.first < 0)
    return fmt::format("All {} are within {:.3g} of each other; {} of them differ at all.", all, o.tolerance,
                       std::count_if(d.ops.begin(), d.ops.end(), [](const auto& op) { return op.differs > 0; }));
  const tracing::OpDifference& op = d.ops[static_cast<size_t>(d.first)];
  return fmt::format(
      "The first op that differs{} is {} #{} of {} ({}): element {} is {:.9g} and {:.9g}; {} of {} elements are not "
      "the "
      "same, by {:.3g} of the whole.",
      o.tolerance > 0 ? fmt::format(" by more than {:.3g}", o.tolerance) : "", op.op, op.a,
      op.module.empty() ? "the model" : "'" + op.module + "'", op.phase, to_string(op.index), op.value_a, op.value_b,
      op.differs, op.total, op.relative);
}

}  // namespace

Audit audit_step(Project& project, int64_t run, int64_t step, const AuditOptions& options, const Progress& progress) {
  const RunInfo info = project.run(run);
  if (step < 1 || step > info.steps)
    throw Error::usage(
        fmt::format("run {} has steps 1 to {}; there is no step {} to compute again", info.name, info.steps, step));
  Threads threads;
  const auto first = replay_to(project, run, step - 1, progress);
  const Checkpoint state = first->save();
  Recipe other = first->recipe();
  for (const auto& [key, text] : options.set) other.set(key, text);
  for (const auto& [key, text] : options.set) other.check_used(key);
  TrainingSession second(first->spec(), other);
  second.load(state);
  set_num_threads(options.threads_a);
  const auto a = tracing::record_step(*first, info.name);
  set_num_threads(options.threads_b);
  const auto b = tracing::record_step(second, info.name);
  Audit audit{info.name, step, a->loss, b->loss, tracing::compare_steps(*a, *b, options.tolerance), {}};
  audit.sentence = sentence_of(audit, options);
  return audit;
}

}  // namespace tenon::projects
