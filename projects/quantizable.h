#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/formats/onnx/export.h"
#include "engine/formats/onnx/quantization.h"
#include "engine/formats/torchscript/script.h"
#include "engine/train/session.h"
#include "projects/time_travel.h"

namespace tenon::projects {

/// A state of a run made ready to be quantized: what its exports in fewer bits have in common.
class Quantizable {
 public:
  /// `samples` of the training set, spread evenly over it, calibrate and tell the damage; fewer where it has fewer.
  Quantizable(Project& project, const RunInfo& run, int64_t step, int64_t samples, const Progress& progress,
              formats::Recurrence recurrence = formats::Recurrence::nodes);

  const formats::OnnxModel& f32() const { return f32_; }
  int64_t samples() const { return samples_; }
  const std::vector<Tensor>& batches() const { return batches_; }
  /// Of those, what every layer is run on by itself.
  const std::vector<Tensor>& few() const { return few_; }
  /// What of the trained state a quantized model still reads, by its names.
  formats::ScriptState left_in(const formats::OnnxModel& quantized) const;
  /// What is asked for, with the grids that the run has trained where it has and they are of that precision.
  formats::Quantization with_trained_grids(formats::Quantization how) const;
  /// Calibrated.
  formats::Quantizer quantizer(const formats::Quantization& how, const Progress& progress) const;
  /// On the whole test split, as `tenon exec` runs the model.
  Evaluation evaluated(const formats::OnnxModel& model, const Progress& progress) const;

 private:
  std::shared_ptr<TrainingSession> session_;
  std::optional<formats::TrainedGrids> trained_;
  formats::OnnxModel f32_;
  int64_t samples_;
  std::vector<Tensor> batches_, few_;
};

/// "grids of the training: weights in 4 bits, activations in 4"
std::string grids_text(const formats::TrainedGrids& grids);
/// What the damage is told in: what decides, of a text the loss for each byte.
const Judgement& told_metric(const Evaluation& e);
bool is_accuracy(const Judgement& j);
/// By how much it is worse: in points of a hundred where it is an accuracy, else in percent.
double lost_of(const Judgement& before, const Judgement& after);
/// "0.15 points lost", "1.20 % worse", "nothing lost"
std::string lost_text(double lost, bool in_points);

}  // namespace tenon::projects
