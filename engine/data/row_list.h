#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::data {

/// The rows that a text names: numbers and stretches with commas between them, "96, 120-130". Sorted, each once. Throws
/// Error (usage), which names `key`, for a text that is none.
std::vector<int64_t> parse_rows(const std::string& text, const std::string& key);
/// The inverse: stretches of three and more as such.
std::string rows_text(const std::vector<int64_t>& rows);

}  // namespace tenon::data
