// Schedules made of others: all at once, or one after the other.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/optim/schedule.h"

namespace tenon::optim {
namespace {

struct Part {
  std::unique_ptr<Schedule> schedule;
  int64_t begin = 0;
};

class Parts : public Schedule {
 public:
  explicit Parts(std::vector<Part> parts) : parts_(std::move(parts)) {}
  nlohmann::json state() const override {
    nlohmann::json all = nlohmann::json::array();
    bool any = false;
    for (const Part& p : parts_) any |= !all.emplace_back(p.schedule->state()).is_null();
    return any ? all : nlohmann::json();
  }
  void load(const nlohmann::json& j) override {
    if (!j.is_null() && (!j.is_array() || j.size() != parts_.size()))
      throw Error("the checkpoint's state of the schedule does not have one entry for each of its parts",
                  "it belongs to another recipe");
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i].schedule->load(j.is_null() ? nlohmann::json() : j[i]);
  }

 protected:
  std::vector<Part> parts_;
};

/// The rates of all parts multiplied, each as a factor of the base rate. PyTorch: ChainedScheduler.
class Chained : public Parts {
 public:
  using Parts::Parts;
  double at(int64_t step, double base) const override {
    double lr = base;
    for (const Part& p : parts_) lr *= p.schedule->at(step, 1);
    return lr;
  }
  void report(double loss, int64_t step) override {
    for (Part& p : parts_) p.schedule->report(loss, step);
  }
};

/// One part after the other, each counting its steps from where it begins. PyTorch: SequentialLR.
class Sequential : public Parts {
 public:
  using Parts::Parts;
  double at(int64_t step, double base) const override { return of(step).schedule->at(step - of(step).begin, base); }
  void report(double loss, int64_t step) override {
    const Part& p = of(step);
    p.schedule->report(loss, step - p.begin);
  }

 private:
  const Part& of(int64_t step) const {
    size_t i = parts_.size() - 1;
    while (i > 0 && parts_[i].begin > step) --i;
    return parts_[i];
  }
};

constexpr const char* kKey = "schedule.parts";

std::vector<Part> read(const AttrValues& v, const ScheduleSpan& span, bool one_after_the_other) {
  std::vector<Part> parts;
  int64_t begin = 0;
  auto calls = parse_calls(v.text("parts"), kKey);
  if (calls.empty())
    throw Error::usage(std::string(kKey) + " names no schedule",
                       "for example \"linear total_steps=100 steps=100; cosine\" one after the other, \"exponential "
                       "gamma=0.9; linear\" together");
  for (size_t i = 0; i < calls.size(); ++i) {
    AttrCall call = calls[i];
    int64_t steps = 0;
    for (size_t k = 0; k < call.attrs.size(); ++k)
      if (call.attrs[k].first == "steps") {
        static const AttrDef def{"steps", int64_t{0}, 1, 9e15, "steps until the next part"};
        steps =
            std::get<int64_t>(parse_attr(def, call.attrs[k].second, std::string(kKey) + ": " + call.name + " steps"));
        call.attrs.erase(call.attrs.begin() + static_cast<std::ptrdiff_t>(k));
        break;
      }
    const ScheduleDef& def = schedules().at(call.name);
    if (one_after_the_other && i + 1 < calls.size() && steps == 0)
      throw Error::usage(std::string(kKey) + ": \"" + call.name + "\" does not say how long it lasts",
                         "add steps=N to every part but the last");
    ScheduleSpan own{one_after_the_other ? (steps ? steps : std::max<int64_t>(1, span.total - begin)) : span.total,
                     span.per_epoch};
    parts.push_back({def.make(AttrValues(def.attrs, call_attrs(call, def.attrs, kKey), call.name), own), begin});
    if (one_after_the_other) begin += steps;
  }
  return parts;
}

AttrDef parts_attr(const char* help) { return {"parts", std::string(), 0, 0, help}; }

const bool registered_schedule_lists[] = {
    register_schedule(
        {"chained",
         "several schedules at once, their factors multiplied",
         {parts_attr("the schedules and their settings: \"exponential gamma=0.9; linear start_factor=0.1\"")},
         [](const AttrValues& v, const ScheduleSpan& span) -> std::unique_ptr<Schedule> {
           return std::make_unique<Chained>(read(v, span, false));
         }}),
    register_schedule(
        {"sequential",
         "several schedules one after the other",
         {parts_attr("the schedules, their settings and how long each lasts: \"linear steps=100; cosine\"")},
         [](const AttrValues& v, const ScheduleSpan& span) -> std::unique_ptr<Schedule> {
           return std::make_unique<Sequential>(read(v, span, true));
         }}),
};

}  // namespace
}  // namespace tenon::optim
