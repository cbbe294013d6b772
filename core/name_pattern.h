#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Whether a pattern, in which a star stands for any text, is the whole of `text`. `stars` receives what each star
/// stands for: the shortest text that fits, but for the last one.
bool fits_pattern(std::string_view pattern, std::string_view text, std::vector<std::string_view>* stars = nullptr);

/// The parts of a list whose parts are separated by ';', without the blanks around them; empty ones are left out.
std::vector<std::string> split_list(std::string_view text);

}  // namespace tenon
