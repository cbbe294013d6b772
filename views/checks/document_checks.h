#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "tracing/checks/model_file_checks.h"
#include "views/shared/document.h"

namespace tenon::views {

/// The checks of what a document is: a trace (of a session the rank that is chosen), a snapshot, a file of a model or
/// of weights, which may be held against the model that it is meant for. `progress` is told bytes that were read;
/// returning false throws Error "cancelled".
std::vector<tracing::CheckResult> check_document(const Document& document,
                                                 std::optional<tracing::CheckedModelFile::Beside> beside,
                                                 const std::function<bool(uint64_t done, uint64_t total)>& progress);

}  // namespace tenon::views
