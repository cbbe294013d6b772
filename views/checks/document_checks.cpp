#include "views/checks/document_checks.h"

#include "core/error.h"
#include "tracing/checks/snapshot_checks.h"
#include "tracing/checks/trace_checks.h"

namespace tenon::views {

std::vector<tracing::CheckResult> check_document(const Document& d,
                                                 std::optional<tracing::CheckedModelFile::Beside> beside,
                                                 const std::function<bool(uint64_t done, uint64_t total)>& progress) {
  switch (d.kind) {
    case Document::Kind::trace:
      return tracing::check_trace(d.part().trace);
    case Document::Kind::snapshot:
      return tracing::check_snapshot(d.snapshot);
    case Document::Kind::model:
      return tracing::check_model_file(tracing::CheckedModelFile(d.model, std::move(beside), progress));
    case Document::Kind::project:
      break;
  }
  throw Error("a project is checked with its data and runs");
}

}  // namespace tenon::views
