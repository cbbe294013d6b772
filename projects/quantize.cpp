#include "projects/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/state.h"
#include "engine/formats/aten/exported_model.h"
#include "engine/formats/aten/writer.h"
#include "engine/formats/onnx/quantization_damage.h"
#include "engine/formats/onnx/run.h"
#include "engine/formats/tensor_difference.h"
#include "engine/formats/torchscript/quantized.h"
#include "projects/finish.h"
#include "projects/graph_exports.h"
#include "projects/quantizable.h"
#include "tracing/analyses/finding.h"

namespace tenon::projects {
namespace {

/// The model with all layers quantized but the `keep` most sensitive ones.
struct Plan {
  std::vector<bool> chosen;
  formats::OnnxModel model;
  Evaluation evaluation;
};

class Planner {
 public:
  Planner(const Quantizable& state, const formats::Quantizer& quantizer, const std::vector<size_t>& sensitive_first,
          const Progress& progress)
      : state_(state), quantizer_(quantizer), order_(sensitive_first), progress_(progress) {}

  Plan keeping(int64_t keep) const {
    Plan p;
    p.chosen.assign(order_.size(), true);
    for (int64_t i = 0; i < keep; ++i) p.chosen[order_[static_cast<size_t>(i)]] = false;
    p.model = quantizer_.quantized(p.chosen);
    p.evaluation = state_.evaluated(p.model, progress_);
    return p;
  }
  /// With as few in f32 as the budget allows, from `least` on; found by halving, as if every layer that is kept helped.
  Plan within(double budget, const Judgement& before, int64_t least) const {
    Plan best = keeping(least);
    if (lost_of(before, told_metric(best.evaluation)) <= budget) return best;
    int64_t too_few = least, enough = static_cast<int64_t>(order_.size());
    best = keeping(enough);
    while (enough - too_few > 1) {
      const int64_t middle = (too_few + enough) / 2;
      Plan p = keeping(middle);
      if (lost_of(before, told_metric(p.evaluation)) <= budget)
        best = std::move(p), enough = middle;
      else
        too_few = middle;
    }
    return best;
  }

 private:
  const Quantizable& state_;
  const formats::Quantizer& quantizer_;
  const std::vector<size_t>& order_;
  const Progress& progress_;
};

void verify_file(const std::string& path, const formats::OnnxModel& model, const Tensor& x) {
  const Tensor ours = formats::run_onnx(model, {x}).at(0),
               theirs = formats::run_onnx(formats::load_onnx(path), {x}).at(0);
  if (!(ours.size() == theirs.size()) || !formats::tensor_difference(ours, theirs).same_bits)
    throw Error(path + ": the model read back does not give the numbers of the one that was written");
}

/// A program of torch.export; its rounding is PyTorch's.
void save_program(const std::string& path, const formats::OnnxModel& model, const Quantizable& state, bool verify) {
  const formats::OnnxModel plain = formats::in_plain_operators(model);
  formats::save_exported(path, plain, state.left_in(plain), kTracedBatch);
  if (!verify) return;
  const Tensor x = state.few().front(), ours = formats::run_onnx(model, {x}).at(0),
               theirs = formats::run_onnx(formats::load_exported(path), {x}).at(0);
  const formats::TensorDifference d = formats::tensor_difference(ours, theirs);
  if (!(ours.size() == theirs.size()) || !(d.worst_relative() <= kExportTolerance))
    throw Error(fmt::format("{}: the program read back differs by {:.3g} relative from the quantized model", path,
                            d.worst_relative()));
}

std::vector<QuantizedLayer> quantized_layers(const formats::Quantizer& quantizer, const Plan& plan,
                                             const std::vector<double>& alone, const std::vector<size_t>& order,
                                             const std::vector<Tensor>& batches) {
  const std::vector<double> snr =
      formats::snr_within(quantizer.model(), plan.model, formats::layer_outputs(quantizer), batches);
  std::vector<QuantizedLayer> out;
  for (size_t i : order) {
    const formats::WeightedLayer& w = quantizer.layers()[i];
    const formats::Precision p = formats::quantized_as(quantizer.nodes()[w.nodes[0]], quantizer.how().precision);
    out.push_back({w.module, w.op, w.weights, plan.chosen[i] ? p : formats::Precision::f32, snr[i], alone[i]});
  }
  return out;
}

/// Two products of u8 and i8 leave 16 bits, of u8 and 7 bits they do not.
bool saturates_without_vnni(const formats::Quantization& how) {
  return how.precision == formats::Precision::int8_static && (!how.trained || how.trained->weight_bits == 8);
}

void check_options(const QuantizeOptions& o) {
  if (o.how.precision == formats::Precision::f32)
    throw Error::usage("f32 is no quantization", "int8-static, int8-dynamic, int8-weights or int4-weights");
  if (o.samples < 1) throw Error::usage("calibration needs a sample at least");
  if (o.keep < 0) throw Error::usage("a number of layers is not negative");
  if (o.budget && !(*o.budget >= 0)) throw Error::usage("a budget is not negative");
}

}  // namespace

int64_t QuantizeReport::kept() const {
  return std::count_if(layers.begin(), layers.end(),
                       [](const QuantizedLayer& l) { return l.precision == formats::Precision::f32; });
}

std::string QuantizeReport::lost_text() const { return projects::lost_text(lost, in_points); }

std::string QuantizeReport::text() const {
  using tracing::bytes_text;
  using tracing::count_text;
  std::string what = formats::name(options.how.precision);
  if (options.how.trained)
    what += " (" + grids_text(*options.how.trained) + ")";
  else if (options.how.precision == formats::Precision::int8_static)
    what += fmt::format(" ({} over {} training samples)", options.how.calibration, count_text(options.samples));
  if (options.how.precision == formats::Precision::int4_weights)
    what += fmt::format(" (groups of {})", options.how.group);
  const std::string metric = "test_" + before.name;
  std::string text = what + fmt::format("\n{}, {} in f32: {:.2f} times smaller", bytes_text(static_cast<double>(bytes)),
                                        bytes_text(static_cast<double>(bytes_f32)), times_smaller());
  text += fmt::format("\n{}, in f32 {}: {} ({} test samples)", metric_text(metric, after.value),
                      metric_text(metric, before.value).substr(metric.size() + 1), lost_text(),
                      count_text(quantized.samples));
  if (kept()) text += fmt::format("\n{} of {} layers stay in f32", kept(), layers.size());
  if (saturates_without_vnni(options.how))
    text +=
        "\non a processor without VNNI, ONNX Runtime adds pairs of products in 16 bits, which may saturate: measure "
        "it there";
  if (verified) text += "\nverified: the file read back gives the same numbers";
  return text;
}

QuantizeReport export_quantized(Project& project, const RunInfo& run, int64_t step, const QuantizeOptions& options,
                                const std::string& path, bool verify, const Progress& progress) {
  check_options(options);
  if (options.program && options.how.precision == formats::Precision::int8_dynamic)
    throw Error::usage("PyTorch has no operator for the products of int8-dynamic in a .pt2",
                       "int8-static, int8-weights or int4-weights");
  const Quantizable state(project, run, step, options.samples, progress,
                          options.program ? formats::Recurrence::steps : formats::Recurrence::nodes);
  const NoGrad off;
  const formats::Quantizer quantizer = state.quantizer(options.how, progress);
  QuantizeReport r{.path = path, .run = run.name, .step = step, .options = options};
  r.options.samples = state.samples();
  r.options.how = quantizer.how();
  r.f32 = state.evaluated(state.f32(), progress);
  r.before = told_metric(r.f32);
  const std::vector<double> alone = formats::sensitivities(quantizer, state.few(), progress);
  const std::vector<size_t> order = formats::least_first(alone);
  const Planner planner(state, quantizer, order, progress);
  const int64_t keep = std::min(options.keep, static_cast<int64_t>(order.size()));
  const Plan plan = options.budget ? planner.within(*options.budget, r.before, keep) : planner.keeping(keep);
  r.quantized = plan.evaluation;
  r.after = told_metric(r.quantized);
  r.lost = lost_of(r.before, r.after);
  r.in_points = is_accuracy(r.before);
  r.layers = quantized_layers(quantizer, plan, alone, order, state.few());
  r.bytes_f32 = formats::onnx_size(state.f32());
  if (options.program) {
    save_program(path, plan.model, state, verify);
    r.bytes = std::filesystem::file_size(path);
  } else {
    formats::save_onnx(path, plan.model);
    r.bytes = formats::onnx_size(plan.model);
    if (verify) verify_file(path, plan.model, state.few().front());
  }
  r.verified = verify;
  return r;
}

}  // namespace tenon::projects
