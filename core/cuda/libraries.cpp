#include "core/cuda/libraries.h"

#include <dlfcn.h>

#include <cstdio>
#include <mutex>

namespace tenon::cuda {
namespace {

using Version = int32_t (*)(void* library);

template <class F>
F function_of(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}
// Declared here rather than included: one function of each, whose signature has not changed in ten years.
int32_t cublas_version(void* library) {
  auto* get = function_of<size_t (*)()>(library, "cublasLtGetVersion");
  return get ? static_cast<int32_t>(get()) : 0;
}
int32_t cudnn_version(void* library) {
  auto* get = function_of<size_t (*)()>(library, "cudnnGetVersion");
  return get ? static_cast<int32_t>(get()) : 0;
}
int32_t nccl_version(void* library) {
  auto* get = function_of<int (*)(int*)>(library, "ncclGetVersion");
  int version = 0;
  return get && get(&version) == 0 ? version : 0;
}

struct Known {
  const char *name, *file, *otherwise;
  Version version;
};
constexpr Known kLibraries[] = {
    {"cuBLAS", "libcublasLt.so.13", "libcublasLt.so.12", cublas_version},
    {"cuDNN", "libcudnn.so.9", nullptr, cudnn_version},
    {"NCCL", "libnccl.so.2", nullptr, nccl_version},
};
constexpr int32_t kCount = sizeof kLibraries / sizeof *kLibraries;

struct Opened {
  std::once_flag once;
  void* library = nullptr;
  char missing[256] = {};
};
Opened& opened(int32_t i) {
  static Opened all[kCount];
  Opened& o = all[i];
  std::call_once(o.once, [&] {
    const Known& k = kLibraries[i];
    o.library = dlopen(k.file, RTLD_NOW | RTLD_LOCAL);
    if (!o.library) std::snprintf(o.missing, sizeof o.missing, "%s", dlerror());
    if (!o.library && k.otherwise) o.library = dlopen(k.otherwise, RTLD_NOW | RTLD_LOCAL);
    if (o.library) o.missing[0] = 0;
  });
  return o;
}

}  // namespace

int32_t library_facts(int32_t index, LibraryFacts* facts) {
  if (index < 0 || index >= kCount) return 0;
  *facts = {};
  facts->name = kLibraries[index].name;
  const Opened& o = opened(index);
  if (o.library)
    facts->version = kLibraries[index].version(o.library);
  else
    std::snprintf(facts->missing, sizeof facts->missing, "%s", o.missing);
  return 1;
}

void* open_library(Library which) { return opened(static_cast<int32_t>(which)).library; }

void* library_function(Library which, const char* name) {
  void* library = open_library(which);
  return library ? dlsym(library, name) : nullptr;
}

}  // namespace tenon::cuda
