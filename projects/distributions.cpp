#include "projects/distributions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/backend.h"
#include "core/error.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/module.h"
#include "engine/ops/dense.h"
#include "engine/optim/optimizer.h"
#include "engine/train/session.h"

namespace tenon::projects {

namespace {

constexpr size_t kQuantiles = Spread::kShares.size();

/// Reads tensors and sums them up, all in one buffer.
class Reader {
 public:
  Spread read(const Tensor& t) {
    take(t);
    return spread();
  }
  /// Of `after` less `before`, number by number.
  Spread read_difference(const Tensor& after, const Tensor& before) {
    const NoGrad off;
    float_or_double(after, [&](auto type) {
      const Tensor a = host<decltype(type)>(after), b = host<decltype(type)>(before);
      const auto *x = a.template data<decltype(type)>(), *y = b.template data<decltype(type)>();
      values_.resize(static_cast<size_t>(a.numel()));
      for (size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(x[i] - y[i]);
    });
    return spread();
  }

 private:
  template <class T>
  static Tensor host(const Tensor& t) {
    return ops::dense_as(to_host(detach(t)), std::is_same_v<T, float> ? DType::f32 : DType::f64);
  }
  template <class F>
  static void float_or_double(const Tensor& t, const F& f) {
    ops::float_or_double(t.dtype() == DType::f64 ? DType::f64 : DType::f32, f);
  }
  void take(const Tensor& t) {
    values_.clear();
    if (!t) return;
    const NoGrad off;
    float_or_double(t, [&](auto type) {
      const Tensor h = host<decltype(type)>(t);
      const auto* x = h.template data<decltype(type)>();
      values_.resize(static_cast<size_t>(h.numel()));
      for (size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>(x[i]);
    });
  }
  /// Of what was taken; the order of the numbers is gone afterwards. Sums are added up in the tensor's order.
  Spread spread() {
    Spread s;
    s.count = static_cast<int64_t>(values_.size());
    std::erase_if(values_, [](float v) { return !std::isfinite(v); });
    const auto n = static_cast<double>(values_.size());
    s.bad = s.count - static_cast<int64_t>(values_.size());
    if (values_.empty()) return s;
    double sum = 0, squares = 0;
    for (const float v : values_) {
      s.zeros += v == 0;
      sum += v;
      squares += static_cast<double>(v) * v;
    }
    s.mean = sum / n;
    s.norm = std::sqrt(squares);
    double about = 0;
    for (const float v : values_) about += (v - s.mean) * (v - s.mean);
    s.deviation = std::sqrt(about / n);
    auto from = values_.begin();  // what lies before it is no larger than what follows
    for (size_t q = 0; q < kQuantiles; ++q) {
      const double place = Spread::kShares[q] * (n - 1), below = std::floor(place);
      const auto at = values_.begin() + static_cast<int64_t>(below);
      std::nth_element(from, at, values_.end());
      from = at;
      const double low = *at;
      const double high = place > below ? *std::min_element(at + 1, values_.end()) : low;
      s.quantiles[q] = static_cast<float>(low + (high - low) * (place - below));
    }
    return s;
  }

  std::vector<float> values_;
};

void divide(Spread& s, double by) {
  for (float& q : s.quantiles) q = static_cast<float>(q / by);
  s.mean /= by, s.deviation /= by, s.norm /= by;
}

/// The gradients of a step before anything else is done with them.
class GradientListener : public TrainingObserver {
 public:
  GradientListener(TrainingSession& session, Reader& reader) : session_(session), reader_(reader) {
    session_.add_observer(this);
  }
  ~GradientListener() override { session_.remove_observer(this); }
  GradientListener(const GradientListener&) = delete;
  void on_backward() override {
    spreads_.clear();
    for (const nn::Named& p : session_.optimizer().parameters()) spreads_[p.name] = reader_.read(grad_of(p.tensor));
  }
  void on_step_end(const StepResult& r) override {
    if (r.loss_scale != 1)
      for (auto& [name, s] : spreads_) divide(s, r.loss_scale);
  }
  /// Of the last step, of each parameter that is trained.
  const std::map<std::string, Spread>& spreads() const { return spreads_; }

 private:
  TrainingSession& session_;
  Reader& reader_;
  std::map<std::string, Spread> spreads_;
};

/// Those nearest to even places between the first and the last, by step; of one step the newest.
std::vector<CheckpointInfo> even_ones(const std::vector<CheckpointInfo>& all) {
  std::vector<CheckpointInfo> by_step;
  for (const CheckpointInfo& c : all) {
    if (!by_step.empty() && by_step.back().step == c.step) by_step.pop_back();
    by_step.push_back(c);
  }
  if (by_step.size() <= Distributions::kMostPoints) return by_step;
  std::vector<CheckpointInfo> even;
  const auto first = static_cast<double>(by_step.front().step), last = static_cast<double>(by_step.back().step);
  for (size_t k = 0; k < Distributions::kMostPoints; ++k) {
    const double at = first + (last - first) * static_cast<double>(k) / (Distributions::kMostPoints - 1);
    const auto far = [at](const CheckpointInfo& c) { return std::fabs(static_cast<double>(c.step) - at); };
    const auto& near = *std::min_element(by_step.begin(), by_step.end(),
                                         [&](const auto& a, const auto& b) { return far(a) < far(b); });
    if (even.empty() || even.back().step < near.step) even.push_back(near);
  }
  return even;
}

/// The places 0 to n-1 so that each next one lies in the middle of the widest gap.
std::vector<size_t> coarse_to_fine(size_t n) {
  std::vector<size_t> order;
  if (n > 0) order.push_back(0);
  if (n > 1) order.push_back(n - 1);
  std::set<size_t> there(order.begin(), order.end());
  while (order.size() < n) {
    size_t widest = 0, middle = 0;
    for (auto a = there.begin(), b = std::next(a); b != there.end(); ++a, ++b)
      if (*b - *a > widest) widest = *b - *a, middle = (*a + *b) / 2;
    order.push_back(middle);
    there.insert(middle);
  }
  return order;
}

/// What is read of a run, checkpoint by checkpoint.
class Replay {
 public:
  explicit Replay(const RunInfo& run) : steps_(run.steps), replayer_(run) {}

  std::vector<Distributions::Parameter> parameters() const {
    std::vector<Distributions::Parameter> all;
    for (const nn::Named& p : replayer_.session().model().parameters()) all.push_back({p.name, p.tensor.numel()});
    return all;
  }
  Distributions::Point point(const Checkpoint& from) {
    TrainingSession& session = replayer_.load(from);
    Distributions::Point point{.step = from.step, .replayed = from.step < steps_, .parameters = {}};
    std::map<std::string, Spread> gradients;
    if (point.replayed) {
      GradientListener listener(session, reader_);
      point.step = session.step().step;
      gradients = listener.spreads();
    }
    const std::map<std::string, Tensor> before(from.tensors.begin(), from.tensors.end());
    for (const nn::Named& p : session.model().parameters()) {
      ParameterSpreads s;
      s.weight = reader_.read(p.tensor);
      if (const auto trained = gradients.find(p.name); trained != gradients.end()) {
        s.gradient = trained->second;
        s.update = reader_.read_difference(p.tensor, before.at("model/" + p.name));
      }
      point.parameters.push_back(s);
    }
    return point;
  }

 private:
  int64_t steps_;
  Replayer replayer_;
  Reader reader_;
};

}  // namespace

Spread spread_of(const Tensor& t) { return Reader().read(t); }

double ParameterSpreads::ratio() const {
  if (!update.any() || update.bad || weight.bad || !(weight.norm > 0)) return std::numeric_limits<double>::quiet_NaN();
  return update.norm / weight.norm;
}

const Distributions::Point* Distributions::last_replayed() const {
  const auto at = std::find_if(points.rbegin(), points.rend(), [](const Point& p) { return p.replayed; });
  return at == points.rend() ? nullptr : &*at;
}

Distributions distributions(Project& project, int64_t run, const Progress& progress,
                            const std::function<void(const Distributions& so_far)>& partial) {
  const RunInfo info = project.run(run);
  std::vector<CheckpointInfo> all = project.checkpoints(run);
  // One that is newer than what is known of the run belongs to a step that was done meanwhile.
  std::erase_if(all, [&](const CheckpointInfo& c) { return c.step > info.steps; });
  if (all.empty())
    throw Error(fmt::format("run {} has no checkpoint, and distributions are worked out from those", info.name),
                "Resume it: it begins with one.");
  std::vector<CheckpointInfo> chosen = even_ones(all);
  // The step before the run's end is done again: that it leaves the same weights is known.
  if (chosen.size() > 1 && chosen.back().step == info.steps && chosen[chosen.size() - 2].step + 1 == info.steps)
    chosen.pop_back();
  Distributions d{.id = run, .run = info.name, .steps = info.steps};
  d.wanted = chosen.size();
  d.checkpoints = all.size();
  Replay replay(info);
  for (const size_t i : coarse_to_fine(chosen.size())) {
    if (progress && !progress(static_cast<int64_t>(d.points.size()), static_cast<int64_t>(d.wanted)))
      throw Error("cancelled");
    Distributions::Point point = replay.point(project.load_checkpoint(chosen[i].id));
    if (d.parameters.empty()) d.parameters = replay.parameters();
    const auto after = std::find_if(d.points.begin(), d.points.end(),
                                    [&](const Distributions::Point& p) { return p.step > point.step; });
    d.points.insert(after, std::move(point));
    if (partial) partial(d);
  }
  return d;
}

Learning learning_of(const Distributions& d, size_t parameter) {
  if (d.points.empty()) return Learning::unknown;
  const ParameterSpreads& end = d.points.back().parameters[parameter];
  const Distributions::Point* last = d.last_replayed();
  const ParameterSpreads* moved = last ? &last->parameters[parameter] : nullptr;
  if (end.weight.bad || (moved && (moved->weight.bad || moved->gradient.bad || moved->update.bad)))
    return Learning::not_finite;
  if (!moved) return Learning::unknown;
  if (!moved->update.any()) return Learning::frozen;
  // Momentum and decay may move it all the same.
  if (moved->gradient.any() && moved->gradient.zeros == moved->gradient.count) return Learning::vanished;
  // A parameter whose weights are all 0 has no ratio: what moves it at all is no fault.
  const double ratio = moved->ratio();
  if (std::isnan(ratio)) return moved->update.norm > 0 ? Learning::well : Learning::hardly;
  return ratio > kFastRatio ? Learning::fast : ratio < kSlowRatio ? Learning::hardly : Learning::well;
}

}  // namespace tenon::projects
