#include "engine/train/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/name_pattern.h"
#include "engine/train/metric.h"
#include "engine/train/recipe.h"
#include "engine/train/session.h"

namespace tenon {
namespace {

constexpr const char* kWatchesKey = "watches";

Registry<WatchMeasureDef>& watch_measure_registry() {
  static auto& all = *new Registry<WatchMeasureDef>("measure");
  return all;
}

Recipe with_watch_texts(const Recipe& recipe, const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& t : texts) all += (all.empty() ? "" : "; ") + t;
  Recipe r = recipe;
  r.set_value(kWatchesKey, all);
  return r;
}

/// Empty for a text that is no watch.
std::string condition_of(const std::string& text) {
  try {
    return parse_watch(text).condition;
  } catch (const Error&) {
    return {};
  }
}

std::string quantity_text(const Watch& w) {
  if (w.subject == WatchSubject::memory) return "the growth of memory that goes on, in bytes a step,";
  if (!w.measure) return w.of;
  if (w.subject == WatchSubject::metric) return fmt::format("the {} of {}", w.measure->name, w.of);
  for (const WatchSubjectText& s : watch_subjects())
    if (s.subject == w.subject) return fmt::format("the {} of the {} of {}", w.measure->help, s.help, w.of);
  return w.of;
}

std::string relation_text(const Watch& w) {
  using R = Watch::Relation;
  const std::string bound = w.median_of.empty() ? fmt::format("{:g}", w.low)
                                                : fmt::format("{}the median of the last {} values of {}",
                                                              w.low == 1 ? "" : fmt::format("{:g} times ", w.low),
                                                              w.median_over, w.median_of);
  switch (w.relation) {
    case R::above:
      return "above " + bound;
    case R::at_least:
      return "at least " + bound;
    case R::below:
      return "below " + bound;
    case R::at_most:
      return "at most " + bound;
    case R::outside:
      return fmt::format("outside {:g} to {:g}", w.low, w.high);
    case R::inside:
      return fmt::format("within {:g} to {:g}", w.low, w.high);
  }
  return bound;
}

struct ActionText {
  const char *name, *help;
};
constexpr ActionText kActions[] = {
    {"count", "is counted"},
    {"mark", "is marked on the curves"},
    {"checkpoint", "is marked, and the state of the step is kept"},
    {"pause", "is marked, and the run pauses"},
    {"stop", "is marked, and the run stops"},
};

}  // namespace

bool register_watch_measure(WatchMeasureDef def, Place place) {
  return watch_measure_registry().add(std::move(def), place);
}
const Registry<WatchMeasureDef>& watch_measures() { return watch_measure_registry(); }

const std::vector<WatchSubjectText>& watch_subjects() {
  static const std::vector<WatchSubjectText> all = {
      {"grad", "gradient", WatchSubject::gradient},
      {"weight", "weights", WatchSubject::weight},
      {"update", "update", WatchSubject::update},
      {"activation", "output", WatchSubject::activation},
  };
  return all;
}

const char* watch_action_name(WatchAction a) { return kActions[static_cast<int>(a)].name; }
const char* watch_action_help(WatchAction a) { return kActions[static_cast<int>(a)].help; }

std::string WatchHit::text() const {
  return fmt::format("{} at step {}: {} is {:.6g} (bound {:.6g})", watch, step, at, value, bound);
}

bool Watch::of_evaluations() const { return only_metrics() && of.starts_with("test_"); }

double Watch::of_metric(double v) const {
  if (!measure) return v;
  Moments m;
  m.count = 1;
  m.nans = std::isnan(v);
  m.infinite = std::isinf(v);
  m.zeros = v == 0;
  m.saturated = std::fabs(v) >= Moments::kSaturated;
  if (!m.nans) m.low = m.high = v;
  if (m.finite()) m.sum = v, m.squares = v * v;
  return measure->of(m);
}

bool Watch::holds(double value, double median) const {
  const double one = median_of.empty() ? low : low * median;
  switch (relation) {
    case Relation::above:
      return value > one;
    case Relation::at_least:
      return value >= one;
    case Relation::below:
      return value < one;
    case Relation::at_most:
      return value <= one;
    case Relation::outside:
      return value < low || value > high;
    case Relation::inside:
      return value >= low && value <= high;
  }
  return false;
}

double Watch::bound(double value, double median) const {
  if (relation == Relation::outside || relation == Relation::inside)
    return std::fabs(value - low) < std::fabs(value - high) ? low : high;
  return median_of.empty() ? low : low * median;
}

std::vector<std::pair<std::string, double>> step_metrics(const StepResult& r, bool scaled) {
  std::vector<std::pair<std::string, double>> all;
  if (r.samples > 0) all.emplace_back("loss", r.loss);
  if (!std::isnan(r.teacher_loss)) all.emplace_back("teacher_loss", r.teacher_loss);
  if (!std::isnan(r.feature_loss)) all.emplace_back("feature_loss", r.feature_loss);
  all.emplace_back("lr", r.lr);
  if (r.accuracy >= 0) all.emplace_back("train_accuracy", r.accuracy);
  // A gradient that overflowed only because it was scaled is no fault of the model.
  if (r.overflow.empty() && r.samples > 0) all.emplace_back("grad_norm", r.grad_norm);
  if (scaled) all.emplace_back("loss_scale", r.loss_scale);
  return all;
}

std::vector<std::pair<std::string, double>> evaluation_metrics(const Evaluation& e) {
  std::vector<std::pair<std::string, double>> all = {{"test_loss", e.loss}};
  for (const Judgement& j : e.judgements) all.emplace_back("test_" + j.name, j.value);
  return all;
}

std::vector<std::string> watched_metrics() {
  std::vector<std::string> all;
  StepResult with_all;
  with_all.accuracy = 0;
  with_all.samples = 1;
  with_all.teacher_loss = with_all.feature_loss = 0;
  for (const auto& [name, value] : step_metrics(with_all, true)) all.push_back(name);
  all.emplace_back("test_loss");
  for (const MetricDef& m : metrics()) all.push_back("test_" + m.name);
  return all;
}

std::vector<std::string> watched_numbers() {
  std::vector<std::string> all = watched_metrics();
  all.emplace_back(kMemoryGrowth);
  return all;
}

std::vector<WatchRow> watch_rows(const Recipe& recipe) {
  std::vector<WatchRow> rows;
  for (const std::string& text : split_list(recipe.text(kWatchesKey))) {
    WatchRow row;
    row.text = text;
    try {
      const Watch w = parse_watch(text);
      row.condition = w.condition;
      row.action = w.action;
      row.says = fmt::format("where {} is {}{}", quantity_text(w), relation_text(w),
                             w.every > 1 ? fmt::format(", looked at every {} steps", w.every) : "");
      for (const WatchRow& other : rows)
        if (condition_of(other.text) == w.condition) row.fault = "it is there twice";
    } catch (const Error& e) {
      row.fault = e.message() + (e.hint().empty() ? "" : "; " + e.hint());
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Recipe with_watch(const Recipe& recipe, const std::string& text) {
  return with_watch_at(recipe, watch_rows(recipe).size(), text);
}

Recipe with_watch_at(const Recipe& recipe, size_t place, const std::string& text) {
  std::vector<std::string> texts = split_list(recipe.text(kWatchesKey));
  place = std::min(place, texts.size());
  if (place < texts.size()) texts.erase(texts.begin() + static_cast<int64_t>(place));
  for (const Watch& w : parse_watches(text))
    for (const std::string& other : texts)
      if (condition_of(other) == w.condition)
        throw Error::usage(fmt::format("watches: \"{}\" is there already", w.condition), "change that one");
  const std::vector<std::string> given = split_list(text);
  texts.insert(texts.begin() + static_cast<int64_t>(place), given.begin(), given.end());
  return with_watch_texts(recipe, texts);
}

std::vector<std::pair<std::string, std::string>> watch_examples() {
  return {
      {"loss > 3 * median(loss, 50): pause", "a loss that jumps"},
      {"max_abs(grad(*)) > 1e3: mark", "a gradient that explodes"},
      {"ratio(update(*)) outside 1e-5..1e-1 every 10: count", "updates too small or too large for their weights"},
      {"dead(activation(*)) > 0.9 every 10: count", "a layer nearly all of whose outputs are 0"},
      {"nonfinite(grad(*)) > 0: checkpoint", "a gradient that overflows"},
      {"test_accuracy > 0.9: checkpoint", "a goal that was come to"},
      {"memory_growth > 1e6: pause", "memory that is never given back"},
  };
}

}  // namespace tenon
