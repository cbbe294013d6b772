#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "projects/search/sweep_plan.h"

namespace tenon::projects {

/// What a run reported of its metric.
struct Report {
  int64_t step = 0;
  double value = 0;  ///< may be NaN
};

/// The best finite value up to the first report at or after `step`; nothing where the run did not come that far, NaN
/// where it came there without a finite one.
std::optional<double> value_at_rung(const std::vector<Report>& reports, int64_t step, int direction);

/// Ends trials that fall behind: asynchronous successive halving (Li, Jamieson, Rostamizadeh, Gonina, Ben-Tzur, Hardt,
/// Recht & Talwalkar, A System for Massively Parallel Hyperparameter Tuning, MLSys 2020), in the form that stops trials
/// instead of promoting them. Rungs lie at prune, prune * factor, prune * factor^2 ... steps. At each a trial goes on
/// where its value is among the best 1/factor (and the best one at least) of the trials that came there, itself
/// included.
///
/// A trial is compared with those of the rounds before its own only. So what becomes of it is known before it begins
/// but for its own values, and does not depend on which of several trials is faster.
class Halving {
 public:
  /// `others`: what the trials of earlier rounds reported.
  Halving(const SweepPlan& plan, const std::vector<std::vector<Report>>& others);

  /// Takes the reports of a run in order. Not empty, now and from now on: why it ends here, in words.
  const std::string& take(const Report& report);
  const std::string& verdict() const { return verdict_; }

 private:
  struct Rung {
    int64_t step;
    std::optional<double> cutoff;  ///< the worst value that goes on; none: all do
    size_t trials;                 ///< that came there
  };
  std::vector<Rung> rungs_;
  size_t next_ = 0;
  std::string metric_, verdict_;
  int direction_;
  std::optional<double> best_;
};

}  // namespace tenon::projects
