// NVML for the emulated GPUs: what core/cuda/nvml.cu calls, for the places on the bus that the emulated runtime gives.
// The second GPU has no sensor of its power, as a part of a real one.
#include <cstdio>
#include <cstring>

#define EMULATED extern "C" __attribute__((visibility("default")))

namespace {
constexpr int kNotFound = 6, kNotSupported = 3;
struct Gpu {
  const char* bus;
  unsigned busy, celsius, milliwatts;
  unsigned long long used;
};
Gpu gpus[] = {{"0000:01:00.0", 87, 54, 312500, 5ull << 30}, {"0000:02:00.0", 3, 31, 0, 1ull << 30}};
bool begun = false;
}  // namespace

EMULATED int nvmlInit_v2() {
  begun = true;
  return 0;
}
EMULATED int nvmlSystemGetNVMLVersion(char* text, unsigned room) {
  std::snprintf(text, room, "13.580.1");
  return 0;
}
EMULATED int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, Gpu** gpu) {
  for (Gpu& g : gpus)
    if (begun && std::strcmp(g.bus, bus) == 0) return *gpu = &g, 0;
  return kNotFound;
}
EMULATED int nvmlDeviceGetUtilizationRates(Gpu* gpu, unsigned* gpu_and_memory) {
  gpu_and_memory[0] = gpu->busy;
  gpu_and_memory[1] = gpu->busy / 2;
  return 0;
}
EMULATED int nvmlDeviceGetMemoryInfo(Gpu* gpu, unsigned long long* total_free_used) {
  total_free_used[0] = 80ull << 30;
  total_free_used[1] = total_free_used[0] - gpu->used;
  total_free_used[2] = gpu->used;
  return 0;
}
EMULATED int nvmlDeviceGetPowerUsage(Gpu* gpu, unsigned* milliwatts) {
  *milliwatts = gpu->milliwatts;
  return gpu->milliwatts ? 0 : kNotSupported;
}
EMULATED int nvmlDeviceGetTemperature(Gpu* gpu, int sensor, unsigned* celsius) {
  *celsius = gpu->celsius;
  return sensor == 0 ? 0 : kNotSupported;
}
