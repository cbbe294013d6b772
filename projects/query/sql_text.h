#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Reading the text of a query as far as completion and messages need it; SQLite alone says what it means.
namespace tenon::projects {

/// The words of a query that may name tables and columns: outside of texts and comments, in lower case, without quotes.
std::vector<std::string> sql_names(std::string_view sql);
/// The words of SQL that a query is made of, in capitals: "SELECT".
const std::vector<std::string>& sql_keywords();
/// The functions that a query may call.
const std::vector<std::string>& sql_functions();
/// True where the place lies in a text or a comment.
bool in_sql_text(std::string_view sql, size_t place);
/// "line 2, character 7", both from 1, of the byte at `place`.
std::string sql_place(std::string_view sql, size_t place);

}  // namespace tenon::projects
