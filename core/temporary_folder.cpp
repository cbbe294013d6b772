#include "core/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"

namespace tenon {

TemporaryFolder::TemporaryFolder(const std::string& name) {
  std::error_code code;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(code);
  if (code) throw Error("there is no folder for temporary files: " + code.message(), "Set TMPDIR to one.");
  std::string pattern = (parent / (name + "-XXXXXX")).string();
  if (!mkdtemp(pattern.data()))
    throw Error(parent.string() + ": no folder can be made there: " + std::strerror(errno), "Set TMPDIR to another.");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tenon
