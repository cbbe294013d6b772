// Causes that lie in the rate, and what clipping would have done.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "projects/spikes/cause.h"

namespace tenon::projects {
namespace {

constexpr int64_t kRateBefore = 100;  // steps in which a rate that rose may still be the cause
constexpr int64_t kUsualBefore = 20;  // steps whose gradients say what is usual
constexpr double kRose = 1.2;

/// The step before the spike with which the rate rose most.
struct RateRise {
  int64_t step = 0;
  double from = 0, to = 0;
};
std::optional<RateRise> rate_rise(Inquiry& q) {
  std::optional<RateRise> most;
  const std::vector<MetricPoint>& lr = q.metric("lr");
  for (size_t i = 1; i < lr.size(); ++i) {
    const RateRise r{lr[i].step, lr[i - 1].value, lr[i].value};
    if (r.step > q.spike().step || r.step < q.spike().step - kRateBefore || !(r.from > 0) || r.to < kRose * r.from)
      continue;
    if (!most || r.to / r.from > most->to / most->from) most = r;
  }
  return most;
}

std::optional<Culprit> ask_rate(Inquiry& q) {
  const RateRise rise = *rate_rise(q);
  const Tried& t = q.replay(
      {rise.step - 1,
       {{"schedule.type", "constant"},
        {"schedule.factor", "1"},
        {"schedule.warmup_steps", "0"},
        {"optimizer.lr", fmt::format("{:.17g}", rise.from)}},
       fmt::format("with the rate held at {:.4g} (it rose to {:.4g} with step {})", rise.from, rise.to, rise.step)});
  if (!t.gone) return {};
  return Culprit{
      fmt::format("the learning rate, which rose from {:.4g} to {:.4g} with step {}", rise.from, rise.to, rise.step),
      &t,
      {},
      {}};
}

/// The median of the gradients' norms before the steps that may have made the spike; 0 where there is none.
double usual_norm(Inquiry& q) {
  std::vector<double> norms;
  for (const MetricPoint& p : q.metric("grad_norm"))
    if (p.step < q.first() && p.step >= q.first() - kUsualBefore && std::isfinite(p.value)) norms.push_back(p.value);
  if (norms.empty()) return 0;
  const auto mid = norms.begin() + static_cast<std::ptrdiff_t>(norms.size() / 2);
  std::nth_element(norms.begin(), mid, norms.end());
  return *mid;
}

std::string clipping_ruled_out(Inquiry& q) {
  const double norm = usual_norm(q);
  if (!(norm > 0)) return "no norm of a gradient is known of the steps before";
  const double now = q.recipe_after(q.first() - 1).number("optimizer.clip_norm");
  if (now > 0 && now <= norm) return fmt::format("gradients are clipped to a norm of {:.4g} already", now);
  if (q.recipe_after(q.first() - 1).text("optimizer.type") == "lbfgs") return "L-BFGS goes without clipping";
  return {};
}

std::optional<Culprit> ask_clipping(Inquiry& q) {
  const std::string norm = fmt::format("{:.3g}", usual_norm(q));
  const Tried& t = q.replay({q.first() - 1,
                             {{"optimizer.clip_norm", norm}},
                             fmt::format("with gradients clipped to a norm of {} (their median before)", norm)});
  if (!t.gone) return {};
  return Culprit{"a gradient that is much longer than usual", &t, {}, {}};
}

const bool registered_recipe_causes[] = {
    register_cause({.name = "rate",
                    .title = "A rise of the learning rate",
                    .order = 10,
                    .ruled_out =
                        [](Inquiry& q) {
                          return rate_rise(q)
                                     ? std::string()
                                     : fmt::format("the rate did not rise in the {} steps before", kRateBefore);
                        },
                    .most =
                        [](Inquiry& q) {
                          const int64_t from = rate_rise(q)->step - 1;
                          return ReplayCost{1, q.last() - (from < q.first() - 1 ? q.kept_before(from) : from)};
                        },
                    .ask = ask_rate}),
    register_cause({.name = "gradient",
                    .title = "A gradient that clipping would have shortened",
                    .order = 60,
                    .ruled_out = clipping_ruled_out,
                    .most =
                        [](Inquiry& q) {
                          return ReplayCost{1, q.last() - q.first() + 1};
                        },
                    .ask = ask_clipping}),
};

}  // namespace
}  // namespace tenon::projects
