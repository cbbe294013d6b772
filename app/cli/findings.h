#pragma once
#include <nlohmann/json_fwd.hpp>

#include "tracing/analyses/finding.h"

namespace tenon::app {

/// An object with "sentence", a key a figure, and a key a table with its rows as objects.
nlohmann::json finding_json(const tracing::Finding& finding);
/// Prints what an analysis found: the sentence, the figures and the tables for people; for programs the
/// object above. The exit status: 1 where the file did not hold what was asked for.
int show_finding(const tracing::Finding& finding, bool json);

}  // namespace tenon::app
