#include "core/plugin.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "core/error.h"
#include "core/mapped_file.h"

namespace tenon {
namespace {

constexpr char kMagic[] = "tenon plug-in 1";
constexpr char kSection[] = ".tenon_plugin";

/// A structure at a place of a file; nothing where it does not lie within.
template <class T>
std::optional<T> at(std::string_view file, uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return {};
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

/// The bytes of a section of a shared library; empty where it is none, or has no such section.
std::string_view section_of(std::string_view file, std::string_view wanted) {
  const auto head = at<Elf64_Ehdr>(file, 0);
  if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64) return {};
  auto section = [&](uint64_t i) { return at<Elf64_Shdr>(file, head->e_shoff + i * sizeof(Elf64_Shdr)); };
  const auto names = section(head->e_shstrndx);
  for (uint64_t i = 0; names && i < head->e_shnum; ++i) {
    const auto s = section(i);
    if (!s) return {};
    const uint64_t name = names->sh_offset + s->sh_name;
    if (name > file.size() || !file.substr(name).starts_with(wanted) || file.size() == name + wanted.size() ||
        file[name + wanted.size()] != 0)
      continue;
    if (s->sh_offset > file.size()) return {};
    return file.substr(s->sh_offset, s->sh_size);
  }
  return {};
}

/// What the file says of itself, read without running any of it; nothing where it is no plug-in.
std::optional<PluginRecord> record_of(std::string_view file) {
  auto record = at<PluginRecord>(section_of(file, kSection), 0);
  if (!record || std::memcmp(record->magic, kMagic, sizeof kMagic) != 0) return {};
  record->version[sizeof record->version - 1] = record->name[sizeof record->name - 1] = 0;
  return record;
}

using LoadFunction = void (*)();
LoadFunction load_function(void* library) {
  return reinterpret_cast<LoadFunction>(dlsym(library, "tenon_plugin_load"));
}

/// Note [Plug-ins are tried first]
/// What a static object of a library throws cannot be caught: it passes through the dynamic linker, and the process
/// ends. So does one that crashes. Therefore a process of its own loads the plug-in first, and what ends that one is
/// told and not loaded here. Exceptions of the body of TENON_PLUGIN are no such case.
constexpr int kThrew = 3, kSecondsToLoad = 60;
int g_words = -1;  ///< the trial's way to say what it died of

[[noreturn]] void tell_and_leave() {
  std::string words = "something that says nothing of itself was thrown";
  try {
    if (std::current_exception()) words = caught_error().message();
  } catch (...) {
  }
  [[maybe_unused]] const auto written = write(g_words, words.data(), std::min<size_t>(words.size(), 4000));
  _exit(kThrew);
}

[[noreturn]] void try_to_load(const std::string& path) {
  std::set_terminate(tell_and_leave);
  alarm(kSecondsToLoad);
  if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
    if (LoadFunction load = load_function(library)) {
      try {
        load();
      } catch (...) {
      }
    }
  _exit(0);
}

/// What ends a process that loads the plug-in; empty where nothing does.
std::string death_of(const std::string& path) {
  int ends[2];
  if (pipe(ends) != 0) throw Error("no pipe can be made to try it: " + std::string(std::strerror(errno)));
  const pid_t child = fork();
  if (child == 0) {
    g_words = ends[1];
    close(ends[0]);
    if (const int nowhere = open("/dev/null", O_WRONLY); nowhere >= 0) dup2(nowhere, 1), dup2(nowhere, 2);
    try_to_load(path);
  }
  close(ends[1]);
  std::string words;
  char part[512];
  for (ssize_t n = 0; (n = read(ends[0], part, sizeof part)) > 0 || (n < 0 && errno == EINTR);)
    if (n > 0) words.append(part, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  if (child < 0) throw Error("no process can be started to try it: " + std::string(std::strerror(errno)));
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status))
    return WTERMSIG(status) == SIGALRM ? "it takes longer than a minute"
                                       : "it ends the process (" + std::string(strsignal(WTERMSIG(status))) + ")";
  if (WEXITSTATUS(status) == kThrew) return words;
  return WEXITSTATUS(status) == 0 ? "" : "it ends the process with status " + std::to_string(WEXITSTATUS(status));
}

struct Loaded {
  Plugin plugin;
  std::unique_ptr<RegistryScope> scope;
};
/// Of one thread at a time; never destroyed, as the registries.
struct Loader {
  std::mutex mutex;
  std::vector<Loaded> loaded;
  std::vector<void*> refused;
};
Loader& loader() {
  static auto& one = *new Loader;
  return one;
}

}  // namespace

std::vector<Plugin> plugins() {
  Loader& l = loader();
  std::lock_guard lock(l.mutex);
  std::vector<Plugin> all;
  for (const Loaded& p : l.loaded) all.push_back(p.plugin);
  return all;
}

Plugin load_plugin(const std::string& file) {
  std::error_code missing;
  const std::string path = std::filesystem::canonical(file, missing).string();
  if (missing) throw Error("the plug-in " + file + " is not there: " + missing.message());
  const auto bytes = MappedFile::open(path);
  const std::optional<PluginRecord> record = record_of(bytes->bytes());
  if (!record)
    throw Error(file + " is no plug-in of Tenon",
                "a plug-in is a shared library with TENON_PLUGIN in one of its files; README.md has an example");
  const std::string name = record->name;
  if (std::strcmp(record->version, TENON_VERSION) != 0)
    throw Error(
        "the plug-in " + name + " (" + file + ") was built for Tenon " + record->version + "; this is " + TENON_VERSION,
        "build it again against this version");
  if (section_of(bytes->bytes(), ".dynstr").find("libtenon.so") != std::string_view::npos)
    throw Error("the plug-in " + name + " (" + file + ") is linked with libtenon, which would be there twice",
                "link it with nothing of Tenon, as tenon_plugin() of the CMake package does");
  Loader& l = loader();
  std::lock_guard lock(l.mutex);
  for (const Loaded& p : l.loaded)
    if (p.plugin.file == path) return p.plugin;
  auto scope = std::make_unique<RegistryScope>("plug-in " + name);
  void* library = nullptr;
  try {
    if (const std::string death = death_of(path); !death.empty()) throw Error(death);
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw Error(dlerror());
    // Its static definitions added themselves the first time, and would not again.
    if (std::find(l.refused.begin(), l.refused.end(), library) != l.refused.end())
      throw Error("it was refused before", "start Tenon again to load it");
    const LoadFunction load = load_function(library);
    if (!load) throw Error("it has no tenon_plugin_load");
    load();
    scope->close();
  } catch (...) {
    const Error e = caught_error();
    if (library) l.refused.push_back(library);
    throw Error("the plug-in " + name + " (" + file + ") was not loaded: " + e.message(), e.hint());
  }
  l.loaded.push_back({{name, path, record->version, scope->added()}, std::move(scope)});
  return l.loaded.back().plugin;
}

}  // namespace tenon
