#pragma once
#include "tracing/analyses/finding.h"

namespace tenon::app {

/// Prints what an analysis found: the sentence, the figures and the tables for people; for programs one JSON object with "sentence", a key a
/// figure, and a key a table with its rows as objects. The exit status: 1 where the file did not hold what was asked for.
int show_finding(const tracing::Finding& finding, bool json);

}  // namespace tenon::app
