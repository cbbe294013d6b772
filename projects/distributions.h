#pragma once
#include <array>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "projects/time_travel.h"

namespace tenon::projects {

/// How the numbers of a tensor are spread. All but the counts is of the finite ones, and 0 where there are none.
struct Spread {
  /// What share of the numbers lies at or below each quantile; between two numbers it is interpolated.
  static constexpr std::array<double, 7> kShares = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};
  std::array<float, 7> quantiles = {};
  double mean = 0, deviation = 0, norm = 0;
  int64_t count = 0, zeros = 0, bad = 0;  ///< of all; `bad`: not finite

  /// The gradient or update of a parameter that has none is no numbers at all.
  bool any() const { return count > 0; }
};
Spread spread_of(const Tensor& t);

/// A parameter after a step, and what the step did to it. One that is frozen has neither gradient nor update.
struct ParameterSpreads {
  Spread weight;
  Spread gradient;  ///< of the loss, before it was clipped; under amp = fp16 without the loss scale
  Spread update;    ///< the weights after the step less those before it
  /// Of the angle between the gradient of this step and of the next; NaN where one of them is not there.
  double cosine = std::numeric_limits<double>::quiet_NaN();
  /// How many directions its weights use, see effective_rank(); NaN where it is no matrix, or was not looked at.
  double rank = std::numeric_limits<double>::quiet_NaN();
  /// How large the update is for the weights, by their norms; NaN where one of the two is no number or the weights are
  /// all 0, or were before the step.
  double ratio() const;
};

/// What the gradients of two successive batches tell of the gradient that all data would give.
///
/// Note [Gradient noise scale]
/// McCandlish et al., An Empirical Model of Large-Batch Training (2018): B_simple = tr(S) / |G|^2, G the gradient of
/// all data and S how gradients of single samples vary about it. A batch that is much smaller wastes steps on noise,
/// one that is much larger wastes samples. Two batches of B samples estimate both without another pass: |g1 - g2|^2 / 2
/// is tr(S) / B, and g1 * g2 is |G|^2. The weights move by one update between the two, which is small beside the noise.
/// One pair tells little: the sums of several are divided.
struct GradientNoise {
  double variance = 0;  ///< tr(S), of a single sample
  double signal = 0;    ///< |G|^2; may be below 0, as an estimate
  int64_t pairs = 0;
  GradientNoise& operator+=(const GradientNoise& o);
  /// B_simple in samples; infinite where no signal is seen, NaN without a pair.
  double scale() const;
};

/// Of a tensor of two axes or more as a matrix [first axis, all others]: e to the entropy of its singular values'
/// shares (Roy and Vetterli, The effective rank, 2007), between 1 and its smaller side. NaN where it is no matrix, is
/// not finite, is all 0, or its smaller side is above `most`.
double effective_rank(const Tensor& t, int64_t most = 1024);

/// How weights, gradients and updates of every parameter are spread along a run.
struct Distributions {
  static constexpr size_t kMostPoints = 40;

  struct Parameter {
    std::string name;
    int64_t size = 0;
  };
  struct Point {
    int64_t step = 0;
    bool replayed = true;  ///< false: the state in which the run ends; the weights alone are known
    std::vector<ParameterSpreads> parameters;
    /// Of all gradients together.
    double cosine = std::numeric_limits<double>::quiet_NaN();
    GradientNoise noise = {};
  };
  int64_t id = 0;   ///< of the run
  std::string run;  ///< its name
  std::vector<Parameter> parameters;
  std::vector<Point> points;  ///< by step
  size_t wanted = 0;          ///< points, once all are there
  size_t checkpoints = 0;     ///< of the run
  int64_t steps = 0;          ///< that the run had done

  /// The last point whose step was replayed; null: none yet.
  const Point* last_replayed() const;
  GradientNoise noise() const;  ///< of all points
  /// The rank of a parameter's weights at the last point that looked at it; NaN: none did.
  double last_rank(size_t parameter) const;
};

/// Whether a parameter learns as it should: what is read from its gradient, and from the size of its updates beside its
/// weights.
enum class Learning : uint8_t { well, fast, hardly, vanished, frozen, not_finite, unknown };
Learning learning_of(const Distributions& d, size_t parameter);
/// Updates above this share of the weights move fast, below the other they hardly move.
inline constexpr double kFastRatio = 1e-2, kSlowRatio = 1e-5;

/// Works them out of the run's checkpoints, of which those nearest to kMostPoints even places are taken: each is loaded
/// and its next two steps done again, bit for bit as they were. Nothing has to be recorded while a run trains, and the
/// numbers are the same at any number of threads. The points come coarse to fine (the first, the last, then what halves
/// the widest gap); `partial` is given what is there after each. Throws Error where the run has no checkpoint.
Distributions distributions(Project& project, int64_t run, const Progress& progress = {},
                            const std::function<void(const Distributions& so_far)>& partial = {});

}  // namespace tenon::projects
