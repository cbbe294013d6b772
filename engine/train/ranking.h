#pragma once
#include <cstdint>
#include <vector>

namespace tenon {

/// How well the shares that a class was given set its samples apart from all others, over every threshold: what ROC and
/// precision-recall curves are drawn of. Areas are scikit-learn's roc_auc_score (one class against the rest) and
/// average_precision_score; samples of one share stand or fall together.
struct Ranking {
  /// What one target was given.
  struct Share {
    double value = 0;       ///< or whatever else grows with it
    bool positive = false;  ///< it is of the class
  };
  int64_t positives = 0, negatives = 0;
  /// What is taken for the class where it needs a share of at least `threshold`.
  struct Point {
    double threshold = 0;
    int64_t true_positives = 0, false_positives = 0;
    double precision() const {
      return static_cast<double>(true_positives) / static_cast<double>(true_positives + false_positives);
    }
    bool operator==(const Point&) const = default;
  };
  /// From the highest threshold, at which anything is taken, down to the one at which everything is. Of many only
  /// those are kept between which a curve moves by at least kResolution.
  std::vector<Point> points;
  static constexpr double kResolution = 1.0 / 512;
  /// The chance that one of the class has a larger share than one of the others, a half where they have the same: the
  /// area under the ROC curve. NaN where there are none of the class, or no others.
  double auroc = 0;
  /// The precision at each threshold, weighted by the recall it adds. NaN where there are none of the class.
  double average_precision = 0;

  double true_positive_rate(const Point& p) const;  ///< recall; NaN without positives
  double false_positive_rate(const Point& p) const;
};

/// Shares must be numbers.
Ranking rank_shares(std::vector<Ranking::Share> shares);

/// Means over the classes that have such an area (macro averages); NaN where none has.
double mean_auroc(const std::vector<Ranking>& classes);
double mean_average_precision(const std::vector<Ranking>& classes);

}  // namespace tenon
