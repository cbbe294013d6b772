#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "projects/quantizable.h"

// What a trained model would be in fewer bits, in each of the ways there are: how good, how large, how fast.
namespace tenon::projects {

struct QuantizePlanOptions {
  int64_t samples = 256;            ///< see QuantizeOptions
  std::string calibration = "mse";  ///< of int8_static
  int64_t most_kept = 3;            ///< layers that stay in f32: from none to so many, the most sensitive ones
};

/// One way to export the model.
struct PlanPoint {
  formats::Precision precision = formats::Precision::f32;
  int64_t kept = 0;    ///< layers that stay in f32
  size_t bytes = 0;    ///< of the file
  Judgement metric;    ///< on the whole test split
  double lost = 0;     ///< see lost_of()
  double time = 1;     ///< of a sample, of what it takes in f32: the median of runs in turns
  bool front = false;  ///< no other is as good, as small and as fast, and better in one of these

  /// "int8-static, 2 layers in f32"
  std::string title() const;
};

struct QuantizePlan {
  int64_t run_id = 0, step = 0;
  std::string run;
  QuantizePlanOptions options;
  std::string metric;  ///< "test_accuracy"
  bool in_points = false;
  double f32_ms = 0;              ///< of a sample in f32
  std::vector<PlanPoint> points;  ///< f32 first
  bool complete = false;          ///< otherwise it was stopped: what it has is whole

  double ms(const PlanPoint& p) const { return p.time * f32_ms; }
  /// The command that makes the file of a point.
  std::string command(const std::string& project, const PlanPoint& p) const;
};

/// Told of the plan as it stands, after each point.
using PlanProgress = std::function<void(const QuantizePlan&)>;

/// Quantizes a state of a run in every precision, with none and more and more of the most sensitive layers left in f32;
/// nothing is written. Where `progress`, which counts the points, says so it ends with those that are done.
QuantizePlan quantize_plan(Project& project, const RunInfo& run, int64_t step, const QuantizePlanOptions& options,
                           const PlanProgress& told = {}, const Progress& progress = {});

}  // namespace tenon::projects
