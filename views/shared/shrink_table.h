#pragma once
#include "engine/model/shrink.h"
#include "views/shared/table.h"

namespace tenon::views {

/// A row a layer with parameters: what it has before and after channels went.
Table shrink_table(const Shrunk& small);

}  // namespace tenon::views
