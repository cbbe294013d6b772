#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/train/session.h"
#include "projects/time_travel.h"

// Where a trained model errs: what an evaluation's one number is made of.
namespace tenon::projects {

/// How one sample of the test split was answered.
struct Prediction {
  int64_t row = 0;                 ///< of the test split
  int64_t truth = -1, guess = -1;  ///< classes; -1 where a sample has no single one
  double confidence = 0;           ///< the share that the guessed class is given
  /// -log of the share of the right class, its mean over the sample's targets; of values the mean squared error.
  double loss = 0;
};

/// How one class fared. Ratios are NaN where nothing was counted.
struct ClassResult {
  int64_t samples = 0, guessed = 0, right = 0;
  double precision() const;  ///< right / guessed
  double recall() const;     ///< right / samples
  double f1() const;         ///< their harmonic mean
};

struct Results {
  std::string run;
  int64_t run_id = 0, step = 0;
  std::string task;
  Evaluation evaluation;
  std::vector<std::string> classes;     ///< by name; empty for a task without, or with more than kMostClasses
  std::vector<int64_t> confusion;       ///< [truth * classes + guess], over all targets
  std::vector<Prediction> predictions;  ///< by row
  std::shared_ptr<const data::Dataset> data;

  static constexpr int64_t kMostClasses = 512;
  int64_t count(size_t truth, size_t guess) const { return confusion[truth * classes.size() + guess]; }
  std::vector<ClassResult> per_class() const;
  /// Samples by how sure the model was of its guess: a calibrated one is right as often as it says.
  struct Bin {
    double from = 0, to = 1;
    int64_t samples = 0;
    double confidence = 0, accuracy = 0;  ///< means; 0 in an empty bin
  };
  std::vector<Bin> calibration(int bins = 10) const;
  /// Expected calibration error: the mean distance of confidence and accuracy, by the bins' samples (Guo et al., On
  /// Calibration of Modern Neural Networks, 2017). NaN for tasks without one class a sample.
  double calibration_error(int bins = 10) const;
  /// Indices into predictions, the largest loss first; what is not finite before all.
  std::vector<size_t> worst_first() const;
};

/// The test split under the state after a step, sample by sample. Throws Error "cancelled" where `progress` says so.
Results results_at(Project& project, const RunInfo& run, int64_t step, const Progress& replaying = {},
                   const Progress& evaluating = {});
/// Everything about one sample of the test split under that state: every tensor, op and gradient.
std::shared_ptr<const tracing::StepRecord> record_sample(Project& project, int64_t run, int64_t step, int64_t row,
                                                         const Progress& progress = {});

}  // namespace tenon::projects
