// tenon export --quantize: a model in fewer bits, and what that costs.
#include "app/cli/quantize.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/common.h"
#include "app/cli/output.h"
#include "core/error.h"
#include "projects/finish.h"
#include "projects/quantize.h"
#include "projects/quantize_plan.h"
#include "views/quantization/quantization_table.h"

namespace tenon::app {
namespace {

std::string calibration_names() {
  std::string all;
  for (const formats::CalibrationDef& d : formats::calibrations()) all += (all.empty() ? "" : "|") + d.name;
  return all;
}

projects::QuantizeOptions asked_quantization(const Args& args) {
  projects::QuantizeOptions o;
  o.how.precision = formats::precision_named(args.required("--quantize"));
  const bool calibrated = o.how.precision == formats::Precision::int8_static,
             grouped = o.how.precision == formats::Precision::int4_weights;
  if (args.has("--calibration") && !calibrated)
    throw Error::usage("--calibration is of int8-static alone", "Others need no grid for activations.");
  if (args.has("--group") && !grouped) throw Error::usage("--group is of int4-weights alone");
  if (args.has("--per-tensor") && grouped) throw Error::usage("--per-tensor is of 8 bits alone", "Say --group N.");
  o.how.calibration = args.text("--calibration", o.how.calibration);
  o.how.per_channel = !args.has("--per-tensor");
  o.how.group = args.integer("--group", o.how.group, 16);
  o.samples = args.integer("--samples", o.samples, 1);
  o.keep = args.integer("--keep", 0, 0);
  if (args.has("--budget")) o.budget = args.number("--budget", 0, 0);
  return o;
}

nlohmann::json judged_json(const Evaluation& e) {
  nlohmann::json j = {{"loss", json_number(e.loss)}};
  for (const Judgement& m : e.judgements) j[m.name] = json_number(m.value);
  return j;
}

nlohmann::json report_json(const projects::QuantizeReport& r) {
  const formats::Quantization& how = r.options.how;
  nlohmann::json j = {{"file", r.path},
                      {"format", r.options.program ? "pt2" : "onnx"},
                      {"run", r.run},
                      {"step", r.step},
                      {"precision", formats::name(how.precision)},
                      {"samples", r.options.samples},
                      {"bytes", r.bytes},
                      {"bytes_f32", r.bytes_f32},
                      {"f32", judged_json(r.f32)},
                      {"quantized", judged_json(r.quantized)},
                      {"test_samples", r.quantized.samples},
                      {"metric", r.before.name},
                      {r.in_points ? "lost_points" : "lost_percent", json_number(r.lost)},
                      {"kept", r.kept()},
                      {"layers", nlohmann::json::array()}};
  if (how.trained)
    j["trained_grids"] = {{"weight_bits", how.trained->weight_bits}, {"activation_bits", how.trained->activation_bits}};
  else if (how.precision == formats::Precision::int8_static)
    j["calibration"] = how.calibration;
  if (how.precision == formats::Precision::int4_weights)
    j["group"] = how.group;
  else
    j["per_channel"] = how.per_channel;
  if (r.verified) j["verified"] = true;
  for (const projects::QuantizedLayer& l : r.layers)
    j["layers"].push_back({{"layer", l.module},
                           {"op", l.op},
                           {"weights", l.weights},
                           {"precision", formats::name(l.precision)},
                           {"snr_db", json_number(l.snr)},
                           {"alone_db", json_number(l.alone)}});
  return j;
}

nlohmann::json plan_point_json(const projects::QuantizePlan& plan, const projects::PlanPoint& p,
                               const std::string& project) {
  return {{"precision", formats::name(p.precision)},
          {"kept", p.kept},
          {"bytes", p.bytes},
          {plan.metric, json_number(p.metric.value)},
          {plan.in_points ? "lost_points" : "lost_percent", json_number(p.lost)},
          {"ms", json_number(plan.ms(p))},
          {"front", p.front},
          {"command", plan.command(project, p)}};
}

/// Every way to export the model in fewer bits, and what it would cost; nothing is written.
int plan_fewer_bits(const Args& args) {
  for (const char* option : {"-o", "--per-tensor", "--group", "--budget", "--verify"})
    if (args.has(option))
      throw Error::usage(std::string(option) + " is not of --quantize plan, which writes nothing",
                         "Its table says the command that writes each file.");
  const projects::QuantizePlanOptions usual;
  const projects::QuantizePlanOptions options{args.integer("--samples", usual.samples, 1),
                                              args.text("--calibration", usual.calibration),
                                              args.integer("--keep", usual.most_kept, 0)};
  const auto [project, run, step] = asked_state(args);
  Bar bar("quantizing");
  const projects::QuantizePlan plan = projects::quantize_plan(*project, run, step, options, {}, bar.progress());
  bar.clear();
  if (args.json()) {
    for (const projects::PlanPoint& p : plan.points) print_json(plan_point_json(plan, p, args.word(0)));
    return 0;
  }
  print(fmt::format("{} at step {}{}\n\n", run.name, count_text(step),
                    plan.complete ? "" : ": stopped, the rest was not measured"));
  print_table(views::plan_table(plan));
  print("\nOn the front (*) no other is as good, as small and as fast. The files are made by:\n");
  for (const projects::PlanPoint& p : plan.points)
    if (p.front) print("  " + plan.command(args.word(0), p) + "\n");
  return 0;
}

}  // namespace

const std::vector<Option>& quantize_options() {
  static const auto& all = *new std::vector<Option>{
      {"--quantize", "PRECISION",
       "onnx or pt2 in fewer bits: int8-static, int8-dynamic (onnx), int8-weights or int4-weights; says what it costs. "
       "plan: "
       "writes nothing, and says for each of them, with 0 to N layers in f32 (--keep, 3), how good, small and fast it "
       "is"},
      {"--calibration", calibration_names(), "how int8-static chooses the range of activations (mse)"},
      {"--samples", "N", "training samples to calibrate and to measure layers by (256)"},
      {"--per-tensor", "", "one scale a weight instead of one a channel"},
      {"--group", "N", "weights that share a scale, of int4-weights (32)"},
      {"--keep", "N", "so many layers, the most sensitive ones, stay in f32"},
      {"--budget", "POINTS",
       "as many more stay in f32 as it takes to lose no more than that: points of accuracy, of other metrics percent"}};
  return all;
}

int export_in_fewer_bits(const Args& args) {
  if (args.text("--quantize") == "plan") return plan_fewer_bits(args);
  const std::string path = args.required("-o");
  const std::string format = args.text("--format", "onnx");
  if (format != "onnx" && format != "pt2")
    throw Error::usage("--quantize is of the formats onnx and pt2", "Say --format onnx.");
  projects::QuantizeOptions options = asked_quantization(args);
  options.program = format == "pt2";
  const auto [project, run, step] = asked_state(args);
  Bar bar("quantizing");
  const projects::QuantizeReport r =
      projects::export_quantized(*project, run, step, options, path, args.has("--verify"), bar.progress());
  bar.clear();
  if (args.json()) {
    print_json(report_json(r));
    return 0;
  }
  print(fmt::format("{}: {} at step {}, {}\n\n", path, run.name, count_text(step), r.text()));
  print_table(views::quantization_table(r));
  return 0;
}

}  // namespace tenon::app
