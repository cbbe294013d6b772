#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/data/dataset.h"

namespace tenon::data {

/// What one look at every sample of a data set tells, before anything is trained on it.
struct Survey {
  struct Part {
    int64_t samples = 0;
    // Over the inputs' values; of tokens and other whole numbers as such.
    int64_t values = 0, not_finite = 0;
    double min = 0, max = 0, mean = 0, deviation = 0;  ///< of the finite ones; 0 where there are none
  };
  Part train, test;
  int64_t duplicates = 0;  ///< samples of the training set that are another's equal, bit for bit
  int64_t conflicts = 0;   ///< of these, such as have another target
  int64_t leaks = 0;       ///< samples of the test split whose input is in the training set
  /// What the opening told, then what was seen here. Places of one remark are of both splits, training first.
  std::vector<Remark> remarks;
};

/// Called with samples done and in all; returning false throws Error "cancelled".
using SurveyProgress = std::function<bool(int64_t done, int64_t total)>;
/// Reads every sample once. Throws Error naming the sample that cannot be read.
Survey survey(const Split& split, const SurveyProgress& progress = {});

}  // namespace tenon::data
