#include "engine/optim/schedule.h"

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace tenon::optim {
namespace {

Registry<ScheduleDef>& schedule_registry() {
  static auto& all = *new Registry<ScheduleDef>("schedule");
  return all;
}

class WarmUp : public Schedule {
 public:
  WarmUp(std::unique_ptr<Schedule> inner, int64_t steps) : inner_(std::move(inner)), steps_(steps) {}
  double at(int64_t step, double base) const override {
    double lr = inner_->at(step, base);
    if (step < steps_) lr *= static_cast<double>(step + 1) / static_cast<double>(steps_ + 1);
    return lr;
  }
  void report(double loss, int64_t step) override { inner_->report(loss, step); }
  nlohmann::json state() const override { return inner_->state(); }
  void load(const nlohmann::json& state) override { inner_->load(state); }

 private:
  std::unique_ptr<Schedule> inner_;
  int64_t steps_;
};

}  // namespace

nlohmann::json Schedule::state() const { return nullptr; }
void Schedule::load(const nlohmann::json& state) {
  if (!state.is_null())
    throw Error("the checkpoint has a schedule's state, but this schedule has none", "it belongs to another recipe");
}

bool register_schedule(ScheduleDef def, Place place) { return schedule_registry().add(std::move(def), place); }
const Registry<ScheduleDef>& schedules() { return schedule_registry(); }

std::unique_ptr<Schedule> make_schedule(const std::string& name, const std::vector<Attr>& given,
                                        const ScheduleSpan& span) {
  const ScheduleDef& def = schedules().at(name);
  return def.make(AttrValues(def.attrs, given, name), span);
}

std::unique_ptr<Schedule> warmed_up(std::unique_ptr<Schedule> schedule, int64_t steps) {
  if (steps <= 0) return schedule;
  return std::make_unique<WarmUp>(std::move(schedule), steps);
}

}  // namespace tenon::optim
