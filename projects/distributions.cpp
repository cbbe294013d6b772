#include "projects/distributions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "core/backend.h"
#include "core/error.h"
#include "core/quiet.h"
#include "core/state.h"
#include "engine/autograd/autograd.h"
#include "engine/nn/module.h"
#include "engine/ops/dense.h"
#include "engine/ops/linalg.h"
#include "engine/ops/matmul.h"
#include "engine/ops/view.h"
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
    gradients_.clear();
    const NoGrad off;
    for (const nn::Named& p : session_.optimizer().parameters()) {
      const Tensor g = grad_of(p.tensor);
      spreads_[p.name] = reader_.read(g);
      if (g) gradients_[p.name] = clone(ops::dense_as(to_host(detach(g)), DType::f64));
    }
  }
  void on_step_end(const StepResult& r) override {
    if (r.loss_scale == 1) return;
    for (auto& [name, s] : spreads_) divide(s, r.loss_scale);
    for (auto& [name, g] : gradients_)
      for (int64_t i = 0; i < g.numel(); ++i) g.data<double>()[i] /= r.loss_scale;
  }
  /// Of the last step, of each parameter that is trained.
  const std::map<std::string, Spread>& spreads() const { return spreads_; }
  /// The same as numbers; those of a parameter that has none are not there.
  const std::map<std::string, Tensor>& gradients() const { return gradients_; }

 private:
  TrainingSession& session_;
  Reader& reader_;
  std::map<std::string, Spread> spreads_;
  std::map<std::string, Tensor> gradients_;
};

/// Two gradients of one parameter, or of several added up.
struct GradientPair {
  double a = 0, b = 0, dot = 0;  ///< squares of their norms, and their product
  GradientPair& operator+=(const GradientPair& o) {
    a += o.a, b += o.b, dot += o.dot;
    return *this;
  }
  double cosine() const {
    return a > 0 && b > 0 ? std::clamp(dot / std::sqrt(a * b), -1.0, 1.0) : std::numeric_limits<double>::quiet_NaN();
  }
};
GradientPair pair_of(const Tensor& x, const Tensor& y) {
  GradientPair p;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double a = x.data<double>()[i], b = y.data<double>()[i];
    p.a += a * a, p.b += b * b, p.dot += a * b;
  }
  return p;
}

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

int64_t smaller_side(const Shape& size) {
  const int64_t rows = size.n > 0 ? size[0] : 0;
  return rows > 0 ? std::min(rows, size.product() / rows) : 0;
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
    std::optional<GradientListener> listener;
    int64_t samples = 0;
    if (point.replayed) {
      listener.emplace(session, reader_);
      const StepResult r = session.step();
      point.step = r.step;
      samples = r.samples;
      gradients = listener->spreads();
    }
    const std::map<std::string, Tensor> before(from.tensors.begin(), from.tensors.end());
    for (const nn::Named& p : session.model().parameters()) {
      ParameterSpreads s;
      s.weight = reader_.read(p.tensor);
      if (const auto trained = gradients.find(p.name); trained != gradients.end()) {
        s.gradient = trained->second;
        s.update = reader_.read_difference(p.tensor, before.at("model/" + p.name));
      }
      const bool small = p.tensor.ndim() > 1 && smaller_side(p.tensor.size()) <= kRankEverywhere;
      if (small || from.step == 0 || from.step + 1 >= steps_) s.rank = effective_rank(p.tensor);
      point.parameters.push_back(s);
    }
    if (listener && point.step < steps_) compare_with_next(*listener, samples, point);
    return point;
  }

 private:
  /// What is told of every point; larger ones at both ends of a run, where they take seconds once.
  static constexpr int64_t kRankEverywhere = 128;

  /// Does the step behind the point's, whose gradients are held against those of the point's own.
  void compare_with_next(const GradientListener& listener, int64_t samples, Distributions::Point& point) {
    const std::map<std::string, Tensor> first = listener.gradients();
    replayer_.settle();
    replayer_.session().step();
    GradientPair all;
    size_t at = 0;
    for (const nn::Named& p : replayer_.session().model().parameters()) {
      const auto before = first.find(p.name), after = listener.gradients().find(p.name);
      if (before != first.end() && after != listener.gradients().end()) {
        const GradientPair pair = pair_of(before->second, after->second);
        point.parameters[at].cosine = pair.cosine();
        all += pair;
      }
      ++at;
    }
    point.cosine = all.cosine();
    if (std::isfinite(all.a) && std::isfinite(all.b) && all.a + all.b > 0)
      point.noise = {(all.a + all.b - 2 * all.dot) / 2 * static_cast<double>(samples), all.dot, 1};
  }

  int64_t steps_;
  Replayer replayer_;
  Reader reader_;
};

}  // namespace

Spread spread_of(const Tensor& t) { return Reader().read(t); }

double effective_rank(const Tensor& t, int64_t most) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  if (!t || t.ndim() < 2 || smaller_side(t.size()) < 1 || smaller_side(t.size()) > most) return none;
  const NoGrad off;
  const Quiet quiet;
  const int64_t rows = t.size(0), columns = t.numel() / rows;
  const Tensor w = reshape(ops::dense_as(to_host(detach(t)), DType::f64), {rows, columns});
  for (int64_t i = 0; i < w.numel(); ++i)
    if (!std::isfinite(w.data<double>()[i])) return none;
  // Squares of the singular values: the eigenvalues of the smaller of W W^T and W^T W.
  const Tensor gram = rows <= columns ? matmul(w, w, false, true) : matmul(w, w, true, false);
  const Tensor values = contiguous(eigh(gram).values);
  double sum = 0, entropy = 0;
  for (int64_t i = 0; i < values.numel(); ++i) sum += std::sqrt(std::max(0.0, values.data<double>()[i]));
  if (!(sum > 0)) return none;
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double share = std::sqrt(std::max(0.0, values.data<double>()[i])) / sum;
    if (share > 0) entropy -= share * std::log(share);
  }
  return std::exp(entropy);
}

GradientNoise& GradientNoise::operator+=(const GradientNoise& o) {
  variance += o.variance;
  signal += o.signal;
  pairs += o.pairs;
  return *this;
}
double GradientNoise::scale() const {
  if (pairs == 0) return std::numeric_limits<double>::quiet_NaN();
  return signal > 0 ? variance / signal : std::numeric_limits<double>::infinity();
}

GradientNoise Distributions::noise() const {
  GradientNoise all;
  for (const Point& p : points) all += p.noise;
  return all;
}
double Distributions::last_rank(size_t parameter) const {
  for (auto p = points.rbegin(); p != points.rend(); ++p)
    if (!std::isnan(p->parameters[parameter].rank)) return p->parameters[parameter].rank;
  return std::numeric_limits<double>::quiet_NaN();
}

double ParameterSpreads::ratio() const {
  if (!update.any() || update.bad || weight.bad || !(weight.norm > 0)) return std::numeric_limits<double>::quiet_NaN();
  const bool began_at_0 = update.norm == weight.norm && update.quantiles == weight.quantiles;
  if (began_at_0) return std::numeric_limits<double>::quiet_NaN();
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
