#pragma once
#include <cstdint>
#include <string>

#include "views/details/details_model.h"

namespace tenon::views {

// The details of a model file; those of what is not in it stay empty.
void model_file_details(Details& d, const Document& document);
void file_tensor_details(Details& d, const std::string& name, const Document& document);
void file_node_details(Details& d, int64_t node, const Document& document);

}  // namespace tenon::views
