#pragma once
#include <cstdint>
#include <string>

namespace tenon::optim {

/// The learning rate of every step, as a pure function of the base rate and the step.
struct Schedule {
  enum class Type : uint8_t { constant, step, cosine };
  Type type = Type::constant;
  int64_t warmup = 0;  ///< steps; step k of them (from 0) has the scheduled rate times (k + 1) / (warmup + 1)
  int64_t every = 1;   ///< step: steps between reductions
  double gamma = 0.1;  ///< step: factor of a reduction
  double min_lr = 0;   ///< cosine: the rate at the end
  int64_t total = 1;   ///< cosine: steps until the end; later ones keep min_lr

  /// Of step number `step`, from 0.
  double at(int64_t step, double base) const;
};
/// Throws Error (usage) for a name that is none.
Schedule::Type schedule_type(const std::string& name);

}  // namespace tenon::optim
