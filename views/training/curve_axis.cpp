#include "views/training/curve_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "views/shared/format.h"
#include "views/shared/language.h"

namespace tenon::views {

namespace {
constexpr struct {
  const char *name, *title, *caption, *within;
} kOverWords[] = {{tr_later("step"), tr_later("Steps"), tr_later("Step"), tr_later("steps")},
                  {tr_later("epoch"), tr_later("Epochs"), tr_later("Epoch"), tr_later("epochs")},
                  {tr_later("time"), tr_later("Time"), tr_later("Time"), tr_later("time")},
                  {tr_later("samples"), tr_later("Samples"), tr_later("Samples seen"), tr_later("samples")}};
}  // namespace

const char* over_name(Over over) { return kOverWords[static_cast<int>(over)].name; }
std::string over_title(Over over) { return tr(kOverWords[static_cast<int>(over)].title); }
std::string over_within(Over over) { return tr(kOverWords[static_cast<int>(over)].within); }

std::optional<Over> parse_over(const std::string& word) {
  for (Over o : kOvers)
    if (word == over_name(o)) return o;
  return {};
}

bool CurveScale::knows(int64_t last_step) const {
  if (over == Over::epoch) return epoch.epochs_after(last_step).has_value();
  return over != Over::samples || epoch.samples_after(last_step).has_value();
}

double CurveScale::of(int64_t step) const {
  constexpr double kNowhere = std::numeric_limits<double>::quiet_NaN();
  if (over == Over::epoch) return epoch.epochs_after(step).value_or(kNowhere);
  if (over == Over::step) return static_cast<double>(step);
  const auto samples = over == Over::samples ? epoch.samples_after(step) : std::nullopt;
  return samples ? static_cast<double>(*samples) : kNowhere;
}

CurveTicks curve_ticks(Over over, const Axis& axis, int most) {
  CurveTicks t;
  t.caption = tr(kOverWords[static_cast<int>(over)].caption);
  if (over == Over::time) {
    t.unit = axis.hi > 3 * 3600 ? 3600 : axis.hi > 180 ? 60 : 1;
    t.caption += t.unit == 3600 ? ", h" : t.unit == 60 ? ", min" : ", s";
  }
  t.ticks = nice_ticks(axis.lo / t.unit, axis.hi / t.unit, most);
  // There is no half of a step or of a sample.
  if (over == Over::step || over == Over::samples) t.ticks.step = std::max(t.ticks.step, 1.0);
  return t;
}

std::string CurveTicks::label(double tick) const {
  if (ticks.step >= 1 && tick == std::floor(tick)) return format_grouped(static_cast<int64_t>(tick));
  const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(ticks.step) - 1e-9)), 1, 9);
  return std::fabs(tick) < ticks.step / 1000 ? "0" : fmt::format("{:.{}f}", tick, digits);
}

std::string place_text(Over over, double x, int64_t step) {
  const std::string at = tr("step {}", format_grouped(step));
  switch (over) {
    case Over::step:
      break;
    case Over::epoch:
      return tr("epoch {} ({})", without_zeros(fmt::format("{:.3f}", x)), at);
    case Over::time:
      return fmt::format("{} ({})", format_seconds(x), at);
    case Over::samples:
      return tr("{} samples ({})", format_grouped(std::llround(x)), at);
  }
  return at;
}

}  // namespace tenon::views
