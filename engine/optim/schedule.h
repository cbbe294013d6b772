#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/registry.h"
#include "engine/spec/attr.h"

namespace tenon::optim {

/// The learning rate of every step, as a function of the base rate, the step, and, for those that watch, what was
/// reported.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// Of step number `step`, from 0.
  virtual double at(int64_t step, double base) const = 0;
  /// The loss of an evaluation, after `step` steps.
  virtual void report(double /*loss*/, int64_t /*step*/) {}
  /// What report() left behind; null for a schedule that is a pure function.
  virtual nlohmann::json state() const;
  /// Throws Error for a state that is not its own.
  virtual void load(const nlohmann::json& state);
};

/// How long the run is that a schedule is made for.
struct ScheduleSpan {
  int64_t total = 1;      ///< steps of the whole run
  int64_t per_epoch = 1;  ///< steps of an epoch
  int64_t warmup = 0;     ///< steps of warm-up at the beginning, which a cosine lets pass
};

/// One schedule, registered in the file that defines it. Its attributes are keys of the recipe ("schedule.<name>").
struct ScheduleDef {
  std::string name, help;
  std::vector<AttrDef> attrs;
  std::unique_ptr<Schedule> (*make)(const AttrValues& values, const ScheduleSpan& span);
};
bool register_schedule(ScheduleDef def, Place place = Place::current());
/// Sorted by name.
const Registry<ScheduleDef>& schedules();
/// Throws Error (usage) for a name that is none, listing the near ones, and for attributes it does not have.
std::unique_ptr<Schedule> make_schedule(const std::string& name, const std::vector<Attr>& given,
                                        const ScheduleSpan& span);
/// The schedule behind `steps` steps in which the rate rises in a line: step k of them (from 0) has (k + 1) / (steps +
/// 1) of its rate.
std::unique_ptr<Schedule> warmed_up(std::unique_ptr<Schedule> schedule, int64_t steps);

}  // namespace tenon::optim
