#pragma once
#include <string>

#include "projects/element_history.h"
#include "views/shared/table.h"

namespace tenon::views {

/// A row a step, the last one first; it leads there.
Table history_table(const projects::ElementHistory& h);
/// "fc1.weight[3, 4] of cnn-01, steps 101 to 120: written by adam_step"
std::string history_text(const projects::ElementHistory& h);

}  // namespace tenon::views
