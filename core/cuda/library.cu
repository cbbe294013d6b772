#include "core/cuda/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tenon::cuda {
namespace {

struct OpenedLibrary {
  void* handle = nullptr;
  std::string file, why;
};

const Library*& first_library() {
  static const Library* first = nullptr;
  return first;
}

std::string setting(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

/// Folders, "" for where the loader looks.
std::vector<std::string> library_folders() {
  std::vector<std::string> all;
  if (const std::string named = setting("TENON_CUDA_LIBRARIES"); !named.empty()) {
    for (size_t at = 0; at <= named.size();) {
      const size_t colon = std::min(named.find(':', at), named.size());
      if (colon > at) all.push_back(named.substr(at, colon - at));
      at = colon + 1;
    }
    return all;
  }
#ifdef __CUDACC__  // an emulated GPU has nothing for the real ones
  all.push_back("");
  for (const char* root : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string at = setting(root); !at.empty()) all.push_back(at + "/lib64");
  all.push_back("/usr/local/cuda/lib64");
  for (const char* root : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string at = setting(root);
    if (at.empty()) continue;
    glob_t found{};
    if (glob((at + "/lib/python3*/site-packages/nvidia/*/lib").c_str(), 0, nullptr, &found) == 0)
      all.insert(all.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    globfree(&found);
  }
#endif
  return all;
}

OpenedLibrary open_library(const char* file) {
  OpenedLibrary opened;
  for (const std::string& folder : library_folders()) {
    opened.file = folder.empty() ? file : folder + "/" + file;
    if (!folder.empty() && access(opened.file.c_str(), F_OK) != 0) continue;
    opened.handle = dlopen(opened.file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened.handle) {
      link_map* found = nullptr;  // the loader's own word for where it is
      if (dlinfo(opened.handle, RTLD_DI_LINKMAP, &found) == 0 && found && *found->l_name) opened.file = found->l_name;
      return opened;
    }
    // What is there and cannot be opened is told rather than that the next folder does not have it.
    const char* why = dlerror();
    if (opened.why.empty() && why && !std::string(why).ends_with("No such file or directory")) opened.why = why;
  }
  if (opened.why.empty()) opened.why = std::string(file) + " was not found";
  return opened;
}

/// They stay until the process ends: their threads cannot be taken out again.
const OpenedLibrary& opened_library(const char* file) {
  static std::mutex mutex;
  static auto* all = new std::map<std::string, OpenedLibrary>;
  std::lock_guard lock(mutex);
  const auto found = all->find(file);
  return found != all->end() ? found->second : all->emplace(file, open_library(file)).first->second;
}

}  // namespace

Library::Library(const char* name, const char* file, const char* use, const char* without, const char* package,
                 void (*version)(const Library&, char*, size_t))
    : name_(name),
      file_(file),
      use_(use),
      without_(without),
      package_(package),
      version_(version),
      next_(first_library()) {
  first_library() = this;
}

bool Library::there() const { return opened_library(file_).handle != nullptr; }

void* Library::symbol(const char* function) const {
  void* handle = opened_library(file_).handle;
  return handle ? dlsym(handle, function) : nullptr;
}

void Library::facts(LibraryFacts* facts) const {
  *facts = {};
  facts->name = name_;
  facts->use = use_;
  facts->without = without_;
  facts->package = package_;
  const OpenedLibrary& opened = opened_library(file_);
  if (!opened.handle) {
    std::snprintf(facts->why.text, sizeof facts->why.text, "%s", opened.why.c_str());
    return;
  }
  facts->there = 1;
  std::snprintf(facts->file, sizeof facts->file, "%s", opened.file.c_str());
  version_(*this, facts->version, sizeof facts->version);
}

Outcome library_facts(int32_t index, LibraryFacts* facts) {
  const Library* l = first_library();
  for (; l && index > 0; --index) l = l->next();
  if (!l) return unsupported;
  l->facts(facts);
  return done;
}

}  // namespace tenon::cuda
