#include "engine/data/survey.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "core/error.h"
#include "core/sha256.h"

namespace tenon::data {
namespace {

/// Sums of values in the order they come; one sample after the other, so that no thread count changes them.
struct Sums {
  Survey::Part& part;
  int64_t finite = 0;
  double mean = 0, squares = 0;  // Welford, Technometrics 4 (1962): squares of distances from the mean

  void add(double v) {
    ++part.values;
    if (!std::isfinite(v)) {
      ++part.not_finite;
      return;
    }
    if (finite == 0) part.min = part.max = v;
    part.min = std::min(part.min, v);
    part.max = std::max(part.max, v);
    const double before = v - mean;
    mean += before / static_cast<double>(++finite);
    squares += before * (v - mean);
  }
  void finish() {
    part.mean = mean;
    part.deviation = finite > 0 ? std::sqrt(squares / static_cast<double>(finite)) : 0;
  }
};

/// The first 16 bytes of a SHA-256: samples that share them are taken for equal.
std::string print_of(const char* bytes, size_t n) {
  Sha256 h;
  h.update(bytes, n);
  const auto all = h.finish();
  return {reinterpret_cast<const char*>(all.data()), 16};
}

template <class F>
void each_input(const Batch& b, int64_t i, const F& f) {
  const int64_t width = b.x.numel() / b.x.size(0);
  if (b.x.dtype() == DType::f32)
    for (const float *p = b.x.data<float>() + i * width, *end = p + width; p < end; ++p) f(static_cast<double>(*p));
  else if (b.x.dtype() == DType::i64)
    for (const int64_t *p = b.x.data<int64_t>() + i * width, *end = p + width; p < end; ++p) f(static_cast<double>(*p));
}

class Surveyor {
 public:
  Surveyor(const Split& split, const SurveyProgress& progress) : split_(split), progress_(progress) {
    total_ = split.train->size() + split.test->size();
    survey_.remarks = split.remarks;
    bad_.text = "samples hold values that are no finite number (nan, inf)";
    doubled_.text = "samples of the training set are there more than once";
    torn_.text = "samples of the training set are equal, and their targets are not";
    leaked_.text = "samples of the test split are in the training set too: what they measure is memory";
    bad_.id = "not_finite", doubled_.id = "duplicates", torn_.id = "conflicts", leaked_.id = "leaks";
    for (Remark* r : {&bad_, &doubled_, &torn_, &leaked_}) r->kind = Remark::Kind::warning;
  }

  Survey run() {
    look(*split_.train, survey_.train, true);
    look(*split_.test, survey_.test, false);
    survey_.duplicates = doubled_.count;
    survey_.conflicts = torn_.count;
    survey_.leaks = leaked_.count;
    for (Remark* r : {&bad_, &torn_, &doubled_, &leaked_}) {
      // What the opening named already is not named twice.
      const bool told = std::any_of(split_.remarks.begin(), split_.remarks.end(),
                                    [&](const Remark& other) { return other.id == r->id; });
      if (r->count == 0 || told) continue;
      r->text = std::to_string(r->count) + " " + r->text;
      survey_.remarks.push_back(std::move(*r));
    }
    return std::move(survey_);
  }

 private:
  static constexpr int64_t kRows = 64;

  void look(const Dataset& set, Survey::Part& part, bool train) {
    part.samples = set.size();
    Sums sums{part};
    for (int64_t at = 0; at < set.size(); at += kRows) {
      std::vector<int64_t> rows(static_cast<size_t>(std::min(kRows, set.size() - at)));
      std::iota(rows.begin(), rows.end(), at);
      const Batch b = fetch(set, rows);
      const size_t x = b.x.nbytes() / rows.size(), y = b.y.nbytes() / rows.size();
      for (size_t i = 0; i < rows.size(); ++i) {
        const int64_t before = part.not_finite;
        each_input(b, static_cast<int64_t>(i), [&](double v) { sums.add(v); });
        if (part.not_finite > before) bad_.add(source(set, rows[i], train));
        compare(set, rows[i], train, static_cast<const char*>(b.x.raw()) + i * x, x,
                static_cast<const char*>(b.y.raw()) + i * y, y);
      }
      done_ += static_cast<int64_t>(rows.size());
      if (progress_ && !progress_(done_, total_)) throw Error("cancelled");
    }
    sums.finish();
  }

  /// A place even for a sample that was generated.
  static Source source(const Dataset& set, int64_t row, bool train) {
    Source s = set.source(row);
    if (s.file.empty() && s.place.empty())
      s.place = (train ? "training sample " : "test sample ") + std::to_string(row);
    return s;
  }

  void compare(const Dataset& set, int64_t row, bool train, const char* x, size_t x_bytes, const char* y,
               size_t y_bytes) {
    const std::string input = print_of(x, x_bytes);
    if (!train) {
      if (seen_.count(input)) leaked_.add(source(set, row, train));
      return;
    }
    const std::string target = print_of(y, y_bytes);
    const auto [at, fresh] = seen_.try_emplace(input, target);
    if (fresh) return;
    doubled_.add(source(set, row, train));
    if (at->second != target) torn_.add(source(set, row, train));
  }

  const Split& split_;
  const SurveyProgress& progress_;
  Survey survey_;
  Remark bad_, doubled_, torn_, leaked_;
  std::unordered_map<std::string, std::string> seen_;  ///< prints of the training set's inputs, with their targets'
  int64_t done_ = 0, total_ = 0;
};

}  // namespace

Survey survey(const Split& split, const SurveyProgress& progress) { return Surveyor(split, progress).run(); }

}  // namespace tenon::data
