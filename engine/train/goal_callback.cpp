// A callback that ends a run whose metric is good enough.
#include <fmt/format.h>

#include "core/error.h"
#include "engine/train/callback.h"
#include "engine/train/early_stop.h"
#include "engine/train/metric.h"
#include "engine/train/session.h"

namespace tenon {
namespace {

struct Goal : Callback {
  std::string metric;
  double value;
  Goal(std::string m, double v) : metric(std::move(m)), value(v) {}
  std::string on_evaluation(const Evaluation& e, int64_t step) override {
    double found = e.loss;
    for (const Judgement& j : e.judgements)
      if (metric == "test_" + j.name) found = j.value;
    const bool reached = better(metric) > 0 ? found >= value : found <= value;  // a NaN reaches nothing
    return reached ? fmt::format("{} came to {:.6g} at step {}: the goal was {:g}", metric, found, step, value) : "";
  }
};

const bool registered_goal = register_callback(
    {.name = "goal",
     .title = "Stop at a goal",
     .help = "ends the run as soon as a metric is good enough",
     .moment = Moment::verdict,
     .attrs = {{"metric", std::string("test_accuracy"), 0, 0, "what an evaluation records"},
               {"value", 0.9, 0, 0, "good enough: at least this, or at most where low values are better"}},
     .make = [](const AttrValues& v, const CallbackRun& run) -> std::unique_ptr<Callback> {
       check_recorded("callbacks: goal metric", v.text("metric"), run.eval_every, *run.task);
       return std::make_unique<Goal>(v.text("metric"), v.number("value"));
     }});

}  // namespace
}  // namespace tenon
