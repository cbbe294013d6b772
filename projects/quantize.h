#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/formats/onnx/quantization.h"
#include "engine/train/session.h"
#include "projects/time_travel.h"

// A trained model exported in fewer bits, and what that does to it.
namespace tenon::projects {

struct QuantizeOptions {
  formats::Quantization how;
  int64_t samples = 256;  ///< of the training set, spread evenly over it, that calibration and the damage are told by
  int64_t keep = 0;       ///< so many layers, the most sensitive ones, stay in f32
  /// More of them do until no more than this is lost on the test split: see QuantizeReport::lost.
  std::optional<double> budget = {};
  bool program = false;  ///< a .pt2 that torch.export.load() opens, instead of ONNX
};

/// A layer with weights, as it was written.
struct QuantizedLayer {
  std::string module, op;
  int64_t weights = 0;
  formats::Precision precision = formats::Precision::f32;
  double snr = 0;    ///< of what it makes, in the model as it was written: formats::snr_within()
  double alone = 0;  ///< formats::sensitivities()
};

struct QuantizeReport {
  std::string path, run;
  int64_t step = 0;
  QuantizeOptions options;
  size_t bytes = 0, bytes_f32 = 0;  ///< of the file, and of one in f32
  Evaluation f32, quantized;        ///< on the whole test split, both by the ONNX operators
  Judgement before, after;          ///< of these the metric that decides; of a text nats a byte
  /// By how much it is worse: in points of a hundred where it is an accuracy, else in percent.
  double lost = 0;
  bool in_points = false;
  std::vector<QuantizedLayer> layers;  ///< the most sensitive first
  bool verified = false;               ///< the file was read back and gave the same bits

  int64_t kept() const;
  double times_smaller() const { return static_cast<double>(bytes_f32) / static_cast<double>(bytes); }
  /// "0.15 points lost", "1.20 % worse", "nothing lost"
  std::string lost_text() const;
  /// In words, a line each: sizes, the metric, what stays in f32.
  std::string text() const;
};

/// Writes the model of a state of a run in fewer bits, as ONNX or as a program of torch.export. Throws Error (usage)
/// for options that do not fit, Error naming the layer that ONNX lacks, and Error "cancelled" where `progress` says so;
/// nothing is written then.
QuantizeReport export_quantized(Project& project, const RunInfo& run, int64_t step, const QuantizeOptions& options,
                                const std::string& path, bool verify, const Progress& progress = {});

}  // namespace tenon::projects
