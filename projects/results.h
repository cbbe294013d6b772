#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/train/ranking.h"
#include "engine/train/session.h"
#include "projects/embedding.h"
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
  /// Of a sample with several targets the one with the largest loss, from 0; -1: none, or it has one target.
  int64_t worst = -1;
  int64_t worst_truth = -1, worst_guess = -1;  ///< classes of that target
  double worst_loss = 0;
};

/// What the model made of one whole sample, where that is a picture of its own.
struct Answer {
  std::vector<int64_t> classes;  ///< the guess of every pixel; -1 where it gave no number
  std::vector<float> values;     ///< the picture that was drawn
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
  std::vector<Ranking> rankings;  ///< by class, against all others; empty: see why_unranked()
  int64_t unranked = 0;           ///< targets left out of them: their scores are no numbers
  Embedding embedding;            ///< of tasks with one target a sample; without a module: see why_unembedded()
  /// By row: of the kAnswers samples with the largest loss of a segmentation or a reconstruction.
  std::map<int64_t, Answer> answers;

  static constexpr size_t kAnswers = 48;
  static constexpr int64_t kMostShares = int64_t{1} << 24;  ///< targets times classes that are ranked
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
  /// Areas in one number: of a binary task those of "yes", of others the means over the classes. NaN without rankings.
  double auroc() const;
  double average_precision() const;
  /// Why there are no rankings, in a sentence; empty where there are.
  std::string why_unranked() const;
  std::string why_unembedded() const;
};

/// The test split under the state that a session of the run is in, sample by sample. Throws Error "cancelled" where
/// `progress` says so.
Results results_of(TrainingSession& session, const RunInfo& run, const Progress& progress = {});
/// The test split under the state after a step, sample by sample. Throws Error "cancelled" where `progress` says so.
Results results_at(Project& project, const RunInfo& run, int64_t step, const Progress& replaying = {},
                   const Progress& evaluating = {});
/// Everything about one sample of the test split under that state: every tensor, op and gradient.
std::shared_ptr<const tracing::StepRecord> record_sample(Project& project, int64_t run, int64_t step, int64_t row,
                                                         const Progress& progress = {});

}  // namespace tenon::projects
