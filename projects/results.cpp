#include "projects/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "core/error.h"
#include "engine/data/dataset.h"
#include "engine/train/recipe.h"
#include "tracing/record/step_recorder.h"

namespace tenon::projects {

namespace {
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The loss by which samples are sorted: what is not finite before all.
double badness(double loss) { return std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity(); }

/// Of some targets the share that each class was given.
class Shares {
 public:
  void open(int64_t classes) { classes_ = classes; }
  bool wanted() const { return classes_ > 0; }
  /// One share a class; whether all of them are numbers.
  bool add(const std::vector<double>& shares, int64_t truth) {
    if (std::any_of(shares.begin(), shares.end(), [](double s) { return std::isnan(s); })) return false;
    values_.insert(values_.end(), shares.begin(), shares.end());
    truths_.push_back(static_cast<int32_t>(truth));
    return true;
  }
  std::vector<Ranking> rank() const {
    std::vector<Ranking> out;
    for (int64_t c = 0; c < classes_; ++c) {
      std::vector<Ranking::Share> of(truths_.size());
      for (size_t i = 0; i < of.size(); ++i)
        of[i] = {values_[i * static_cast<size_t>(classes_) + static_cast<size_t>(c)], truths_[i] == c};
      out.push_back(rank_shares(std::move(of)));
    }
    return out;
  }

 private:
  int64_t classes_ = 0;
  std::vector<double> values_;
  std::vector<int32_t> truths_;
};

/// Turns scores of some rows into predictions.
class Judge {
 public:
  Judge(Results& results, const TrainingSession& session)
      : r_(results), targets_(session.targets_per_sample()), classes_(session.test_data().classes()) {
    if (r_.task == "binary") classes_ = 2;
    by_class_ = classes_ > 1 && r_.task != "regression" && r_.task != "reconstruction";
    pictures_ = r_.task == "segmentation" || r_.task == "reconstruction";
    if (!by_class_ || classes_ > Results::kMostClasses) return;
    for (int64_t c = 0; c < classes_; ++c)
      r_.classes.push_back(r_.task == "binary" ? (c ? "yes" : "no") : session.test_data().class_name(c));
    r_.confusion.assign(static_cast<size_t>(classes_ * classes_), 0);
    if (r_.task != "language" && session.test_data().size() <= Results::kMostShares / classes_ / targets_)
      shares_.open(classes_);
  }

  void add(const std::vector<int64_t>& rows, const Tensor& scores, const Tensor& answers) {
    const auto n = static_cast<int64_t>(rows.size());
    const int64_t width = n ? scores.numel() / n : 0;  // scores of a sample
    for (int64_t i = 0; i < n; ++i) {
      Prediction p;
      Answer answer;
      p.row = rows[static_cast<size_t>(i)];
      const float* of = scores.data<float>() + i * width;
      if (!by_class_)
        values(p, answer, of, answers.data<float>() + i * width, width);
      else if (r_.task == "binary")
        for (int64_t t = 0; t < width; ++t) binary(p, of[t], answers.data<float>()[i * width + t], t, width);
      else
        for (int64_t t = 0; t < targets_; ++t)
          one_of(p, answer, of + t * classes_, answers.data<int64_t>()[i * targets_ + t], t);
      r_.predictions.push_back(p);
      if (pictures_) keep(p, std::move(answer));
    }
  }
  void finish() { r_.rankings = shares_.rank(); }

 private:
  void values(Prediction& p, Answer& answer, const float* output, const float* target, int64_t n) const {
    for (int64_t k = 0; k < n; ++k) {
      const double d = static_cast<double>(output[k]) - target[k];
      p.loss += d * d / static_cast<double>(n);
    }
    if (pictures_) answer.values.assign(output, output + n);
  }
  /// One target of so many; all_ are the shares of its classes.
  void count(Prediction& p, int64_t truth, int64_t guess, double confidence, double share, int64_t target,
             int64_t targets) {
    const double loss = -std::log(share);
    p.loss += loss / static_cast<double>(targets);
    if (!(share >= 0)) guess = -1;  // no number is no answer
    if (targets == 1)
      p.truth = truth, p.guess = guess, p.confidence = confidence;
    else if (p.worst < 0 || badness(loss) > badness(p.worst_loss))
      p.worst = target, p.worst_truth = truth, p.worst_guess = guess, p.worst_loss = loss;
    if (guess >= 0 && !r_.confusion.empty()) ++r_.confusion[static_cast<size_t>(truth * classes_ + guess)];
    if (shares_.wanted() && !shares_.add(all_, truth)) ++r_.unranked;
  }
  void binary(Prediction& p, float score, float target, int64_t at, int64_t targets) {
    const double yes = 1 / (1 + std::exp(-static_cast<double>(score))),
                 no = 1 / (1 + std::exp(static_cast<double>(score)));
    const int64_t truth = target > 0.5f, guess = score > 0;
    all_ = {no, yes};
    count(p, truth, guess, guess ? yes : no, truth ? yes : no, at, targets);
  }
  void one_of(Prediction& p, Answer& answer, const float* scores, int64_t truth, int64_t at) {
    int64_t guess = 0;
    for (int64_t c = 1; c < classes_; ++c)
      if (scores[c] > scores[guess]) guess = c;
    all_.resize(static_cast<size_t>(classes_));
    double sum = 0;
    for (int64_t c = 0; c < classes_; ++c)
      sum += all_[static_cast<size_t>(c)] = std::exp(static_cast<double>(scores[c]) - scores[guess]);
    for (double& share : all_) share /= sum;
    if (pictures_) answer.classes.push_back(std::isnan(sum) ? -1 : guess);
    if (truth < 0 || truth >= classes_) return;  // a target that counts for nothing
    count(p, truth, guess, 1 / sum, all_[static_cast<size_t>(truth)], at, targets_);
  }
  /// The worst so far, and of two the same the one of the lower row.
  void keep(const Prediction& p, Answer answer) {
    worst_.insert({-badness(p.loss), p.row});
    r_.answers.emplace(p.row, std::move(answer));
    if (worst_.size() <= Results::kAnswers) return;
    r_.answers.erase(std::prev(worst_.end())->second);
    worst_.erase(std::prev(worst_.end()));
  }

  Results& r_;
  int64_t targets_, classes_;
  bool by_class_ = false, pictures_ = false;
  Shares shares_;
  std::vector<double> all_;  ///< shares of the classes of the target at hand
  std::set<std::pair<double, int64_t>> worst_;
};
}  // namespace

double ClassResult::precision() const {
  return guessed ? static_cast<double>(right) / static_cast<double>(guessed) : kNaN;
}
double ClassResult::recall() const {
  return samples ? static_cast<double>(right) / static_cast<double>(samples) : kNaN;
}
double ClassResult::f1() const {
  return samples + guessed ? 2.0 * static_cast<double>(right) / static_cast<double>(samples + guessed) : kNaN;
}

std::vector<ClassResult> Results::per_class() const {
  std::vector<ClassResult> out(classes.size());
  for (size_t t = 0; t < classes.size(); ++t)
    for (size_t g = 0; g < classes.size(); ++g) {
      out[t].samples += count(t, g);
      out[g].guessed += count(t, g);
      if (t == g) out[t].right = count(t, g);
    }
  return out;
}

std::vector<Results::Bin> Results::calibration(int bins) const {
  std::vector<Bin> out(static_cast<size_t>(bins));
  for (int b = 0; b < bins; ++b) {
    out[static_cast<size_t>(b)].from = static_cast<double>(b) / bins;
    out[static_cast<size_t>(b)].to = static_cast<double>(b + 1) / bins;
  }
  for (const Prediction& p : predictions) {
    if (p.truth < 0 || !std::isfinite(p.confidence)) continue;
    Bin& bin = out[static_cast<size_t>(std::clamp(static_cast<int>(p.confidence * bins), 0, bins - 1))];
    ++bin.samples;
    bin.confidence += p.confidence;
    bin.accuracy += p.guess == p.truth;
  }
  for (Bin& b : out)
    if (b.samples) b.confidence /= static_cast<double>(b.samples), b.accuracy /= static_cast<double>(b.samples);
  return out;
}

double Results::calibration_error(int bins) const {
  double sum = 0;
  int64_t all = 0;
  for (const Bin& b : calibration(bins)) {
    sum += static_cast<double>(b.samples) * std::fabs(b.confidence - b.accuracy);
    all += b.samples;
  }
  return all ? sum / static_cast<double>(all) : kNaN;
}

std::vector<size_t> Results::worst_first() const {
  std::vector<size_t> order(predictions.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return badness(predictions[a].loss) > badness(predictions[b].loss); });
  return order;
}

double Results::auroc() const {
  return task == "binary" && !rankings.empty() ? rankings[1].auroc : mean_auroc(rankings);
}
double Results::average_precision() const {
  return task == "binary" && !rankings.empty() ? rankings[1].average_precision : mean_average_precision(rankings);
}

std::string Results::why_unranked() const {
  if (!rankings.empty()) return {};
  if (task == "language") return "ROC and precision-recall curves are not drawn of the next token of a text.";
  if (!confusion.empty())
    return fmt::format("The test split has more than the {} shares of classes that are ranked.", kMostShares);
  if (task == "classification" || task == "segmentation")
    return fmt::format("More than {} classes are not told apart here.", kMostClasses);
  return "ROC and precision-recall curves are of classes; the task is " + task + ".";
}

std::string Results::why_unembedded() const {
  if (!embedding.module.empty()) return {};
  if (!predictions.empty() && predictions.front().truth < 0 && task != "regression")
    return "An embedding shows one point a sample; the task is " + task + ", with many targets in each.";
  return "The model has no layer with weights that reads one row of numbers a sample.";
}

Results results_of(TrainingSession& session, const RunInfo& run, const Progress& progress) {
  Results r;
  r.run = run.name;
  r.run_id = run.id;
  r.step = session.steps_done();
  r.task = session.task();
  r.data = session.share_test_data();
  Judge judge(r, session);
  std::optional<EmbeddingListener> listener;
  if (session.targets_per_sample() == 1) listener.emplace(session.model());
  r.evaluation = session.evaluate(progress, [&](const std::vector<int64_t>& rows, const Tensor& s, const Tensor& a) {
    judge.add(rows, s, a);
    if (listener) listener->take(static_cast<int64_t>(rows.size()));
  });
  judge.finish();
  if (listener) r.embedding = listener->finish();
  return r;
}

Results results_at(Project& project, const RunInfo& run, int64_t step, const Progress& replaying,
                   const Progress& evaluating) {
  return results_of(*replay_to(project, run.id, step, replaying), run, evaluating);
}

std::shared_ptr<const tracing::StepRecord> record_sample(Project& project, int64_t run, int64_t step, int64_t row,
                                                         const Progress& progress) {
  const auto session = replay_to(project, run, step, progress);
  const int64_t n = session->test_data().size();
  if (row < 0 || row >= n)
    throw Error::usage(fmt::format("the test split has no sample {}", row),
                       fmt::format("Samples go from 0 to {}.", n - 1));
  return tracing::record_sample(*session, project.run(run).name, row);
}

}  // namespace tenon::projects
