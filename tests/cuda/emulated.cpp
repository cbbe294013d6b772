#include "tests/cuda/emulated.h"

#include <dlfcn.h>

#include <cstdlib>

#include "engine/op/cuda_device.h"

namespace tenon::emulated {

Device device() {
  static const Device d = [] {
    setenv("TENON_CUDA_FILE", TENON_CUDA_EMULATED, 0);
    setenv("TENON_CUDA_NO_POOL", "1", 0);  // the sanitizers see where blocks end
    setenv("TENON_SIMT_DEVICES", "2", 0);
    return parse_device("cuda");
  }();
  return d;
}

namespace {
/// A function of the emulation; null where the GPU is a real one.
template <class F>
F* of_emulated_gpu(const char* name) {
  device();
  void* module = dlopen(std::getenv("TENON_CUDA_FILE"), RTLD_NOW | RTLD_NOLOAD);
  const auto f = reinterpret_cast<F*>(module ? dlsym(module, name) : nullptr);
  if (module) dlclose(module);
  return f;
}
}  // namespace

bool set_order(int order, uint32_t seed) {
  auto* set = of_emulated_gpu<void(int, uint32_t)>("tenon_simt_order");
  if (set) set(order, seed);
  return set;
}

bool uses_tensor_cores(const std::function<void()>& f, bool expected) {
  auto* calls = of_emulated_gpu<uint64_t()>("tenon_simt_warp_calls");
  const uint64_t before = calls ? calls() : 0;
  f();
  return calls ? calls() > before : expected;
}

}  // namespace tenon::emulated
