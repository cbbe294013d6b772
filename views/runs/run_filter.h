#pragma once
#include <memory>
#include <string>
#include <vector>

#include "views/runs/run_row.h"

namespace tenon::views {

/// Which runs are wanted, as a sentence: `lr > 0.001 and best.accuracy >= 0.9 and not name ~ cnn`.
///
/// A comparison is FIELD OPERATOR VALUE, joined by `and`, `or`, `not` and parentheses. Fields are name, status, steps,
/// total, seconds, created and error; a key of the recipe, or its end where that is the end of one key only (lr for
/// optimizer.lr); last.METRIC and best.METRIC, where test_ may be left out. Operators are = != < <= > >= and ~ (holds
/// these letters, of either case). A value with blanks in it stands in quotes. A status is written in English or as the
/// language of the window has it. A run that has no such field fits no
/// comparison with it, and fits its negation.
class RunFilter {
 public:
  /// Fits every run.
  RunFilter();
  /// Reads the words for runs with these fields. Throws Error (usage) that says where the words go wrong.
  RunFilter(const std::string& text, const RunFields& fields);
  ~RunFilter();
  RunFilter(RunFilter&&) noexcept;
  RunFilter& operator=(RunFilter&&) noexcept;

  bool fits(const RunRow& row) const;

  struct Node;

 private:
  std::unique_ptr<Node> root_;  ///< null: every run fits
};

}  // namespace tenon::views
