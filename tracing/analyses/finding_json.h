#pragma once
#include <nlohmann/json_fwd.hpp>

#include "tracing/analyses/finding.h"

namespace tenon::tracing {

/// A number JSON can hold, or its name: "nan", "inf", "-inf".
nlohmann::json json_number(double v);
/// An object with "sentence", a key a figure, and a key a table with its rows as objects.
nlohmann::json finding_json(const Finding& finding);

}  // namespace tenon::tracing
