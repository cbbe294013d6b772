#pragma once
#include <vector>

#include "engine/formats/onnx/prepared.h"
#include "tracing/analyses/finding.h"

namespace tenon::tracing {

/// What a prepared model (Note [Nodes fused]) comes to: a row for each node that runs, in their order, with the nodes
/// of the file that it is and the median of its times over runs on `inputs` that take about `seconds`, two at least.
/// Throws what a run throws.
Finding model_plan_page(const formats::OnnxModel& given, const formats::PreparedModel& prepared,
                        const std::vector<formats::OnnxItem>& inputs, double seconds);

}  // namespace tenon::tracing
