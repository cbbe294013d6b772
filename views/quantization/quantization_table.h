#pragma once
#include <string>

#include "projects/quantize.h"
#include "views/shared/table.h"

namespace tenon::views {

/// A row a layer with weights, the most sensitive first; a row selects its layer.
Table quantization_table(const projects::QuantizeReport& report);
/// "42.1 dB"; "exact" where nothing differs.
std::string decibels_text(double db);

}  // namespace tenon::views
