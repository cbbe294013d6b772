#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "engine/optim/schedule.h"

namespace tenon::optim {
namespace {

/// Times `factor` once the evaluations' loss has not improved for more than `patience` of them. PyTorch:
/// ReduceLROnPlateau (mode min).
class Plateau : public Schedule {
 public:
  explicit Plateau(const AttrValues& v)
      : factor_(v.number("factor")),
        threshold_(v.number("threshold")),
        min_lr_(v.number("min_lr")),
        relative_(v.text("threshold_mode") == "rel"),
        patience_(v.integer("patience")),
        cooldown_(v.integer("cooldown")) {
    if (factor_ >= 1) throw Error::usage("schedule.factor = " + attr_text(factor_) + ": a plateau's factor is below 1");
  }
  double at(int64_t, double base) const override {
    return std::max(std::min(base, min_lr_), base * std::pow(factor_, static_cast<double>(reductions_)));
  }
  void report(double loss, int64_t) override {
    bool better = loss < (relative_ ? best_ * (1 - threshold_) : best_ - threshold_);
    if (!(best_ < std::numeric_limits<double>::infinity())) better = std::isfinite(loss);
    if (better) {
      best_ = loss;
      bad_ = 0;
    } else {
      ++bad_;
    }
    if (cooling_ > 0) {
      --cooling_;
      bad_ = 0;
    }
    if (bad_ <= patience_) return;
    ++reductions_;
    cooling_ = cooldown_;
    bad_ = 0;
  }
  nlohmann::json state() const override {
    nlohmann::json j = {{"reductions", reductions_}, {"bad", bad_}, {"cooling", cooling_}};
    if (std::isfinite(best_)) j["best"] = best_;
    return j;
  }
  void load(const nlohmann::json& j) override {
    for (const char* key : {"reductions", "bad", "cooling"})
      if (!j.is_object() || !j.contains(key) || !j[key].is_number_integer() || j[key].get<int64_t>() < 0)
        throw Error(std::string("the checkpoint has no \"") + key + "\" of a plateau schedule",
                    "it belongs to another recipe");
    if (j.contains("best") && !j["best"].is_number())
      throw Error("\"best\" of the checkpoint's plateau schedule is no number");
    reductions_ = j["reductions"].get<int64_t>();
    bad_ = j["bad"].get<int64_t>();
    cooling_ = j["cooling"].get<int64_t>();
    best_ = j.contains("best") ? j["best"].get<double>() : std::numeric_limits<double>::infinity();
  }

 private:
  double factor_, threshold_, min_lr_;
  bool relative_;
  int64_t patience_, cooldown_;
  double best_ = std::numeric_limits<double>::infinity();
  int64_t reductions_ = 0, bad_ = 0, cooling_ = 0;
};

const bool registered_plateau = register_schedule(
    {"plateau",
     "times a factor where the test loss no longer falls",
     {{"factor", 0.1, 0, 1, "of a reduction"},
      {"patience", int64_t{10}, 0, 1e9, "evaluations without improvement that are waited for", {}, "evaluations"},
      {"threshold", 1e-4, 0, 1e30, "least improvement"},
      {"threshold_mode",
       std::string("rel"),
       0,
       0,
       "rel: as a share of the best loss; abs: as a difference",
       {"rel", "abs"}},
      {"cooldown", int64_t{0}, 0, 1e9, "evaluations after a reduction that do not count", {}, "evaluations"},
      {"min_lr", 0.0, 0, 1e30, "the rate goes no lower"}},
     [](const AttrValues& v, const ScheduleSpan&) -> std::unique_ptr<Schedule> {
       return std::make_unique<Plateau>(v);
     }});

}  // namespace
}  // namespace tenon::optim
