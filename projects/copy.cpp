#include "projects/copy.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/disk.h"
#include "core/error.h"
#include "projects/database.h"
#include "projects/new_file.h"
#include "projects/schema.h"

namespace tenon::projects {

int64_t copy_project(const std::string& from, const std::string& to, bool replaces, const Progress& progress) {
  std::error_code code;
  if (std::filesystem::equivalent(from, to, code))
    throw Error(fmt::format("{} is the project itself: a copy needs another name", to));
  Database source(from, Database::Access::read_only);
  check_schema(source);
  NewFile file(to, replaces);
  int64_t bytes = 0;
  try {
    Database made(file.half(), Database::Access::create);
    bytes = source.copy_into(made, progress);
    made.run("UPDATE runs SET owner = ''");  // the process that trains, if one does, trains into the original
    check_schema(made);
  } catch (const Error& e) {
    if (e.kind() != Error::Kind::no_space) throw file.named(e);
    throw no_space(ENOSPC, to, "nothing was copied",
                   space_hint(to, "a copy needs about", static_cast<uint64_t>(std::filesystem::file_size(from, code))));
  }
  file.put();
  return bytes;
}

}  // namespace tenon::projects
