#include "tests/cuda/emulated.h"

#include <dlfcn.h>

#include <cstdlib>

#include "engine/op/cuda_device.h"

namespace tenon::emulated {

Device device() {
  static const Device d = [] {
    setenv("TENON_CUDA_FILE", TENON_CUDA_EMULATED, 0);
    setenv("TENON_CUDA_NO_POOL", "1", 0);           // the sanitizers see where blocks end
    setenv("TENON_SIMT_DEVICES", "2", 0);
    return parse_device("cuda");
  }();
  return d;
}

bool set_order(int order, uint32_t seed) {
  device();
  void* module = dlopen(std::getenv("TENON_CUDA_FILE"), RTLD_NOW | RTLD_NOLOAD);
  const auto set = reinterpret_cast<void (*)(int, uint32_t)>(module ? dlsym(module, "tenon_simt_order") : nullptr);
  if (set) set(order, seed);
  if (module) dlclose(module);
  return set;
}

}  // namespace tenon::emulated
