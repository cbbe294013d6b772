#include "views/shared/series.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::views {

Series::Summary Series::one(int64_t step, double v) {
  Summary s;
  s.first_step = s.last_step = step;
  if (std::isfinite(v)) {
    s.min = s.max = s.first = s.last = v;
    if (v > 0) s.least = v;
    s.finite = 1;
  } else {
    s.bad = 1;
  }
  return s;
}

void Series::add(Summary& to, const Summary& s) {
  if (to.finite + to.bad == 0) {
    to = s;
    return;
  }
  if (s.finite) {
    if (to.finite) {
      to.min = std::min(to.min, s.min);
      to.max = std::max(to.max, s.max);
      if (s.least > 0) to.least = to.least > 0 ? std::min(to.least, s.least) : s.least;
    } else {
      to.min = s.min;
      to.max = s.max;
      to.first = s.first;
      to.least = s.least;
    }
    to.last = s.last;
  }
  to.finite += s.finite;
  to.bad += s.bad;
  to.last_step = s.last_step;
}

void Series::append(int64_t step, double value, double seconds) {
  size_t i = steps_.size();
  const double before = i > 0 ? seconds_.back() : 0;
  seconds_.push_back(seconds > before ? seconds : before);  // also of one that is no number
  steps_.push_back(step);
  values_.push_back(value);
  Summary s = one(step, value);
  size_t width = kFan;
  for (size_t k = 0;; ++k, width *= kFan) {
    if (k == levels_.size()) {
      if (i + 1 < width) break;  // the level is begun once it is full of one block
      levels_.emplace_back();
      for (size_t a = 0; a <= i; a += width) {
        Summary block{};
        for (size_t p = a; p < std::min(a + width, i + 1); ++p) add(block, one(steps_[p], values_[p]));
        levels_[k].push_back(block);
      }
      continue;
    }
    if (i / width == levels_[k].size()) levels_[k].emplace_back();
    add(levels_[k][i / width], s);
  }
}

void Series::clear() {
  steps_.clear();
  values_.clear();
  seconds_.clear();
  levels_.clear();
}

void Series::truncate(int64_t step) {
  size_t keep = lower(step + 1);
  if (keep == steps_.size()) return;
  auto steps = std::move(steps_);
  auto values = std::move(values_), seconds = std::move(seconds_);
  clear();
  for (size_t i = 0; i < keep; ++i) append(steps[i], values[i], seconds[i]);
}

size_t Series::lower(int64_t step) const {
  return std::lower_bound(steps_.begin(), steps_.end(), step) - steps_.begin();
}

size_t Series::nearest(int64_t step) const {
  size_t i = lower(step);
  if (i == steps_.size()) return i - 1;
  if (i > 0 && step - steps_[i - 1] < steps_[i] - step) --i;
  return i;
}

/// Points [a, b), one by one.
void Series::add_points(Summary& to, size_t a, size_t b) const {
  if (a == b) return;
  if (to.finite + to.bad == 0) to.first_step = steps_[a];
  to.last_step = steps_[b - 1];
  for (size_t i = a; i < b; ++i) {
    const double v = values_[i];
    if (!std::isfinite(v)) {
      ++to.bad;
      continue;
    }
    if (to.finite++ == 0) to.min = to.max = to.first = v;
    to.min = std::min(to.min, v);
    to.max = std::max(to.max, v);
    if (v > 0 && (to.least == 0 || v < to.least)) to.least = v;
    to.last = v;
  }
}

Series::Summary Series::summary(size_t a, size_t b) const {
  Summary s{};
  b = std::min(b, steps_.size());
  while (a < b) {
    size_t width = 1, level = 0, next = kFan;
    while (level < levels_.size() && a % next == 0 && a + next <= b) {
      width = next;
      next *= kFan;
      ++level;
    }
    if (width == 1) {
      const size_t end = std::min(b, (a / kFan + 1) * kFan);
      add_points(s, a, end);
      a = end;
    } else {
      add(s, levels_[level - 1][a / width]);
      a += width;
    }
  }
  return s;
}

const Series& SmoothedSeries::of(const Series& raw, double weight) {
  if (weight != weight_ || line_.size() > raw.size()) {
    line_.clear();
    sum_ = norm_ = 0;
    weight_ = weight;
  }
  for (size_t i = line_.size(); i < raw.size(); ++i) {
    const double v = raw.value(i);
    if (std::isfinite(v)) {
      sum_ = weight * sum_ + (1 - weight) * v;
      norm_ = weight * norm_ + (1 - weight);
    }
    line_.append(raw.step(i), std::isfinite(v) ? sum_ / norm_ : std::numeric_limits<double>::quiet_NaN(),
                 raw.seconds(i));
  }
  return line_;
}

}  // namespace tenon::views
