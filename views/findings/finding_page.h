#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tracing/analyses/finding.h"
#include "views/shared/table.h"

namespace tenon::tracing {
struct StepRecord;
}

namespace tenon::views {

/// A finding as a page: its sentence, its figures by name, and tables whose rows select what they are about.
struct FindingPage {
  struct Part {
    std::string title;
    Table table;
  };
  bool ok = true;  ///< false: what was asked for is not in the file, as the sentence says
  std::string sentence;
  std::vector<std::pair<std::string, std::string>> figures;
  std::vector<Part> tables;
};
/// What a page may select: of a document its events, of a recorded step (document 0) the ops that they are.
struct Subject {
  int document = 0;
  int64_t origin = 0;                                    ///< the trace's time where the document's axis begins
  std::shared_ptr<const tracing::StepRecord> step = {};  ///< of document 0
};
FindingPage make_page(const tracing::Finding& finding, const Subject& subject);

}  // namespace tenon::views
