#include <fmt/format.h>

#include "core/error.h"
#include "core/parallel.h"
#include "core/sha256.h"
#include "core/tensor_bytes.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"
#include "projects/replay.h"
#include "projects/run_driver.h"

namespace tenon::projects {

std::unique_ptr<TrainingSession> replay_to(Project& project, int64_t run, int64_t step, const Progress& progress) {
  const RunInfo info = project.run(run);
  if (step < 0) throw Error::usage(fmt::format("step {} makes no sense: steps count from 0, the state before the first one", step));
  if (step > info.steps)
    throw Error::usage(fmt::format("run {} has done {} steps; there is no step {} to go to", info.name, info.steps, step), "Go on with it first: tenon train --resume " + info.name);
  auto session = std::make_unique<TrainingSession>(info.model, Recipe::from_json(info.recipe));
  const Checkpoint from = project.checkpoint_before(run, step);
  session->load(from);
  while (session->steps_done() < step) {
    if (progress && !progress(session->steps_done() - from.step, step - from.step)) throw Error("cancelled");
    session->step();
  }
  return session;
}

Checkpoint state_at(Project& project, int64_t run, int64_t step, int threads, const Progress& progress) {
  if (threads > 0) set_num_threads(threads);
  return replay_to(project, run, step, progress)->save();
}

std::string digest_at(Project& project, int64_t run, int64_t step, int threads, const Progress& progress) {
  return digest(state_at(project, run, step, threads, progress));
}

std::string digest(const Checkpoint& checkpoint) {
  Sha256 h;
  std::vector<char> copy;
  h.update(fmt::format("tenon state 1\nstep {}\n{}\n", checkpoint.step, checkpoint.state.dump()));
  for (const auto& [name, tensor] : checkpoint.tensors) {
    h.update(fmt::format("{} {} {}\n", name, tenon::name(tensor.dtype()), to_string(tensor.size())));
    const std::string_view bytes = logical_bytes(tensor, copy);
    h.update(bytes.data(), bytes.size());
  }
  return hex(h.finish());
}

}  // namespace tenon::projects
