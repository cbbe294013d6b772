#pragma once
#include <functional>

#include "projects/query/query_base.h"
#include "views/shared/document.h"
#include "views/shared/table.h"

namespace tenon::views {

/// What rows of a result may lead to: events of a trace, what a project has, or what is in a memory snapshot or a model
/// file. By default nothing is there.
struct QuerySight {
  int document = Document::kProject;
  int64_t events = 0;              ///< of the trace; 0: it is none
  int64_t first_event = 0;         ///< of it in the document
  const Document* file = nullptr;  ///< the snapshot or model file; null: it is none
  int64_t shown_run = 0;           ///< a row with a run and a step leads to the run, and once that is shown to the step
  std::function<bool(int64_t run)> has_run = {};
  std::function<int64_t(const std::string& name)> run_named = {};  ///< 0: none
};

/// The rows of a result as a list shows them and files take them: every number exact; a head names the unit of its
/// column, and the tip says the number as people do. NULL is empty.
Table make_table(const projects::QueryResult& result, const QuerySight& sight = {});
/// "ns", "bytes"; empty for what has none.
const char* unit_word(const std::optional<tracing::Unit>& unit);

}  // namespace tenon::views
