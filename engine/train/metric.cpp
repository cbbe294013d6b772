#include "engine/train/metric.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/train/ranking.h"

namespace tenon {
namespace {

Registry<MetricDef>& metric_registry() {
  static auto& all = *new Registry<MetricDef>("metric");
  return all;
}

/// The first of equal maxima; -1 for a row with a NaN, which counts as wrong.
int64_t best_of(const float* row, int64_t width) {
  int64_t best = 0;
  bool number = row[0] == row[0];
  for (int64_t j = 1; j < width; ++j) {
    number &= row[j] == row[j];
    if (row[j] > row[best]) best = j;
  }
  return number ? best : -1;
}

class Accuracy : public Meter {
 public:
  explicit Accuracy(bool binary) : binary_(binary) {}
  void add(const Tensor& output, const Tensor& target) override {
    int64_t rows = target.numel();
    seen_ += rows;
    if (binary_) {
      for (int64_t i = 0; i < rows; ++i) right_ += (output.data<float>()[i] > 0) == (target.data<float>()[i] > 0.5f);
      return;
    }
    int64_t width = output.size(-1);
    for (int64_t i = 0; i < rows; ++i)
      right_ += is_best_class(output.data<float>() + i * width, width, 1, target.data<int64_t>()[i]);
  }
  double value() const override { return seen_ ? static_cast<double>(right_) / static_cast<double>(seen_) : 0; }

 private:
  bool binary_;
  int64_t right_ = 0, seen_ = 0;
};

/// Mean over the classes that occur of intersection over union.
class MeanIou : public Meter {
 public:
  explicit MeanIou(int64_t classes) : both_(static_cast<size_t>(classes)), either_(both_.size()) {}
  void add(const Tensor& output, const Tensor& target) override {
    int64_t width = output.size(-1), classes = static_cast<int64_t>(both_.size());
    for (int64_t i = 0; i < target.numel(); ++i) {
      int64_t said = best_of(output.data<float>() + i * width, width), is = target.data<int64_t>()[i];
      if (is < 0 || is >= classes) continue;  // left out of the loss too
      if (said == is) ++both_[static_cast<size_t>(is)];
      ++either_[static_cast<size_t>(is)];
      if (said >= 0 && said != is) ++either_[static_cast<size_t>(said)];
    }
  }
  double value() const override {
    double sum = 0;
    int64_t there = 0;
    for (size_t c = 0; c < both_.size(); ++c)
      if (either_[c]) sum += static_cast<double>(both_[c]) / static_cast<double>(either_[c]), ++there;
    return there ? sum / static_cast<double>(there) : 0;
  }

 private:
  std::vector<int64_t> both_, either_;
};

/// The loss a byte of the text has, whatever a token stands for.
class NatsPerByte : public Meter {
 public:
  explicit NatsPerByte(double bytes_per_token) : bytes_(bytes_per_token) {}
  void add(const Tensor&, const Tensor&) override {}
  void loss(double mean) override { mean_ = mean; }
  double value() const override { return mean_ / bytes_; }

 private:
  double bytes_, mean_ = 0;
};

class MeanAbsoluteError : public Meter {
 public:
  void add(const Tensor& output, const Tensor& target) override {
    for (int64_t i = 0; i < target.numel(); ++i)
      sum_ += std::abs(static_cast<double>(output.data<float>()[i]) - static_cast<double>(target.data<float>()[i]));
    seen_ += target.numel();
  }
  double value() const override { return seen_ ? sum_ / static_cast<double>(seen_) : 0; }

 private:
  double sum_ = 0;
  int64_t seen_ = 0;
};

/// The chance that a one is scored above a zero, equal scores counting half (Mann and Whitney).
class Auc : public Meter {
 public:
  void add(const Tensor& output, const Tensor& target) override {
    for (int64_t i = 0; i < target.numel(); ++i)
      seen_.push_back({output.data<float>()[i], target.data<float>()[i] > 0.5f});
  }
  double value() const override {
    for (const Ranking::Share& s : seen_)
      if (std::isnan(s.value)) return 0;  // a NaN has no place in an order
    const double area = rank_shares(seen_).auroc;
    return std::isnan(area) ? 0.5 : area;
  }

 private:
  std::vector<Ranking::Share> seen_;
};

using Made = std::unique_ptr<Meter>;
const bool registered_metric[] = {
    register_metric({"accuracy",
                     "share that is right",
                     true,
                     {"classification", "segmentation", "language", "binary"},
                     {"classification"},
                     [](const TaskView& t) -> Made { return std::make_unique<Accuracy>(t.task == "binary"); }}),
    register_metric({"mean_iou",
                     "overlap with the true areas, mean over the classes",
                     true,
                     {"segmentation"},
                     {"segmentation"},
                     [](const TaskView& t) -> Made { return std::make_unique<MeanIou>(t.classes); },
                     "mean IoU"}),
    register_metric({"nats_per_byte",
                     "loss for each byte of the text",
                     false,
                     {"language"},
                     {},
                     [](const TaskView& t) -> Made { return std::make_unique<NatsPerByte>(t.bytes_per_token); }}),
    register_metric({"mean_absolute_error",
                     "mean distance from the target",
                     false,
                     {"regression", "reconstruction"},
                     {},
                     [](const TaskView&) -> Made { return std::make_unique<MeanAbsoluteError>(); }}),
    register_metric({"auc",
                     "chance that a one is scored above a zero",
                     true,
                     {"binary"},
                     {"binary"},
                     [](const TaskView&) -> Made { return std::make_unique<Auc>(); },
                     "AUC"}),
};

}  // namespace

bool register_metric(MetricDef def, Place place) { return metric_registry().add(std::move(def), place); }
const Registry<MetricDef>& metrics() { return metric_registry(); }

int better(const std::string& recorded) {
  const std::string name = recorded.starts_with("test_") ? recorded.substr(5) : recorded;
  if (name == "loss") return -1;
  for (const MetricDef& d : metrics())
    if (d.name == name) return d.higher_is_better ? 1 : -1;
  return 0;
}

std::string metric_words(const std::string& recorded) {
  const std::string split = recorded.starts_with("test_") ? "test " : "", name = recorded.substr(split.size());
  for (const MetricDef& d : metrics())
    if (d.name == name && !d.words.empty()) return split + d.words;
  std::string words = recorded;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

}  // namespace tenon
