#include "core/cuda_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/module_file.h"
#include "core/version.h"

namespace tenon {
namespace {

struct OpenedModule {
  const cuda::Module* module = nullptr;
  std::string missing;
};

// It stays until the process ends: the driver's threads cannot be taken out again.
OpenedModule open_module() {
  OpenedModule m;
  const char* named = std::getenv("TENON_CUDA_FILE");
  const std::string file = named && *named ? named : module_file("cuda.so");
  std::error_code unreadable;
  if (!std::filesystem::exists(file, unreadable)) {
    m.missing =
        named && *named ? file + ", which TENON_CUDA_FILE names, is not there" : "this build has no CUDA module";
    return m;
  }
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    m.missing = dlerror();
    return m;
  }
  const auto open = reinterpret_cast<cuda::OpenModule>(dlsym(library, cuda::kOpenModule));
  const cuda::Module* found = open ? open() : nullptr;
  if (!found || found->abi != cuda::kAbi || std::strcmp(found->version, TENON_VERSION) != 0)
    m.missing = file + " belongs to another version of Tenon; this is " TENON_VERSION;
  else
    m.module = found;
  return m;
}

const OpenedModule& opened_module() {
  static const OpenedModule m = open_module();
  return m;
}

CudaState find_devices() {
  CudaState s;
  const cuda::Module* module = cuda_module();
  if (!module) {
    s.why = cuda_module_missing();
    s.hint = "Build with a CUDA toolkit of version 12 or above (packaging/cuda.sh gets one), or use --device cpu.";
    return s;
  }
  cuda::DriverFacts facts;
  module->driver(&facts);
  s.devices = facts.devices;
  s.why = facts.why.text;
  if (s.devices == 0)
    s.hint = facts.driver == 0              ? "Install the NVIDIA driver, or use --device cpu."
             : facts.driver < facts.runtime ? "Install a newer NVIDIA driver, or use --device cpu."
                                            : "See what nvidia-smi says, or use --device cpu.";
  return s;
}

}  // namespace

const cuda::Module* cuda_module() { return opened_module().module; }
std::string cuda_module_missing() { return opened_module().missing; }

const CudaState& cuda_state() {
  static const CudaState s = find_devices();
  return s;
}

}  // namespace tenon
