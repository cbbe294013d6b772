#pragma once
#include <string>
#include <string_view>

namespace tenon::data {

/// How characters of a text file are written. latin1 stands for Windows-1252, its superset in the C1 range.
enum class Encoding : uint8_t { utf8, latin1, utf16 };
/// "UTF-8", "Latin-1", "UTF-16".
const char* name(Encoding e);

/// UTF-16 where the text begins with its byte order mark, UTF-8 where it is that, else Latin-1.
Encoding find_encoding(std::string_view bytes);
/// The text as UTF-8, without a byte order mark. What no character stands for becomes U+FFFD. A UTF-16 text without a
/// mark is little-endian.
std::string to_utf8(std::string_view bytes, Encoding from);

}  // namespace tenon::data
