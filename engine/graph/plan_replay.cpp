#include "engine/graph/plan_replay.h"

#include <algorithm>

#include "core/backend.h"
#include "engine/autograd/autograd.h"
#include "engine/ops/create.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

// The step's output and loss outlive the next step where somebody reads them later; gradients do not.
constexpr size_t kKeptResults = 2;

bool held_by_others(const Tensor& t) { return t && (t.impl()->refs.load() > 1 || t.storage()->refs.load() > 1); }

}  // namespace

bool PlanReplay::possible(Device device) { return !(device == Device{}) && backend_of(device).begin_graph; }

PlanReplay::PlanReplay(StepPlan& plan, const std::vector<Tensor>& given, bool copies) : plan_(plan), copies_(copies) {
  for (size_t i = 0; i < given.size(); ++i)
    given_.push_back(given[i] && plan.reads(static_cast<int>(i))
                         ? empty_strided({given[i].size(), given[i].stride(), 0}, given[i].dtype(), plan.device())
                         : Tensor());
  memory_ = plan.take_memory();
  const Stream stream = current_stream(plan.device());
  const Backend& backend = backend_of(stream.device);
  const NoGrad off;
  backend.begin_graph(stream);
  try {
    plan.queue(given_, memory_);
  } catch (...) {
    try {
      backend.drop_graph(backend.end_graph());
    } catch (const Error&) {  // of what is thrown already
    }
    throw;
  }
  graph_ = backend.end_graph();
}

PlanReplay::~PlanReplay() { backend_of(plan_.device()).drop_graph(graph_); }

bool PlanReplay::free() const {
  return copies_ || std::none_of(memory_.results.begin() + std::min(kKeptResults, memory_.results.size()),
                                 memory_.results.end(), held_by_others);
}

std::vector<Tensor> PlanReplay::run(const std::vector<Tensor>& given) {
  const Device device = plan_.device();
  const Stream stream = current_stream(device);
  for (size_t i = 0; i < given_.size(); ++i)
    if (const Tensor& to = given_[i])
      copy_bytes(to.storage()->data, device, given[i].storage()->data, device, to.storage()->bytes);
  backend_of(device).replay_graph(graph_, stream);
  std::vector<Tensor> results = memory_.results;
  const Origin origin = t_state.origin;  // copies are no part of the step
  {
    const NoGrad off;
    for (size_t r = 0; r < results.size(); ++r)
      if (results[r] && (copies_ || r < kKeptResults)) results[r] = clone(results[r]);
  }
  t_state.origin = origin;
  plan_.count(true);
  return results;
}

}  // namespace tenon
