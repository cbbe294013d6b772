#include "app/cli/window_module.h"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>

#include "core/module_file.h"
#include "core/version.h"

namespace tenon::app {
namespace {

[[noreturn]] void no_window(const std::string& why, const std::string& hint) {
  throw Error("there is no window: " + why, hint + " Every job but pictures can be done without it: tenon --help");
}

const WindowEntry& load_window() {
  const std::string file = module_file("window.so");
  std::error_code unreadable;
  if (!std::filesystem::exists(file, unreadable))
    no_window(file + " is not there",
              "It is installed beside the program. A build has it where qt6-base-dev, libqt6opengl6-dev, qt6-svg-dev, "
              "libimgui-dev and libfreetype-dev are installed.");
  // It stays until the process ends: Qt cannot be taken out again.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) no_window(dlerror(), "apt-get install libqt6widgets6 libqt6openglwidgets6 libqt6svg6 libfreetype6.");
  const auto* entry = static_cast<const WindowEntry*>(dlsym(library, kWindowEntry));
  if (!entry || std::strcmp(entry->version, TENON_VERSION) != 0)
    no_window(file + " belongs to another version of Tenon" + (entry ? " (" + std::string(entry->version) + ")" : ""),
              "Install the program and its window together; this is " TENON_VERSION ".");
  return *entry;
}

}  // namespace

const Window& window() {
  static const Window& loaded = load_window().window();
  return loaded;
}

}  // namespace tenon::app
