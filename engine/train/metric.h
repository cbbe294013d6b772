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
/// Which values of what a run records ("loss", "test_accuracy") are better; 0 where neither are (a rate, a norm): 1
/// high ones, -1 low ones.
int better(const std::string& recorded);

}  // namespace tenon
