#include "engine/train/planned_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "core/backend.h"
#include "core/dry_device.h"
#include "core/pool.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/random_state.h"
#include "engine/ops/view.h"

namespace tenon {
namespace {

constexpr size_t kMostPlans = 8;      // a run has one size of batch, and another at the end of an epoch
constexpr int kMostDropped = 4;       // of one size, one after the other, that did not last
constexpr int64_t kLasts = 10;        // steps: a plan costs three
constexpr int64_t kForgotten = 1000;  // steps without a form of batches after which its plan may go for another's
constexpr int64_t kProven = 10;       // steps before a plan is proven again, then ten times as many
constexpr uint32_t kLooked = mode::observe | mode::profile | mode::memory | mode::interrupt | mode::inference;

/// What two tensors have in common that have the same bits; 0: there is none.
size_t fingerprint(const Tensor& t) {
  if (!t) return 0;
  const Tensor own = contiguous(to_host(detach(t)));
  return std::hash<std::string_view>()({static_cast<const char*>(own.raw()), own.nbytes()}) | 1;
}

/// Gives the system back what the CPU's pool holds. Memory of a device stays: its driver takes long.
void trim(Device device) {
  if (device == Device{}) pool_trim();
}

std::string in_mebibytes(int64_t bytes) {
  const double kib = static_cast<double>(bytes) / 1024;
  return kib < 1024 ? fmt::format("{:.1f} KiB", kib) : fmt::format("{:.1f} MiB", kib / 1024);
}

std::string made_of(const StepPlanFigures& f) {
  std::string more;
  if (f.chains) more = fmt::format("{} of them tile by tile in {} chains", f.chained, f.chains);
  if (f.again) more += fmt::format("{}{} for the second time", more.empty() ? "" : "; ", f.again);
  if (!more.empty()) more = " (" + more + ")";
  return fmt::format("a plan of {} kernels{}, whose values share {} instead of {}", f.kernels, more,
                     in_mebibytes(f.arena_bytes), in_mebibytes(f.value_bytes));
}

}  // namespace

bool PlannedStep::Kind::operator==(const Kind& o) const {
  return x.dtype == o.x.dtype && x.shape == o.x.shape && x_stride == o.x_stride && target.dtype == o.target.dtype &&
         target.shape == o.target.shape && target_stride == o.target_stride && factor == o.factor && drawn == o.drawn &&
         trained == o.trained;
}

PlannedStep::Entry* PlannedStep::entry_of(Kind kind) {
  for (const auto& e : entries_)
    if (e->kind == kind) return e.get();
  if (entries_.size() == kMostPlans) {
    // A scale of the loss that was left goes for the next; forms that come all the time do not take turns.
    const auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                         [](const auto& a, const auto& b) { return a->used < b->used; });
    if (steps_ - (*oldest)->used < kForgotten) return nullptr;
    forgotten_ += (*oldest)->earlier_steps + (*oldest)->planned_steps;
    entries_.erase(oldest);
  }
  entries_.push_back(std::make_unique<Entry>(Entry{.kind = std::move(kind)}));
  return entries_.back().get();
}

std::string PlannedStep::Entry::form() const {
  return fmt::format("batches of {} {}", name(kind.x.dtype), to_string(kind.x.shape));
}

std::string PlannedStep::Entry::way() const {
  if (recorded && no_graph.empty()) return ", as one graph of " + to_string(plan->device());
  return no_graph.empty() ? "" : ", kernel by kernel: " + no_graph;
}

void PlannedStep::refuse(Entry& e, std::string why) {
  e.first.reset();
  e.replay.reset();
  e.recorded = false;
  e.plan.reset();
  e.why = std::move(why);
  news_.push_back({fmt::format("{} run op by op: {}", e.form(), e.why), true});
}

/// Its layers were given other memory.
void PlannedStep::drop(Entry& e) {
  const int dropped = e.planned_steps < kLasts ? e.dropped + 1 : 0;
  e.replay.reset();  // before the plan
  e = {.kind = e.kind, .earlier_steps = e.earlier_steps + e.planned_steps, .dropped = dropped};
  if (dropped > kMostDropped) return refuse(e, "layers are given other memory again and again");
  news_.push_back({fmt::format("{} are planned anew: layers were given other memory", e.form())});
}

void PlannedStep::stay_eager(const std::string& why) {
  if (std::find(why_.begin(), why_.end(), why) != why_.end()) return;
  why_.push_back(why);
  news_.push_back({fmt::format("some {} run op by op: {}", called_, why), true});
}

bool PlannedStep::looked_at() { return mode_word() & kLooked; }

PlannedStep::Values PlannedStep::run(const Tensor& x, const Tensor& target, double factor,
                                     const std::vector<nn::Named>& trained, const Eager& eager) {
  if (looked_at() || is_dry(x.device())) return eager();
  ++steps_;
  if (model_.hooked()) {
    stay_eager("hooks look at what layers compute");
    return eager();
  }
  Entry* e =
      x.offset() == 0 && target.offset() == 0
          ? entry_of({x.meta(), target.meta(), x.stride(), target.stride(), factor, nn::t_random.drawn, trained.size()})
          : nullptr;
  if (!e) {
    stay_eager("batches come in more forms than plans are kept");
    return eager();
  }
  e->used = steps_;
  if (!e->why.empty()) return eager();
  places_.clear();
  model_.places(places_);
  if (e->plan && !e->plan->holds(places_)) drop(*e);
  if (!e->why.empty()) return eager();
  const bool draws = !e->plan || e->plan->reads(2);
  const std::vector<Tensor> given = {x, target, draws ? nn::step_key(x.device()) : Tensor()};
  if (!e->plan) {
    drop_graphs();  // their memory is needed
    return trace(*e, given, trained, eager);
  }
  if (e->planned_steps == e->next_proof) return prove(*e, given, trained, eager);
  if (std::exchange(after_ops_, false)) trim(x.device());
  std::vector<Tensor> results = run_plan(*e, given);
  for (size_t i = 0; i < trained.size(); ++i) set_grad(trained[i].tensor, results[i + 2]);
  ++e->planned_steps;
  return {std::move(results[0]), std::move(results[1])};
}

/// From its graph where the device records: once a step came from the plan kernel by kernel.
std::vector<Tensor> PlannedStep::run_plan(Entry& e, const std::vector<Tensor>& given) {
  if (!e.no_graph.empty() || e.planned_steps == 0 || !PlanReplay::possible(e.plan->device())) return e.plan->run(given);
  if (e.replay && !e.replay->free()) {
    e.replay.reset();
    e.held = true;
  }
  if (!e.replay) {
    drop_graphs();
    try {
      e.replay = std::make_unique<PlanReplay>(*e.plan, given, e.held);
    } catch (const Error& error) {
      e.no_graph = error.message();
      news_.push_back(
          {fmt::format("the plan of {} runs kernel by kernel and not as one graph: {}", e.form(), e.no_graph)});
      return e.plan->run(given);
    }
    if (!std::exchange(e.recorded, true))
      news_.push_back(
          {fmt::format("the plan of {} is done as one graph of {}", e.form(), to_string(e.plan->device()))});
  }
  return e.replay->run(given);
}

void PlannedStep::drop_graphs() const {
  for (const auto& e : entries_) e->replay.reset();
}

PlannedStep::Values PlannedStep::trace(Entry& e, const std::vector<Tensor>& given,
                                       const std::vector<nn::Named>& trained, const Eager& eager) {
  std::vector<Tensor> named, leaves;
  for (const Tensor* t : places_) named.push_back(*t);
  for (const nn::Named& p : trained) leaves.push_back(p.tensor);
  StepTracer tracer(given, named);
  Values values;
  {
    const ObserveScope observe(tracer);
    values = eager();
  }
  StepTrace trace = tracer.finish({values.output, values.loss}, leaves);
  if (!trace.why_not.empty()) {
    refuse(e, trace.why_not);
  } else if (!e.first) {
    e.first = std::move(trace);
  } else if (std::string other = e.first->difference(trace); !other.empty()) {
    refuse(e, std::move(other));
  } else {
    e.first.reset();
    e.plan = std::make_unique<StepPlan>(std::move(trace), named, keep_, given[0].device());
  }
  return values;
}

PlannedStep::Values PlannedStep::prove(Entry& e, const std::vector<Tensor>& given,
                                       const std::vector<nn::Named>& trained, const Eager& eager) {
  // What the step writes is put back, so that it is written once. All buffers are: they are small.
  std::vector<Tensor> buffers, before;
  for (const nn::Named& b : model_.buffers()) buffers.push_back(b.tensor);
  std::vector<size_t> of_plan, of_ops;
  const auto counts = [] { return std::pair(t_state.origin.seq, nn::t_random.drawn); };
  auto after_plan = counts();
  const nn::RandomState random = nn::t_random;
  const Origin origin = t_state.origin;
  {
    const NoGrad off;
    for (const Tensor& b : buffers) before.push_back(clone(b));
    t_state.origin = origin;  // copies are no part of the step
    trim(given[0].device());  // what the ops worked in is no use to the plan, nor the other way round
    const std::vector<Tensor> results = run_plan(e, given);
    after_plan = counts();
    for (const Tensor& t : results) of_plan.push_back(fingerprint(t));
    for (const Tensor& b : buffers) of_plan.push_back(fingerprint(b));
    for (size_t i = 0; i < buffers.size(); ++i) copy_(buffers[i], before[i]);
  }
  nn::t_random = random;
  t_state.origin = origin;
  drop_graphs();
  trim(given[0].device());
  const Values values = eager();
  const auto after_ops = counts();
  of_ops = {fingerprint(values.output), fingerprint(values.loss)};
  for (const nn::Named& p : trained) of_ops.push_back(fingerprint(grad_of(p.tensor)));
  for (const Tensor& b : buffers) of_ops.push_back(fingerprint(b));
  const bool same = of_plan == of_ops && after_plan == after_ops;
  t_state.origin.seq = after_ops.first;  // nor are fingerprints
  const bool first = e.next_proof == 0;
  if (!same) {
    refuse(e, first ? "its plan has other bits than its ops"
                    : fmt::format("its plan has no longer the bits of its ops: a layer keeps something in no buffer, "
                                  "and the last {} {} from the plan may be wrong",
                                  e.planned_steps - e.last_proof, called_));
    return values;
  }
  if (first) news_.push_back({fmt::format("from here on {} come from {}", e.form(), made_of(e.plan->figures()))});
  e.last_proof = e.planned_steps;
  e.next_proof = first ? kProven : 10 * e.next_proof;
  after_ops_ = true;
  return values;
}

void PlannedStep::rest() const {
  drop_graphs();
  if (plan()) pool_trim();
}

std::vector<std::string> PlannedStep::told() const {
  std::vector<std::string> lines;
  // Forms that have plans are told together, the largest plan for all of them.
  const Entry* largest = nullptr;
  int64_t planned = forgotten_, forms = 0;
  for (const auto& e : entries_) {
    if (!e->why.empty() || !e->plan || e->planned_steps == 0) continue;
    if (!largest || e->plan->figures().arena_bytes > largest->plan->figures().arena_bytes) largest = e.get();
    planned += e->earlier_steps + e->planned_steps;
    ++forms;
  }
  if (forms > 1)
    lines.push_back(fmt::format("{} and {} other form{}: {} {} from a plan each, the largest is {}", largest->form(),
                                forms - 1, forms == 2 ? "" : "s", planned, called_,
                                made_of(largest->plan->figures()) + largest->way()));
  for (const auto& e : entries_) {
    if (forms > 1 && e->why.empty() && e->plan && e->planned_steps > 0) continue;
    const int64_t steps = e->earlier_steps + e->planned_steps;
    if (!e->why.empty())
      lines.push_back(fmt::format("{} run op by op{}: {}", e->form(),
                                  steps ? fmt::format(" after {} {} from plans", steps, called_) : "", e->why));
    else if (steps > 0)
      lines.push_back(fmt::format("{}: {} {} from {}{}", e->form(), steps, called_,
                                  e->plan ? made_of(e->plan->figures()) : "plans that were dropped", e->way()));
  }
  for (const std::string& why : why_) lines.push_back(fmt::format("some {} ran op by op: {}", called_, why));
  return lines;
}

const StepPlan* PlannedStep::plan() const {
  for (const auto& e : entries_)
    if (e->plan) return e->plan.get();
  return nullptr;
}

}  // namespace tenon
