#pragma once
#include <vector>

namespace tenon::views {

/// What a column of a table would like, in pixels.
struct ColumnNeed {
  int whole = 0;       ///< nothing in it is cut
  int least = 0;       ///< room for its head and a few letters: it is not made narrower
  bool uncut = false;  ///< half a number is another number, half a shape another shape
  int longest = 0;     ///< of very long words: what they take where there is room to spare
};

/// Widths for a table that has `room` pixels. Where they do not suffice words are cut: long ones to one width, then
/// short ones ("by name"), of which a cut leaves nothing, those of the last columns first; where even that does not
/// suffice the table scrolls. What is left goes to words that are very long, then to all columns in proportion, so that
/// no row has one wide gap to be read across; a table of numbers alone stays as it is.
std::vector<int> column_widths(const std::vector<ColumnNeed>& needs, int room);

}  // namespace tenon::views
