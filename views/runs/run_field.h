#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "views/runs/run_row.h"

namespace tenon::views {

/// One thing that is known of a run: to filter by, to group by, to draw along an axis.
struct RunField {
  enum class Kind { name, status, steps, total, seconds, created, error, note, tags, recipe, last, best };
  Kind kind = Kind::name;
  std::string key;  ///< of the recipe, or the metric's name
  bool operator==(const RunField&) const = default;

  /// As a filter writes it: "steps", "optimizer.lr", "best.test_accuracy".
  std::string text() const;
  /// Of the metric; empty where it is none.
  const std::string& metric() const;
};

/// Nothing where the run has no such field. Of a run whose recipe was changed on the way it is the value at its end.
std::optional<RunValue> value_of(const RunField& field, const RunRow& row);

/// The words that name a field which is neither a key of the recipe nor a metric, with what they name.
const std::vector<std::pair<std::string, RunField::Kind>>& own_fields();

/// The field of these words. A key of the recipe may be named by its end where that is the end of one key only, a
/// metric of the test split without test_; a metric alone is its last value. Throws Error (usage): `"x", which no run
/// has`, with near names.
RunField field_named(const RunFields& fields, const std::string& text);

/// What these runs can be told apart by: the keys of recipes in which they differ.
std::vector<RunField> told_fields(const RunRows& rows);
/// Those of them in which runs differ that have the key: one that only some have follows from what those chose.
std::vector<RunField> varied_fields(const RunRows& rows);
/// The one of them to begin with: of numbers the one with the most different values.
std::optional<RunField> main_field(const RunRows& rows);
/// What most people ask for first has the least: of the test data, better where it is higher.
int result_rank(const std::string& metric);
/// What came of them: the best and last values of metrics that say how good a run is, those of a test first; then
/// steps and seconds.
std::vector<RunField> result_fields(const RunRows& rows);

}  // namespace tenon::views
