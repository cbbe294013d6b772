#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "projects/query/query_table.h"

namespace tenon::views {

/// What may be meant by the word that ends at the cursor.
struct Completion {
  size_t begin = 0;  ///< of the word, in bytes of the text
  std::vector<std::string>
      words;           ///< the columns of the tables that the query names first, then tables, functions, SQL
  bool whole = false;  ///< the word is one of those that exist already
};
/// `cursor` counts bytes. Nothing within a text or comment, and nothing of an empty word unless it stands behind a dot.
Completion complete_query(projects::QueryKind kind, std::string_view sql, size_t cursor);

}  // namespace tenon::views
