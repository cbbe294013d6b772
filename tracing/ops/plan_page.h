#pragma once
#include <string>
#include <vector>

#include "tracing/analyses/finding.h"

namespace tenon {
class StepPlan;
}

namespace tenon::tracing {

/// What a session's plan does and where its values lie. `plan` may be null: then `told`, TrainingSession::planned(),
/// says why there is none.
Finding plan_page(const StepPlan* plan, const std::vector<std::string>& told);

}  // namespace tenon::tracing
