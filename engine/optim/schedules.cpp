// Schedules that are pure functions of the step. Epochs may be fractions: a schedule moves on with every step.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "engine/optim/schedule.h"

namespace tenon::optim {
namespace {

/// A schedule made of a function (step, base) -> rate.
template <class F>
class Formula : public Schedule {
 public:
  explicit Formula(F f) : f_(std::move(f)) {}
  double at(int64_t step, double base) const override { return f_(step, base); }

 private:
  F f_;
};
template <class F>
std::unique_ptr<Schedule> formula(F f) {
  return std::make_unique<Formula<F>>(std::move(f));
}

using Made = std::unique_ptr<Schedule>;
constexpr double kHuge = 9e15;

double d(int64_t i) { return static_cast<double>(i); }
int64_t steps_of(double epochs, const ScheduleSpan& span) {
  return std::max<int64_t>(1, std::llround(epochs * d(span.per_epoch)));
}
/// "total_steps", 0 standing for the whole run.
int64_t length(const AttrValues& v, const ScheduleSpan& span) {
  int64_t given = v.integer("total_steps");
  return std::max<int64_t>(1, given > 0 ? given : span.total);
}
AttrDef total_attr() {
  return {"total_steps", int64_t{0}, 0, kHuge, "steps until the end is reached; 0: the whole run", {}, "steps"};
}
AttrDef min_attr(const char* help) { return {"min_lr", 0.0, 0, 1e30, help}; }
AttrDef gamma_attr() { return {"gamma", 0.1, 0, 1e300, "factor of each reduction"}; }

Made constant(const AttrValues& v, const ScheduleSpan&) {
  double factor = v.number("factor");
  int64_t until = v.integer("factor_steps");
  return formula([=](int64_t step, double base) { return step < until ? base * factor : base; });
}

Made step(const AttrValues& v, const ScheduleSpan& span) {
  int64_t every = steps_of(v.number("step_epochs"), span);
  double gamma = v.number("gamma");
  return formula([=](int64_t s, double base) { return base * std::pow(gamma, d(s / every)); });
}

Made multi_step(const AttrValues& v, const ScheduleSpan& span) {
  std::vector<int64_t> at;
  for (int64_t epoch : v.ints("milestones")) at.push_back(epoch * span.per_epoch);
  double gamma = v.number("gamma");
  return formula([=](int64_t s, double base) {
    return base * std::pow(gamma, d(std::count_if(at.begin(), at.end(), [s](int64_t m) { return m <= s; })));
  });
}

Made exponential(const AttrValues& v, const ScheduleSpan& span) {
  double gamma = v.number("gamma"), epoch = d(span.per_epoch);
  return formula([=](int64_t s, double base) { return base * std::pow(gamma, d(s) / epoch); });
}

Made linear(const AttrValues& v, const ScheduleSpan& span) {
  double start = v.number("start_factor"), end = v.number("end_factor"), total = d(length(v, span));
  return formula([=](int64_t s, double base) { return base * (start + (end - start) * std::min(1.0, d(s) / total)); });
}

Made polynomial(const AttrValues& v, const ScheduleSpan& span) {
  double power = v.number("power"), total = d(length(v, span));
  return formula([=](int64_t s, double base) { return base * std::pow(1 - std::min(1.0, d(s) / total), power); });
}

/// Loshchilov and Hutter (2016), without restarts. The half wave begins where the warm-up ends.
Made cosine(const AttrValues& v, const ScheduleSpan& span) {
  double low = v.number("min_lr"), wave = d(std::max<int64_t>(1, length(v, span) - span.warmup));
  return formula([=, warmup = span.warmup](int64_t s, double base) {
    return low + (base - low) * 0.5 * (1 + std::cos(M_PI * std::clamp(d(s - warmup) / wave, 0.0, 1.0)));
  });
}

/// The same with restarts: the first wave takes t_0 epochs, each later one t_mult times the one before.
Made cosine_restarts(const AttrValues& v, const ScheduleSpan& span) {
  double low = v.number("min_lr"), first = d(steps_of(v.number("t_0"), span)), longer = d(v.integer("t_mult"));
  return formula([=](int64_t s, double base) {
    double at = d(s), wave = first;
    if (longer == 1) {
      at = std::fmod(at, first);
    } else {
      // The wave that s is in, by the sum of the geometric series; rounding may put it one off.
      double n = std::max(0.0, std::floor(std::log(at / first * (longer - 1) + 1) / std::log(longer)));
      auto begin = [&](double k) { return first * (std::pow(longer, k) - 1) / (longer - 1); };
      while (n > 0 && begin(n) > at) --n;
      while (begin(n + 1) <= at) ++n;
      at -= begin(n);
      wave = first * std::pow(longer, n);
    }
    return low + (base - low) * 0.5 * (1 + std::cos(M_PI * at / wave));
  });
}

/// Up to the base rate and down far below it, once. Smith and Topin (2017); PyTorch's OneCycleLR, whose max_lr is the
/// base rate here and which leaves the momentum alone (cycle_momentum=False).
Made one_cycle(const AttrValues& v, const ScheduleSpan& span) {
  double total = d(length(v, span)), up = v.number("pct_start");
  double start = 1 / v.number("div_factor"), end = start / v.number("final_div_factor");
  bool linear = v.text("anneal") == "linear", three = v.flag("three_phase");
  auto between = [linear](double a, double b, double share) {
    return linear ? a + (b - a) * share : b + (a - b) / 2 * (1 + std::cos(M_PI * share));
  };
  return formula([=](int64_t s, double base) {
    double at = std::min(d(s), total - 1), first = up * total - 1;
    auto share = [&](double from, double to) {
      return to > from ? std::clamp((at - from) / (to - from), 0.0, 1.0) : 1.0;
    };
    if (at <= first) return base * between(start, 1, share(0, first));
    if (!three) return base * between(1, end, share(first, total - 1));
    double second = 2 * up * total - 2;
    if (at <= second) return base * between(1, start, share(first, second));
    return base * between(start, end, share(second, total - 1));
  });
}

const bool registered_schedules[] = {
    register_schedule({"constant",
                       "the base rate, at first by a factor if you like",
                       {{"factor", 1.0, 0, 1e30, "of the first steps"},
                        {"factor_steps", int64_t{0}, 0, kHuge, "how many steps the factor holds for"}},
                       constant}),
    register_schedule({"step",
                       "times gamma after every so many epochs",
                       {{"step_epochs", 1.0, 1e-6, 1e6, "epochs between reductions", {}, "epochs"}, gamma_attr()},
                       step}),
    register_schedule(
        {"multi_step",
         "times gamma at each of the milestones",
         {{"milestones", std::vector<int64_t>{30, 60, 90}, 0, 1e9, "epochs at which the rate is reduced", {}, "epochs"},
          gamma_attr()},
         multi_step}),
    register_schedule({"exponential", "times gamma over an epoch, smoothly", {gamma_attr()}, exponential}),
    register_schedule({"linear",
                       "in a line from one factor to another",
                       {{"start_factor", 1.0 / 3, 0, 1e30, "of the first step"},
                        {"end_factor", 1.0, 0, 1e30, "at the end"},
                        total_attr()},
                       linear}),
    register_schedule({"polynomial",
                       "down to 0 as a power of what is left",
                       {{"power", 1.0, 0, 1e6, "1: a line"}, total_attr()},
                       polynomial}),
    register_schedule(
        {"cosine", "down in half a cosine wave", {min_attr("the rate at the end"), total_attr()}, cosine}),
    register_schedule({"cosine_restarts",
                       "down in half a cosine wave, again and again from the top",
                       {{"t_0", 10.0, 1e-6, 1e6, "epochs of the first wave", {}, "epochs"},
                        {"t_mult", int64_t{1}, 1, 1000, "each wave is so many times longer than the one before"},
                        min_attr("the rate at the end of a wave")},
                       cosine_restarts}),
    register_schedule({"one_cycle",
                       "up to the base rate and down far below where it began",
                       {{"pct_start", 0.3, 1e-6, 1, "share of the steps that go up"},
                        {"div_factor", 25.0, 1e-6, 1e30, "the base rate over the first one"},
                        {"final_div_factor", 1e4, 1e-6, 1e30, "the first rate over the last one"},
                        {"anneal", std::string("cos"), 0, 0, "the shape of the way", {"cos", "linear"}},
                        {"three_phase", false, 0, 0, "come down as fast as it went up, then go further"},
                        total_attr()},
                       one_cycle}),
};

}  // namespace
}  // namespace tenon::optim
