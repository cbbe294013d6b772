#include "engine/train/watch_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"
#include "core/name_pattern.h"
#include "core/pool.h"
#include "core/quiet.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/checkpoint.h"
#include "engine/ops/view.h"
#include "engine/optim/optimizer.h"
#include "engine/train/early_stop.h"
#include "engine/train/metric.h"
#include "engine/train/recipe.h"

namespace tenon {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// Adds the time of its scope.
class Stopwatch {
 public:
  explicit Stopwatch(double& to) : to_(to), from_(Clock::now()) {}
  ~Stopwatch() { to_ += std::chrono::duration<double>(Clock::now() - from_).count(); }
  Stopwatch(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& to_;
  Clock::time_point from_;
};

/// A layer's name stands for all that is within it.
bool fits_watched(const std::string& pattern, const std::string& name) {
  return fits_pattern(pattern, name) || fits_pattern(pattern + ".*", name);
}

/// Null where it has no value.
const double* metric_among(const std::vector<std::pair<std::string, double>>& metrics, const std::string& name) {
  for (const auto& [of, value] : metrics)
    if (of == name) return &value;
  return nullptr;
}

/// Of two values that fulfil a condition the larger one is told.
double excess(const Watch& w, double value) {
  using R = Watch::Relation;
  switch (w.relation) {
    case R::above:
    case R::at_least:
      return value;
    case R::below:
    case R::at_most:
      return -value;
    case R::outside:
      return std::max(w.low - value, value - w.high);
    case R::inside:
      return 0;
  }
  return 0;
}

void check_watched_metric(const std::string& metric, const Recipe& recipe, const std::string& task) {
  if (metric.starts_with("test_"))
    check_recorded("watches: metric", metric, recipe.integer("eval_every"), {.task = task});
  if (metric == "loss_scale" && recipe.text("amp") != "fp16")
    throw Error::usage("watches: loss_scale is recorded under amp = fp16 alone");
}

}  // namespace

WatchList::WatchList(TrainingSession& session, const Recipe& recipe, std::vector<Watch> watches)
    : session_(session),
      watches_(std::move(watches)),
      states_(watches_.size()),
      memory_(watches_),
      scaled_(recipe.text("amp") == "fp16") {
  for (size_t i = 0; i < watches_.size(); ++i) {
    const Watch& w = watches_[i];
    if (w.only_metrics())
      check_watched_metric(w.of, recipe, session.task());
    else if (w.subject == WatchSubject::memory)
      growth_ = std::make_unique<GrowthWatch>(session.steps_per_epoch());
    else
      find_tensors(w, states_[i]);
  }
  for (const auto& [metric, count] : memory_.wants()) check_watched_metric(metric, recipe, session.task());
  look_at_outputs();
  session_.add_observer(this);
}

WatchList::~WatchList() {
  session_.remove_observer(this);
  for (const auto& [module, id] : hooks_) module->remove_hook(id);
}

size_t WatchList::look(WatchSubject subject, const std::string& name, const Tensor& tensor) {
  size_t at = 0;
  while (at < looks_.size() && (looks_[at].subject != subject || looks_[at].name != name)) ++at;
  if (at == looks_.size()) {
    Look l;
    l.subject = subject;
    l.name = name;
    l.tensor = tensor;
    looks_.push_back(std::move(l));
  }
  ++looks_[at].users;
  return at;
}

void WatchList::find_tensors(const Watch& w, State& s) {
  std::vector<std::string> names;
  const auto take = [&](const std::string& name, const Tensor& tensor) {
    names.push_back(name);
    if (!fits_watched(w.of, name)) return;
    s.looks.push_back(look(w.subject, name, tensor));
    if (w.measure->by_weights) s.weights.push_back(look(WatchSubject::weight, name, tensor));
  };
  const char* what = "parameter";
  if (w.subject == WatchSubject::activation) {
    what = "layer";
    for (const auto& [path, module] : session_.model().named_modules())
      if (!path.empty()) take(path, {});
  } else if (w.subject == WatchSubject::weight) {
    for (const nn::Named& p : session_.model().parameters()) take(p.name, p.tensor);
  } else {
    what = "parameter that is trained and";
    for (const nn::Named& p : session_.optimizer().parameters()) take(p.name, p.tensor);
  }
  if (!s.looks.empty()) return;
  const std::string near = near_names(w.of, names.data(), names.size());
  throw Error::usage(fmt::format("watches: \"{}\": the model has no {} called \"{}\"", w.condition, what, w.of),
                     !near.empty()   ? near
                     : names.empty() ? ""
                                     : "a name is meant, as in \"" + names.front() + "\"; * stands for any text");
}

void WatchList::look_at_outputs() {
  std::map<std::string, nn::Module*> modules;
  for (const auto& [path, module] : session_.model().named_modules()) modules[path] = module;
  for (size_t i = 0; i < looks_.size(); ++i) {
    if (looks_[i].subject != WatchSubject::activation) continue;
    nn::Module* module = modules.at(looks_[i].name);
    hooks_.emplace_back(module, module->add_forward_hook([this, i](nn::Module&, std::span<const Tensor>, Tensor& y) {
      Look& l = looks_[i];
      if (!l.due || !in_forward_ || nn::recomputing()) return;
      const Stopwatch time(l.seconds);
      l.of.add(moments_of(y));  // of each part of a batch that is computed in parts
    }));
  }
}

void WatchList::on_step_begin(int64_t step) {
  in_forward_ = false;
  for (Look& l : looks_) {
    l.due = false;
    l.of = {};
  }
  for (size_t i = 0; i < watches_.size(); ++i) {
    State& s = states_[i];
    s.due = !watches_[i].of_evaluations() && step % watches_[i].every == 0;
    if (!s.due) continue;
    for (const size_t l : s.looks) looks_[l].due = true;
    for (const size_t l : s.weights) looks_[l].due = true;
  }
}

void WatchList::on_backward() {
  in_forward_ = false;
  for (Look& l : looks_) {
    if (!l.due) continue;
    const Stopwatch time(l.seconds);
    if (l.subject == WatchSubject::gradient) l.of = moments_of(grad_of(l.tensor));
    if (l.subject != WatchSubject::update) continue;
    const Quiet quiet;
    l.before = clone(detach(l.tensor));
  }
}

void WatchList::on_step_end(const StepResult& r) {
  for (Look& l : looks_) {
    if (!l.due) continue;
    const Stopwatch time(l.seconds);
    if (l.subject == WatchSubject::weight) l.of = moments_of(l.tensor);
    // A step that wrote nothing has no update.
    if (l.subject == WatchSubject::update && r.applied) l.of = moments_of_difference(l.tensor, l.before);
    if (l.subject == WatchSubject::gradient && r.loss_scale != 1) l.of.divide(r.loss_scale);
    l.before.reset();
  }
  if (growth_) growth_->take(live_bytes_of_training());
  const auto metrics = step_metrics(r, scaled_);
  for (size_t i = 0; i < watches_.size(); ++i)
    if (states_[i].due) judge(i, metrics, r.step);
  remember(metrics);
}

void WatchList::on_evaluation(const Evaluation& e, int64_t step) {
  const auto metrics = evaluation_metrics(e);
  for (size_t i = 0; i < watches_.size(); ++i)
    if (watches_[i].of_evaluations()) judge(i, metrics, step);
  remember(metrics);
}

void WatchList::judge(size_t watch, const std::vector<std::pair<std::string, double>>& metrics, int64_t step) {
  const Watch& w = watches_[watch];
  State& s = states_[watch];
  const Stopwatch time(s.seconds);
  const double median = memory_.median(w);
  WatchHit hit{.watch = w.condition, .step = step, .at = {}, .begins = !s.held, .action = w.action};
  bool holds = false;
  const auto see = [&](const std::string& at, double value) {
    if (!w.holds(value, median) || (holds && !(excess(w, value) > excess(w, hit.value)))) return;
    holds = true;
    hit.at = at;
    hit.value = value;
    hit.bound = w.bound(value, median);
  };
  if (w.only_metrics())
    if (const double* value = metric_among(metrics, w.of)) see(w.of, w.of_metric(*value));
  if (w.subject == WatchSubject::memory) see(kMemoryGrowth, growth_->bytes_a_step());
  for (size_t i = 0; i < s.looks.size(); ++i) {
    const Look& l = looks_[s.looks[i]];
    if (!l.of.any()) continue;
    double value = w.measure->of(l.of);
    if (w.measure->by_weights) {
      const double weights = w.measure->of(looks_[s.weights[i]].of);
      value = weights > 0 ? value / weights : kNoNumber;  // of weights that are all 0 nothing can be said
    }
    see(l.name, value);
  }
  s.held = holds;
  if (holds) hits_.push_back(std::move(hit));
}

void WatchList::remember(const std::vector<std::pair<std::string, double>>& metrics) {
  for (const auto& [name, value] : metrics) memory_.take(name, value);
}

double WatchList::seconds(size_t watch) const {
  const State& s = states_[watch];
  double all = s.seconds;
  for (const std::vector<size_t>* list : {&s.looks, &s.weights})
    for (const size_t l : *list) all += looks_[l].seconds / looks_[l].users;
  return all;
}

}  // namespace tenon
