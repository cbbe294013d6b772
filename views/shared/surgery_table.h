#pragma once
#include "engine/train/surgery.h"
#include "views/shared/table.h"

namespace tenon::views {

/// A row a tensor: what becomes of it. Without `all`, those that stay as they are go together into none.
Table surgery_table(const std::vector<SurgeryRow>& rows, bool all);

}  // namespace tenon::views
