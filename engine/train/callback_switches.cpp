// What keys of the recipe say, as callbacks: see Note [Callbacks].
#include <fmt/format.h>

#include "engine/train/callback.h"
#include "engine/train/metric.h"
#include "engine/train/recipe.h"

namespace tenon {
namespace {

using I = int64_t;
using S = std::string;

std::string count(int64_t n, const char* one, const char* many) {
  return n == 1 ? fmt::format("1 {}", one) : fmt::format("{} {}", n, many);
}
/// "every epoch", "every 5 epochs"
std::string every(int64_t n, const char* one, const char* many) {
  return n == 1 ? fmt::format("every {}", one) : fmt::format("every {} {}", n, many);
}
std::string from_epoch(const Recipe& r) {
  const double start = r.number("average.start_epochs");
  return start > 0 ? fmt::format(", from epoch {:g} on", start) : "";
}
std::string evaluates(const Recipe& r) {
  return r.flag("average.evaluate") ? "; evaluations use the average" : "; evaluations use the trained weights";
}

const bool registered_switches[] = {
    register_callback({.name = "warm_up",
                       .title = "Warm-up",
                       .help = "lets the learning rate rise in a line at the beginning",
                       .moment = Moment::rate,
                       .keys = {"schedule.warmup_steps"},
                       .on = I{100},
                       .off = I{0},
                       .any = true,
                       .says =
                           [](const Recipe& r) {
                             return fmt::format("the learning rate rises in a line over the first {}",
                                                count(r.integer("schedule.warmup_steps"), "step", "steps"));
                           }}),
    register_callback({.name = "balanced_sampling",
                       .title = "Balanced sampling",
                       .help = "draws every class as often as any other",
                       .moment = Moment::samples,
                       .keys = {"data.sampling"},
                       .on = S("balanced"),
                       .off = S("uniform")}),
    register_callback({.name = "balanced_loss",
                       .title = "Balanced loss",
                       .help = "weighs each class by how rare it is",
                       .moment = Moment::loss,
                       .keys = {"loss.weight"},
                       .on = S("balanced"),
                       .off = S("")}),
    register_callback({.name = "stop_on_nan",
                       .title = "Stop at NaN",
                       .help = "ends the run before weights are written from a loss or gradient that is not finite",
                       .moment = Moment::check,
                       .keys = {"on_nan"},
                       .on = S("stop"),
                       .off = S("continue")}),
    register_callback({.name = "clip_value",
                       .title = "Clip gradients by value",
                       .help = "bounds every value of a gradient",
                       .moment = Moment::clipping,
                       .keys = {"optimizer.clip_value"},
                       .on = 1.0,
                       .off = 0.0,
                       .any = true,
                       .says =
                           [](const Recipe& r) {
                             const double most = r.number("optimizer.clip_value");
                             return fmt::format("values of gradients stay within -{:g} and {:g}", most, most);
                           }}),
    register_callback({.name = "clip_norm",
                       .title = "Clip gradients by norm",
                       .help = "scales all gradients down where their norm is large",
                       .moment = Moment::clipping,
                       .keys = {"optimizer.clip_norm"},
                       .on = 1.0,
                       .off = 0.0,
                       .any = true,
                       .says =
                           [](const Recipe& r) {
                             return fmt::format("all gradients together have a norm of {:g} at most",
                                                r.number("optimizer.clip_norm"));
                           }}),
    register_callback({.name = "ema",
                       .title = "Moving average of the weights (EMA)",
                       .help = "keeps an exponential average of the weights beside them",
                       .moment = Moment::update,
                       .keys = {"average.type", "average.decay", "average.start_epochs", "average.evaluate"},
                       .on = S("ema"),
                       .off = S("none"),
                       .says =
                           [](const Recipe& r) {
                             return fmt::format("an average of the weights, of which each step keeps {:g}{}{}",
                                                r.number("average.decay"), from_epoch(r), evaluates(r));
                           }}),
    register_callback({.name = "swa",
                       .title = "Stochastic weight averaging (SWA)",
                       .help = "keeps the mean of the weights at the ends of epochs beside them",
                       .moment = Moment::update,
                       .keys = {"average.type", "average.start_epochs", "average.evaluate"},
                       .on = S("swa"),
                       .off = S("none"),
                       .says =
                           [](const Recipe& r) {
                             return "the mean of the weights at the ends of epochs" + from_epoch(r) + evaluates(r);
                           }}),
    register_callback({.name = "plateau",
                       .title = "Reduce the rate on a plateau",
                       .help = "lowers the learning rate where the test loss no longer falls",
                       .moment = Moment::evaluation,
                       .keys = {"schedule.type", "schedule.factor", "schedule.patience", "schedule.threshold",
                                "schedule.threshold_mode", "schedule.cooldown", "schedule.min_lr"},
                       .on = S("plateau"),
                       .off = S("constant"),
                       .says =
                           [](const Recipe& r) {
                             return fmt::format(
                                 "the learning rate times {:g} where the test loss got no better in {}",
                                 r.number("schedule.factor"),
                                 count(r.integer("schedule.patience") + 1, "evaluation", "evaluations in a row"));
                           }}),
    register_callback(
        {.name = "save_best",
         .title = "Evaluate and save the best",
         .help = "evaluates on the test split, and keeps the checkpoint that was best under the name best",
         .moment = Moment::verdict,
         .keys = {"eval_every"},
         .on = I{1},
         .off = I{0},
         .any = true,
         .says =
             [](const Recipe& r) {
               return fmt::format("evaluates {}; the checkpoint that was best is called best",
                                  every(r.integer("eval_every"), "epoch", "epochs"));
             }}),
    register_callback({.name = "stop_early",
                       .title = "Stop early",
                       .help = "ends the run where a metric does not become better",
                       .moment = Moment::verdict,
                       .keys = {"stop.metric", "stop.patience", "stop.min_delta", "stop.mode"},
                       .on = S("test_loss"),
                       .off = S("none"),
                       .any = true,
                       .says =
                           [](const Recipe& r) {
                             const double least = r.number("stop.min_delta");
                             return fmt::format(
                                 "ends the run where {} did not become better{} in {}", r.text("stop.metric"),
                                 least > 0 ? fmt::format(" by more than {:g}", least) : "",
                                 count(r.integer("stop.patience"), "evaluation", "evaluations in a row"));
                           }}),
    register_callback({.name = "save_checkpoints",
                       .title = "Save checkpoints",
                       .help = "keeps the state every so many steps, beside the one at the end of each epoch",
                       .moment = Moment::checkpoint,
                       .keys = {"checkpoint_every"},
                       .on = I{200},
                       .off = I{0},
                       .any = true,
                       .says =
                           [](const Recipe& r) {
                             return fmt::format("keeps the state {}, and at the end of each epoch",
                                                every(r.integer("checkpoint_every"), "step", "steps"));
                           }}),
};

}  // namespace
}  // namespace tenon
