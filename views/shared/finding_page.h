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

struct Document;

/// A finding as a page: its sentence, its figures by name, and tables whose rows select what they are about.
struct FindingPage {
  struct Part {
    std::string title;
    Table table;
    std::vector<Selection> others = {};  ///< of a comparison: what each row is in B, where it is in both
    /// Columns that a table cuts, as sentences and paths are: what they say of a row is told in whole beside it.
    std::vector<size_t> sentences = {};
    bool tells_first = false;  ///< of the first row, too, while none is chosen
    /// "Try: use a larger batch", a line for each sentence.
    std::string words(const Table::Row& row) const;
  };
  bool ok = true;  ///< false: what was asked for is not in the file, as the sentence says
  std::string sentence;
  std::vector<std::pair<std::string, std::string>> figures;
  std::vector<Part> tables;
};
/// What a page may select: of a document its events, of a recorded step (document 0) the ops that they are, of a
/// checkpoint (document 0) the modules of its tensors.
struct Subject {
  int document = 0;
  int64_t origin = 0;                                    ///< the trace's time where the document's axis begins
  std::shared_ptr<const tracing::StepRecord> step = {};  ///< of document 0
  const char* source = "findings";                       ///< the view whose page it is
  int64_t first_event = 0;                               ///< in the document's events, of what is analysed of it
  std::vector<int64_t> first_events = {};                ///< of each rank of a session
};
/// Of one of the ranks of a document of traces, or of its one trace.
Subject subject_of(const Document& document, size_t rank, const char* source = "findings");
FindingPage make_page(const tracing::Finding& finding, const Subject& subject);
/// What a sight is among the window's selections; kind none: nothing.
Selection selection_of(const tracing::Sight& sight, const Subject& subject);
/// Of a comparison: a row is what it is in A, or in B where it stands there alone.
FindingPage make_page(const tracing::Finding& finding, const Subject& a, const Subject& b);

}  // namespace tenon::views
