#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/registry.h"
#include "core/tensor.h"

namespace tenon {

/// What is learnt, as far as judging it goes.
struct TaskView {
  std::string task;  ///< "classification", "segmentation", "language", "binary", "regression", "reconstruction"
  int64_t classes = 0;
  double bytes_per_token = 1;  ///< of text
};

/// The class with the highest score, the first of equal ones; -1 where a score is NaN, which is no answer. Scores lie
/// `apart` elements from one another.
template <class T>
int64_t best_class(const T* scores, int64_t classes, int64_t apart = 1) {
  int64_t best = 0;
  auto most = static_cast<float>(scores[0]);
  bool number = most == most;
  for (int64_t i = 1; i < classes; ++i) {
    const auto score = static_cast<float>(scores[i * apart]);
    number &= score == score;
    if (score > most) most = score, best = i;
  }
  return number ? best : -1;
}

/// Judges outputs, batch by batch.
class Meter {
 public:
  virtual ~Meter() = default;
  /// Of tasks with classes: scores f32 [rows, classes] and i64 [rows]; otherwise two f32 tensors of one size. Both
  /// contiguous.
  virtual void add(const Tensor& output, const Tensor& target) = 0;
  /// The mean loss over everything, given before value().
  virtual void loss(double /*mean*/) {}
  virtual double value() const = 0;
};

/// One way to judge, registered in the file that defines it. Recorded as "test_<name>".
struct MetricDef {
  std::string name, help;
  bool higher_is_better;
  std::vector<std::string> tasks;    ///< that it makes sense for
  std::vector<std::string> decides;  ///< tasks whose best checkpoint it decides; the loss decides the others'
  std::unique_ptr<Meter> (*make)(const TaskView&);
};
bool register_metric(MetricDef def, Place place = Place::current());
/// Sorted by name.
const Registry<MetricDef>& metrics();

}  // namespace tenon
