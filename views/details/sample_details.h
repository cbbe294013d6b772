#pragma once
#include <cstdint>

#include "views/details/details_model.h"

namespace tenon::views {

/// How a sample of the test split was answered, and the file it comes from; nothing for a row that is not there.
void sample_details(Details& d, int64_t row_number, const projects::Results& r);

}  // namespace tenon::views
