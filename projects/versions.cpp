#include "projects/versions.h"

#include <sqlite3.h>

namespace tenon::projects {
std::vector<std::pair<std::string, std::string>> library_versions() { return {{"SQLite", sqlite3_libversion()}}; }
}  // namespace tenon::projects
