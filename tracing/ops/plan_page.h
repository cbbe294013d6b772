#pragma once
#include "tracing/analyses/finding.h"

namespace tenon::tracing {

struct SeenPlan;

/// What a session's plan does and where its values lie, a row for each kernel in their order; of one that has none why
/// not.
Finding plan_page(const SeenPlan& plan);

}  // namespace tenon::tracing
