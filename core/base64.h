#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

/// RFC 4648, with padding and without line breaks.
std::string to_base64(std::string_view bytes);
/// Nothing where the text is none.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace tenon
