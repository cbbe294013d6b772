#pragma once
#include <cstdint>
#include <string>

#include "engine/data/image.h"
#include "projects/results.h"

namespace tenon::views {

/// A sample of the test split for eyes: its pictures, or the text around the place that was guessed worst.
struct SampleSight {
  enum class Kind : uint8_t { none, picture, text };
  /// What the samples of a data set can be seen as.
  static Kind kind(const data::Dataset& set);

  /// The input; what was to come out of a segmentation, and what came, as colours of classes; what came out of a
  /// reconstruction. Without pixels where there is none. No side is longer than kSampleSide.
  data::Image input, target, answer;
  /// What stood before the target with the largest loss, that target, what follows it, and what it was taken for.
  /// Breaks and tabs are signs, and a blank that stands alone is an underscore.
  std::string before, at, after, guess;
};

/// Reads the sample from its data set, which may lie in files: away from the UI thread. Throws Error for a file that
/// cannot be read.
SampleSight sight_of(const projects::Results& results, const projects::Prediction& prediction);

/// What a class is called; its number where it has no name, "–" where there is none.
std::string class_text(const projects::Results& results, int64_t index);
/// What the sight says in words: "Shirt → T-shirt/top", "'e' → 't'".
std::string outcome_text(const projects::Results& results, const projects::Prediction& prediction);

}  // namespace tenon::views
