#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/data/dataset.h"

namespace tenon::app {

/// Those that say that something looks wrong.
std::vector<data::Remark> warnings_of(std::vector<data::Remark> remarks);
/// A line a remark; warnings say so. Empty where there are none.
std::string remarks_text(const std::vector<data::Remark>& remarks);
nlohmann::json remarks_json(const std::vector<data::Remark>& remarks);
/// {"file": ..., "place": ...}; null for a sample that was generated.
nlohmann::json source_json(const data::Source& source);

}  // namespace tenon::app
