#include "core/module_file.h"

#include <filesystem>

#include "core/error.h"

namespace tenon {

std::string module_file(const std::string& name) {
  std::error_code unreadable;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  if (program.empty()) throw Error("/proc does not say where the program is", "Mount /proc.");
  const auto beside = [&](const std::string& folder) {
    return (program.parent_path() / folder / name).lexically_normal();
  };
  const std::filesystem::path installed = beside(TENON_MODULES), built = beside("../lib/tenon");
  return std::filesystem::exists(installed, unreadable) || !std::filesystem::exists(built, unreadable)
             ? installed.string()
             : built.string();
}

}  // namespace tenon
