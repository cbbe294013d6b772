#pragma once
#include <optional>
#include <string>

#include "projects/epoch_length.h"
#include "views/shared/axis.h"
#include "views/shared/series.h"

namespace tenon::views {

/// What curves stand over. Runs of other batch sizes meet at equal epochs or samples, slower ones at equal time.
enum class Over : uint8_t { step, epoch, time, samples };
inline constexpr Over kOvers[] = {Over::step, Over::epoch, Over::time, Over::samples};

/// "step", "epoch", "time", "samples": as the project and the command line call it.
const char* over_name(Over over);
/// Nothing for another word.
std::optional<Over> parse_over(const std::string& name);
/// "Steps", "Epochs", "Time", "Samples", in the language of the window.
std::string over_title(Over over);
/// The same within a sentence: "steps".
std::string over_within(Over over);

/// Where the points of one run stand: on its steps, the epochs or samples it had seen after them, or its seconds of
/// training (pauses left out). Never goes down along a series.
struct CurveScale {
  Over over = Over::step;
  projects::EpochLength epoch = {};

  /// False where the run does not tell how its steps count up to that one.
  bool knows(int64_t last_step) const;
  /// Of a step by its number alone: not for time.
  double of(int64_t step) const;
  double of(const Series& s, size_t i) const { return over == Over::time ? s.seconds(i) : of(s.step(i)); }
  /// As Series::lower_by() takes it.
  auto at(const Series& s) const {
    return [this, &s](size_t i) { return of(s, i); };
  }
};

/// Ticks of an axis of curves with their words, and what stands under it: "Time, min".
struct CurveTicks {
  Ticks ticks;          ///< in the unit
  double unit = 1;      ///< of the axis a tick is
  std::string caption;  ///< with the unit

  std::string label(double tick) const;
};
CurveTicks curve_ticks(Over over, const Axis& axis, int most);

/// "step 1,240", "epoch 2.5 (step 1,240)", "4.20 s (step 1,240)": a place in words.
std::string place_text(Over over, double x, int64_t step);

}  // namespace tenon::views
