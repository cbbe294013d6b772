#pragma once
#include <string>

#include "projects/quantize.h"
#include "projects/quantize_plan.h"
#include "views/shared/table.h"

namespace tenon::views {

/// A row a layer with weights, the most sensitive first; a row selects its layer.
Table quantization_table(const projects::QuantizeReport& report);
/// A row a point, f32 first; * marks the front.
Table plan_table(const projects::QuantizePlan& plan);
/// "0.412 ms"
std::string sample_time_text(double ms);
/// "42.1 dB"; "exact" where nothing differs.
std::string decibels_text(double db);

}  // namespace tenon::views
