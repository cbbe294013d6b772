// What a run shows once it has trained for a while.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/train/watch.h"
#include "projects/checks/check.h"
#include "projects/watches.h"
#include "tracing/record/step_record.h"

namespace tenon::projects {
namespace {

std::vector<Complaint> not_finite(Checked& c) {
  for (const char* name : {"loss", "grad_norm"})
    for (const MetricPoint& p : c.metric(name))
      if (!std::isfinite(p.value))
        return {{name,
                 fmt::format("{} is {} at step {}", name, p.value, p.step),
                 fmt::format("the NaN doctor, or `tenon nan {} {}`, says which op, element and sample it came from",
                             c.project().path(), c.run()->name),
                 {},
                 p.step}};
  return {};
}

/// Means of the first and the last part of a curve, bad points left out.
double mean_of(const std::vector<MetricPoint>& points, size_t from, size_t to) {
  double sum = 0;
  int64_t n = 0;
  for (size_t i = from; i < to; ++i)
    if (std::isfinite(points[i].value)) sum += points[i].value, ++n;
  return n ? sum / static_cast<double>(n) : NAN;
}

std::vector<Complaint> loss_stands_still(Checked& c) {
  const auto& loss = c.metric("loss");
  if (loss.size() < 200) return {};
  const size_t part = loss.size() / 10;
  const double first = mean_of(loss, 0, part), last = mean_of(loss, loss.size() - part, loss.size());
  if (!(first > 0) || !(last > 0.98 * first)) return {};
  return {{"loss",
           fmt::format("the mean loss of the first {} steps is {:.4g}, that of the last {:.4g}", part, first, last),
           "another optimizer.lr (a tenth, or ten times as much), and a look at Distributions: gradients that vanish, "
           "or a target that does not belong to its input"}};
}

std::vector<Complaint> overfits(Checked& c) {
  const auto &test = c.metric("test_loss"), &train = c.metric("loss");
  if (test.size() < 4 || train.size() < 20) return {};
  const auto best = std::min_element(test.begin(), test.end(), [](const MetricPoint& a, const MetricPoint& b) {
    return std::isfinite(a.value) && (!std::isfinite(b.value) || a.value < b.value);
  });
  const auto later = test.end() - best - 1;
  if (later < 3 || !(test.back().value > 1.1 * best->value)) return {};
  auto mean_until = [&](int64_t step) {
    const auto end =
        std::upper_bound(train.begin(), train.end(), step, [](int64_t s, const MetricPoint& p) { return s < p.step; });
    const auto n = static_cast<size_t>(end - train.begin());
    return mean_of(train, n > 10 ? n - 10 : 0, n);
  };
  const double then = mean_until(best->step), now = mean_until(train.back().step);
  if (!(now < then)) return {};
  return {{"test_loss",
           fmt::format("the test loss was {:.4g} at step {} and is {:.4g} after {}, while the training loss fell from "
                       "{:.4g} to {:.4g}",
                       best->value, best->step, test.back().value, test.back().step, then, now),
           "stop.metric = test_loss with stop.patience, more data or transforms, weight decay, or a smaller model; the "
           "best weights are --checkpoint best",
           {},
           best->step}};
}

/// Parameters of which one thing is said: the worst, and how many others.
struct Found {
  std::vector<std::string> names;
  size_t worst = 0;
  double figure = 0;
  void add(const std::string& name, double badness) {
    if (names.empty() || badness > figure) worst = names.size(), figure = badness;
    names.push_back(name);
  }
  /// The layer of the worst one.
  std::string layer() const { return names[worst].substr(0, names[worst].rfind('.')); }
  std::string about() const {
    return names[worst] + (names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "");
  }
};

/// The ratio of updates to weights that is usual for a parameter in the later half of the run (the lower median of the
/// points there); NaN where there are fewer than two. The first steps of an optimizer are no measure.
double usual_ratio(const Distributions& d, size_t parameter) {
  std::vector<double> ratios;
  for (const Distributions::Point& p : d.points)
    if (const double r = p.replayed && 2 * p.step >= d.steps ? p.parameters[parameter].ratio() : NAN; std::isfinite(r))
      ratios.push_back(r);
  if (ratios.size() < 2) return NAN;
  std::sort(ratios.begin(), ratios.end());
  return ratios[(ratios.size() - 1) / 2];
}

// Far outside of what Distributions marks (kFastRatio, kSlowRatio): what is only worth a look is no fault.
constexpr double kTooFast = 0.1, kTooSlow = 1e-7;

std::vector<Complaint> moves(Checked& c, bool fast, const std::string& remedy) {
  const Distributions* d = c.distributions();
  Found found;
  for (size_t i = 0; d && i < d->parameters.size(); ++i) {
    const double ratio = usual_ratio(*d, i);
    // Small vectors that begin at 0, as biases do, have no size of their own yet.
    if (std::isnan(ratio) || d->parameters[i].name.ends_with("bias")) continue;
    // An update of 0 is one that the rounding of the weights takes, where there is a gradient.
    const bool slow = ratio < kTooSlow && (ratio > 0 || learning_of(*d, i) == Learning::hardly);
    if (fast ? ratio > kTooFast : slow) found.add(d->parameters[i].name, fast ? ratio : 1 / ratio);
  }
  if (found.names.empty()) return {};
  return {{found.about(),
           fmt::format("a step moves it by {:.2g} of its weights' norm in the later half of the run",
                       fast ? found.figure : 1 / found.figure),
           remedy, found.layer()}};
}

std::vector<Complaint> no_gradient(Checked& c) {
  const Distributions* d = c.distributions();
  const Distributions::Point* last = d ? d->last_replayed() : nullptr;
  Found found;
  for (size_t i = 0; last && i < d->parameters.size(); ++i)
    if (learning_of(*d, i) == Learning::vanished)
      found.add(d->parameters[i].name, static_cast<double>(d->parameters[i].size));
  if (found.names.empty()) return {};
  return {{found.about(), fmt::format("every number of its gradient is 0 at step {}", last->step),
           "see whether the loss reaches its layer; take it out, or freeze it", found.layer(), last->step}};
}

/// Values of a tensor of the step that are not above 0, by unit: the axis behind the batch.
std::vector<Complaint> dead_units(Checked& c) {
  std::vector<Complaint> all;
  const auto step = c.last_step();
  if (!step) return all;
  for (const tracing::OpRecord& op : step->ops) {
    if (op.name != "relu" || op.origin.phase != Phase::forward || op.outputs.empty()) continue;
    const Tensor& y = step->tensors[static_cast<size_t>(op.outputs[0])].value;
    if (!y || y.dtype() != DType::f32 || y.ndim() < 2 || !y.is_contiguous() || y.size(0) < 8) continue;
    const int64_t batch = y.size(0), units = y.size(1), inner = y.numel() / std::max<int64_t>(1, batch * units);
    int64_t dead = 0;
    for (int64_t u = 0; u < units; ++u) {
      bool lives = false;
      for (int64_t b = 0; b < batch && !lives; ++b)
        for (int64_t i = 0; i < inner && !lives; ++i) lives = y.data<float>()[(b * units + u) * inner + i] > 0;
      dead += !lives;
    }
    if (units < 4 || 10 * dead < 9 * units) continue;
    const std::string module = module_path(op.origin.module);
    all.push_back({module,
                   fmt::format("{} of {} units give 0 for every sample of step {}: nothing reaches them backward", dead,
                               units, step->step),
                   "a smaller optimizer.lr, LeakyReLU or GELU, or another initialisation", module, step->step});
  }
  return all;
}

/// What a run looks at by itself (memory_growth): outputs, losses or graphs that are kept from step to step.
std::vector<Complaint> memory_grows(Checked& c) {
  for (const WatchHit& h : c.project().watch_hits(c.run()->id))
    if (h.watch == kOwnWatch && h.begins)
      return {{"memory",
               fmt::format("from step {} on every step keeps {} more than the one before", h.step,
                           tracing::bytes_text(h.value)),
               fmt::format("the view Leaks, or `tenon memory leaks {} {}`, names who holds it", c.project().path(),
                           c.run()->name),
               {},
               h.step}};
  return {};
}

const bool registered_run_checks[] = {
    register_check({"run.memory_grows", "Memory is kept from step to step", true, memory_grows}),
    register_check({"run.not_finite", "The loss or a gradient is NaN or infinite", true, not_finite}),
    register_check({"run.loss_stands_still", "The loss does not fall", true, loss_stands_still}),
    register_check({"run.overfits", "The model learns its training set by heart", true, overfits}),
    register_check({"run.no_gradient", "A parameter gets no gradient", true, no_gradient}),
    register_check({"run.moves_fast", "Updates are large for their weights", true,
                    [](Checked& c) { return moves(c, true, "a smaller optimizer.lr, or optimizer.clip_norm"); }}),
    register_check({"run.hardly_moves", "Updates are tiny for their weights", true,
                    [](Checked& c) {
                      return moves(c, false,
                                   "a larger optimizer.lr, or a norm before the layer whose gradient vanishes");
                    }}),
    register_check({"run.dead_units", "Most units of a ReLU are dead", true, dead_units}),
};

}  // namespace
}  // namespace tenon::projects
