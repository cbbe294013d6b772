#pragma once
#include <cstdint>
#include <string>

namespace tenon::data {

/// A table of 3,000 rows with numbers, words and a few missing values, and a class to foretell from them: something to
/// begin with.
std::string example_csv(uint64_t seed);

}  // namespace tenon::data
