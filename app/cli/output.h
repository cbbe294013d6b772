#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "projects/run_driver.h"
#include "projects/time_travel.h"
#include "tracing/analyses/finding.h"
#include "tracing/analyses/finding_json.h"
#include "views/shared/table.h"

namespace tenon::app {

/// Standard output. Throws Error when it cannot be written (a full disk behind a redirection).
void print(const std::string& text);
/// One JSON object on a line of its own; NaN and infinities become "nan", "inf", "-inf".
void print_json(const nlohmann::json& j);
using tracing::json_number;

/// A view's table as rows for table(), its head in capitals; which columns are aligned to the right.
std::vector<std::vector<std::string>> rows_of(const views::Table& shown, std::vector<bool>& right);
/// Columns aligned to their widest cell; the first row is the head. `right[i]` aligns column i to the right.
std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right = {});

/// A view's table on standard output.
void print_table(const views::Table& shown);

/// Names of kernels run to hundreds of characters: the beginning of a text, as much as a line of a table shows.
std::string shortened(const std::string& text);

/// "1.2 MiB", "34 s", "1:02:03", "12,345": bytes and counts as every finding writes them.
using tracing::bytes_text;
using tracing::count_text;
std::string duration_text(double seconds);
std::string value_text(double v);

/// A bar on standard error while that is a terminal; nothing otherwise. Goes away when done.
class Bar {
 public:
  explicit Bar(std::string what);
  ~Bar();
  Bar(const Bar&) = delete;
  static bool terminal();
  void show(int64_t done, int64_t total, const std::string& tail = {});
  void clear();
  /// For long calls: shows where they are, and cancels them on Ctrl-C.
  projects::Progress progress();

 private:
  std::string what_;
  int64_t last_ns_ = 0;
  bool shown_ = false;
};

}  // namespace tenon::app
