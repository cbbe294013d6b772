#include "projects/quantize_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/median.h"
#include "core/profile.h"
#include "core/state.h"
#include "engine/formats/onnx/prepared.h"
#include "engine/formats/onnx/quantization_damage.h"
#include "engine/formats/onnx/run.h"

namespace tenon::projects {
namespace {

constexpr int kTurns = 9;

bool beats(const PlanPoint& a, const PlanPoint& b) {
  const bool as_good = a.lost <= b.lost && a.bytes <= b.bytes && a.time <= b.time;
  return as_good && (a.lost < b.lost || a.bytes < b.bytes || a.time < b.time);
}

class PlanMaker {
 public:
  PlanMaker(Project& project, const RunInfo& run, int64_t step, const QuantizePlanOptions& options,
            const PlanProgress& told, const Progress& progress)
      : told_(told), progress_(progress), state_(project, run, step, options.samples, guarded()) {
    plan_.run_id = run.id, plan_.run = run.name, plan_.step = step;
    plan_.options = options;
  }

  QuantizePlan make() {
    f32_ = state_.f32();
    add(formats::Precision::f32, 0, f32_);
    try {
      for (int i = 1; i < formats::kPrecisions; ++i) add_precision(static_cast<formats::Precision>(i));
      plan_.complete = true;
    } catch (const Error&) {
      if (!stopped_) throw;
    }
    return std::move(plan_);
  }

 private:
  /// For what is done within a point.
  Progress guarded() {
    return [this](int64_t, int64_t) { return go_on(); };
  }
  bool go_on() {
    const auto done = static_cast<int64_t>(plan_.points.size());
    stopped_ = stopped_ || (progress_ && !progress_(done, std::max(total_, done + 1)));
    return !stopped_;
  }

  void add_precision(formats::Precision precision) {
    const formats::Quantizer q =
        state_.quantizer({.precision = precision, .calibration = plan_.options.calibration}, guarded());
    const std::vector<size_t> order = formats::least_first(formats::sensitivities(q, state_.few(), guarded()));
    const auto most = std::min(plan_.options.most_kept, static_cast<int64_t>(order.size()) - 1);
    total_ = std::max<int64_t>(total_, 1 + (formats::kPrecisions - 1) * (most + 1));
    std::vector<bool> chosen(order.size(), true);
    for (int64_t kept = 0; kept <= most; ++kept) {
      if (kept) chosen[order[static_cast<size_t>(kept - 1)]] = false;
      add(precision, kept, q.quantized(chosen));
    }
  }

  void add(formats::Precision precision, int64_t kept, const formats::OnnxModel& model) {
    PlanPoint p{.precision = precision, .kept = kept, .bytes = formats::onnx_size(model)};
    p.metric = told_metric(state_.evaluated(model, guarded()));
    if (plan_.points.empty()) {
      plan_.metric = "test_" + p.metric.name;
      plan_.in_points = is_accuracy(p.metric);
      plan_.f32_ms = median_of(times_of(model).first);
    } else {
      p.lost = lost_of(plan_.points[0].metric, p.metric);
      p.time = median_of(times_of(model).second);
    }
    plan_.points.push_back(std::move(p));
    for (PlanPoint& a : plan_.points)
      a.front = std::none_of(plan_.points.begin(), plan_.points.end(), [&](const PlanPoint& b) { return beats(b, a); });
    if (told_) told_(plan_);
  }

  /// Milliseconds a sample in f32, and how many times that the model takes, turn by turn.
  std::pair<std::vector<double>, std::vector<double>> times_of(const formats::OnnxModel& model) {
    const formats::PreparedModel it(model), f32(f32_);
    const Tensor& x = state_.batches().front();
    const auto time = [&](const formats::PreparedModel& m) {
      const int64_t begin = now_ns();
      m.run_tensors({x});
      return static_cast<double>(now_ns() - begin) / 1e6 / static_cast<double>(x.size(0));
    };
    std::vector<double> took, share;
    time(it), time(f32);
    for (int i = 0; i < kTurns && go_on(); ++i) {
      took.push_back(time(f32));
      share.push_back(time(it) / took.back());
    }
    if (took.empty()) throw Error("cancelled");
    return {std::move(took), std::move(share)};
  }

  const PlanProgress& told_;
  const Progress& progress_;
  bool stopped_ = false;
  int64_t total_ = 1;
  QuantizePlan plan_;
  Quantizable state_;
  formats::OnnxModel f32_;
};

}  // namespace

std::string PlanPoint::title() const {
  const std::string text = formats::name(precision);
  if (kept == 0) return text;
  return kept == 1 ? text + ", 1 layer in f32" : fmt::format("{}, {} layers in f32", text, kept);
}

std::string QuantizePlan::command(const std::string& project, const PlanPoint& p) const {
  std::string text = fmt::format("tenon export {} {} --checkpoint {} --format onnx -o model.onnx", project, run, step);
  if (p.precision == formats::Precision::f32) return text;
  text += fmt::format(" --quantize {}", formats::name(p.precision));
  if (p.precision == formats::Precision::int8_static && options.calibration != "mse")
    text += " --calibration " + options.calibration;
  if (options.samples != 256) text += fmt::format(" --samples {}", options.samples);
  return p.kept ? text + fmt::format(" --keep {}", p.kept) : text;
}

QuantizePlan quantize_plan(Project& project, const RunInfo& run, int64_t step, const QuantizePlanOptions& options,
                           const PlanProgress& told, const Progress& progress) {
  formats::calibration_named(options.calibration);
  if (options.samples < 1) throw Error::usage("calibration needs a sample at least");
  if (options.most_kept < 0) throw Error::usage("a number of layers is not negative");
  return PlanMaker(project, run, step, options, told, progress).make();
}

}  // namespace tenon::projects
