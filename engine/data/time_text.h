#pragma once
#include <cstdint>
#include <string_view>

namespace tenon::data {

/// What a text says of a time. Times of different kinds have no order among each other.
struct TimeText {
  enum class Kind : uint8_t { none, number, date };
  Kind kind = Kind::none;
  double value = 0;  ///< the number as it stands; of a date the seconds since 1970, without a zone taken as UTC
};
/// Reads a number that grows with time (a year, a step, seconds, 20240301), or a date: 2024-03-01, 2024/03/01, 2024-03
/// and 01.03.2024, with 12:30, 12:30:05 or 12:30:05.25 behind a blank or T, and Z or +01:00 behind that. Where day and
/// month could be taken for each other (03/01/2024) there is none.
TimeText parse_time(std::string_view text);

}  // namespace tenon::data
