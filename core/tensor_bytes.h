#pragma once
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace tenon {

/// The bytes of a tensor's elements in logical (row-major) order, whatever its strides are: its own memory where that
/// is already so, otherwise gathered into `copy`. Valid while both live.
std::string_view logical_bytes(const Tensor& t, std::vector<char>& copy);

}  // namespace tenon
