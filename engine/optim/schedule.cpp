#include "engine/optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace tenon::optim {

double Schedule::at(int64_t step, double base) const {
  double lr = base;
  if (type == Type::step) {
    lr = base * std::pow(gamma, static_cast<double>(step / std::max<int64_t>(1, every)));
  } else if (type == Type::cosine) {
    // The half wave begins where the warm-up ends.
    double span = static_cast<double>(std::max<int64_t>(1, total - warmup));
    double t = std::clamp(static_cast<double>(step - warmup) / span, 0.0, 1.0);
    lr = min_lr + (base - min_lr) * 0.5 * (1 + std::cos(M_PI * t));
  }
  if (step < warmup) lr *= static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  return lr;
}

Schedule::Type schedule_type(const std::string& name) {
  if (name == "constant") return Schedule::Type::constant;
  if (name == "step") return Schedule::Type::step;
  if (name == "cosine") return Schedule::Type::cosine;
  throw Error::usage("there is no schedule \"" + name + "\"");
}

}  // namespace tenon::optim
