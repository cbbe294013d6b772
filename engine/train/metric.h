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

/// Whether `answer` has the highest score, and is the first of those that have. A row with a NaN answers nothing, and
/// no other class is an answer to an `answer` that is none. Scores lie `apart` elements from one another.
template <class T>
bool is_best_class(const T* scores, int64_t classes, int64_t apart, int64_t answer) {
  if (answer < 0 || answer >= classes) return false;
  const auto most = static_cast<float>(scores[answer * apart]);
  if (classes < 16) {
    bool best = most == most;
    for (int64_t i = 0; i < classes; ++i) {
      const auto s = static_cast<float>(scores[i * apart]);
      best &= i < answer ? s < most : s <= most;
    }
    return best;
  }
  auto ask = [&](int64_t stride) {
    // In blocks without a branch, which a compiler turns into vectors.
    auto none = [&](int64_t from, int64_t to, auto beats) {
      constexpr int64_t kBlock = 16;
      for (; from + kBlock <= to; from += kBlock) {
        int found = 0;
        for (int64_t k = 0; k < kBlock; ++k) found |= beats(static_cast<float>(scores[(from + k) * stride]));
        if (found) return false;
      }
      for (; from < to; ++from)
        if (beats(static_cast<float>(scores[from * stride]))) return false;
      return true;
    };
    return most == most && none(0, answer, [&](float s) { return !(s < most); }) &&
           none(answer + 1, classes, [&](float s) { return !(s <= most); });
  };
  return apart == 1 ? ask(1) : ask(apart);
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
  std::string words = {};  ///< its name as it is written in a text; empty: the name, with spaces
};
bool register_metric(MetricDef def, Place place = Place::current());
/// Sorted by name.
const Registry<MetricDef>& metrics();
/// Which values of what a run records ("loss", "test_accuracy") are better; 0 where neither are (a rate, a norm): 1
/// high ones, -1 low ones.
int better(const std::string& recorded);
/// What a run records as it is written in a text: "test mean IoU" of "test_mean_iou".
std::string metric_words(const std::string& recorded);

}  // namespace tenon
