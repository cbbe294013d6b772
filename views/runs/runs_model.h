#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "projects/run_driver.h"
#include "views/runs/run_field.h"
#include "views/runs/run_filter.h"
#include "views/runs/run_row.h"
#include "views/shared/table.h"

namespace tenon::views {

/// Runs beside each other: what they were told where they differ, and what came of it. The window's view and
/// `tenon runs` show the same table.
class RunsModel {
 public:
  void set_rows(RunRows rows);
  /// Of the run that trains: its row follows before the file is read again.
  void set_status(const projects::RunStatus& status);
  /// False where the words are wrong: the last filter that was right stays, and why() says what is wrong.
  bool set_filter(const std::string& text);
  const std::string& why() const { return why_; }
  /// Runs with one value of a field in common make one row; nothing: every run is a row.
  void set_group(std::optional<RunField> group) { group_ = std::move(group); }
  const std::optional<RunField>& group() const { return group_; }
  /// The runs whose curves stand together, in the order they were picked.
  void set_picked(const std::vector<int64_t>& runs) { picked_ = runs; }
  /// The run that others are compared with: it stands first, and each metric says by how much its best is another. 0:
  /// none.
  void set_baseline(int64_t run) { baseline_ = run; }

  /// By how much the best of a metric is another than the baseline's; NaN where one of them has none.
  double beside_baseline(const std::string& metric, const RunRow& run) const;

  const RunRows& rows() const { return rows_; }
  const RunFields& fields() const { return fields_; }
  /// Those that fit the filter, the newest first.
  const RunRows& shown() const;
  /// One row a run of shown(), and one of the baseline whatever the filter: name, status, the best of the result that
  /// most people ask for first, steps and time, of branches the parent and its step, the recipe's keys in which they
  /// differ, the metrics' last and best values, when it was begun. Grouped: group_table() of them.
  Table table() const;

 private:
  /// What stands in the cells of a run, whatever the columns: worked out once, for a filter is typed letter by letter.
  struct Cells {
    Table::Cell name, status, steps, time, parent, tags, begun;
    struct Told {
      Table::Cell cell;
      bool there = false, number = false;
    };
    struct Metric {
      Table::Cell last, best;
      bool there = false;
    };
    std::vector<Told> recipe;          ///< of differing_
    std::vector<Metric> metrics;       ///< of judged_
    std::shared_ptr<const RunRow> of;  ///< keeps the address, which is the key
  };
  /// Finds what the cells of all rows are of.
  void find_columns();
  Cells make_cells(const std::shared_ptr<const RunRow>& row) const;
  const RunRow* baseline_row() const;
  /// shown(), with the baseline in front.
  RunRows listed() const;
  const Cells& cells_of(const std::shared_ptr<const RunRow>& row) const;

  RunRows rows_;
  mutable std::optional<RunRows> shown_;  ///< found once for a filter: commands ask for them again and again
  mutable std::unordered_map<const RunRow*, Cells> cells_;
  RunFields fields_;
  std::vector<std::string> differing_;  ///< keys in which any of the rows differ: some of them differ in fewer
  std::vector<std::string> judged_;     ///< metrics of any of the rows that say how good a run is
  std::vector<int64_t> picked_;
  int64_t baseline_ = 0;
  std::string text_, why_;
  RunFilter filter_;
  std::optional<RunField> group_;
};

}  // namespace tenon::views
